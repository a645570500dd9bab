//go:build cgo && linux

#define _GNU_SOURCE  // dladdr

#include "turbo.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define ACCURATE_DCT 4096  // TJFLAG_ACCURATEDCT: libjpeg's islow
#define WARNING 0          // TJERR_WARNING

// Version 2 of the API, which version 3 of the library keeps.
typedef void *decoder;
static struct {
  decoder (*init)(void);
  int (*header)(decoder, const unsigned char *, unsigned long, int *w, int *h, int *samp,
                int *colours);
  int (*planes)(decoder, const unsigned char *, unsigned long, unsigned char **planes, int w,
                int *strides, int h, int flags);
  int (*pixels)(decoder, const unsigned char *, unsigned long, unsigned char *dst, int w,
                int pitch, int h, int format, int flags);
  int (*destroy)(decoder);
  char *(*message)(decoder);
  int (*code)(decoder);
  int own_message;  // a thread reads only messages of its own pictures
} tj;

static int resolve(void *lib) {
  const struct {
    const char *name;
    void *to;
  } list[] = {
      {"tjInitDecompress", &tj.init},     {"tjDecompressHeader3", &tj.header},
      {"tjDecompressToYUVPlanes", &tj.planes}, {"tjDecompress2", &tj.pixels},
      {"tjDestroy", &tj.destroy},         {"tjGetErrorStr2", &tj.message},
      {"tjGetErrorCode", &tj.code},
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    void *f = dlsym(lib, list[i].name);
    if (!f) return 0;
    memcpy(list[i].to, &f, sizeof f);
  }
  return 1;
}

const char *eyas_turbo_load(void) {
  const char *names[] = {"libturbojpeg.so.0", "libturbojpeg.so"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    void *lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!lib) continue;
    void *f = dlsym(lib, "tjInitDecompress");
    Dl_info info;
    if (resolve(lib) && dladdr(f, &info)) {
      // libjpeg-turbo before 2.1 writes libjpeg's messages to one array for all threads, which lies in
      // the library; later ones to thread-local storage, which lies in no object.
      Dl_info object;
      tj.own_message = !dladdr(tj.message(NULL), &object);
      return info.dli_fname;
    }
    dlclose(lib);
  }
  return NULL;
}

// verdict says what a call's result rc means. The first warning of a picture is the one that is kept
// and a fatal error replaces it, so the message of a warning means that there was no error and that
// the picture is filled.
static int verdict(decoder d, int rc) {
  if (rc == 0) return EYAS_CLEAN;
  if (!tj.own_message || tj.code(d) != WARNING) return EYAS_FAILED;
  const char *message = tj.message(d);
  if (strstr(message, "extraneous bytes before marker 0xd9")) return EYAS_STRAY;
  return strstr(message, "Corrupt JPEG data: ") ? EYAS_WARNED : EYAS_FAILED;
}

void *eyas_turbo_open(void) { return tj.init(); }

void eyas_turbo_close(void *d) { tj.destroy(d); }

int eyas_turbo_planes(void *d, const uint8_t *jpg, unsigned long size, int w, int h, int samp,
                      uint8_t *y, uint8_t *cb, uint8_t *cr, int y_stride, int c_stride) {
  unsigned char *planes[] = {y, cb, cr};
  int strides[] = {y_stride, c_stride, c_stride};
  int w2, h2, samp2, colours;
  // The planes' sizes follow from these three: the library has to see them as the caller does.
  if (tj.header(d, jpg, size, &w2, &h2, &samp2, &colours) != 0 || w2 != w || h2 != h ||
      samp2 != samp)
    return EYAS_FAILED;
  return verdict(d, tj.planes(d, jpg, size, planes, w, strides, h, ACCURATE_DCT));
}

int eyas_turbo_pixels(void *d, const uint8_t *jpg, unsigned long size, int w, int h, int format,
                      uint8_t *dst, int pitch) {
  // A picture that the library takes to be larger is scaled down to w x h or refused.
  return verdict(d, tj.pixels(d, jpg, size, dst, w, pitch, h, format, ACCURATE_DCT));
}
