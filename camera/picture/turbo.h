// The door to libturbojpeg, a library of the system that is loaded at run time: its few prototypes are
// declared here, so that building needs no header of it.
#ifndef EYAS_TURBO_H
#define EYAS_TURBO_H

#include <stdint.h>

// What comes of decoding.
enum {
  EYAS_FAILED = 0,
  EYAS_WARNED = 1,  // the picture is there; the library was not content with the data
  EYAS_STRAY = 2,   // the same, and the first thing was that bytes lie before the end marker
  EYAS_CLEAN = 3
};

// eyas_turbo_load loads the library and returns the path that the loader found it at, or NULL where
// there is none that has all that is needed. To be called once, before the others.
const char *eyas_turbo_load(void);

// eyas_turbo_open returns a decoder, for one picture after the other from one thread at a time, or NULL;
// eyas_turbo_close frees it.
void *eyas_turbo_open(void);
void eyas_turbo_close(void *decoder);

// eyas_turbo_planes decodes a JPEG of w x h pixels and subsampling samp (TJSAMP) into its component planes, luma
// as wide as the chroma's width times their ratio, and likewise high; cb and cr are unused for grey.
int eyas_turbo_planes(void *decoder, const uint8_t *jpg, unsigned long size, int w, int h, int samp,
                      uint8_t *y, uint8_t *cb, uint8_t *cr, int y_stride, int c_stride);

// eyas_turbo_pixels decodes a JPEG of w x h pixels of any subsampling into rows of pixels of a format
// (TJPF), each pitch bytes behind the one before.
int eyas_turbo_pixels(void *decoder, const uint8_t *jpg, unsigned long size, int w, int h, int format,
                      uint8_t *dst, int pitch);

#endif
