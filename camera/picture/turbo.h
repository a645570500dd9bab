// The door to libturbojpeg, a library of the system that is loaded at run time: its few prototypes are
// declared here, so that building needs no header of it.
#ifndef EYAS_TURBO_H
#define EYAS_TURBO_H

#include <stdint.h>

// Values of turbojpeg.h's enumerations TJSAMP and TJPF.
enum {
  EYAS_SAMP_444 = 0,
  EYAS_SAMP_422 = 1,
  EYAS_SAMP_420 = 2,
  EYAS_SAMP_GRAY = 3,
  EYAS_SAMP_440 = 4,
  EYAS_SAMP_411 = 5,

  EYAS_PF_RGBA = 7,
  EYAS_PF_CMYK = 11
};

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

// eyas_turbo_planes decodes a JPEG of w x h pixels and subsampling samp into its component planes, luma
// as wide as the chroma's width times their ratio; cb and cr are unused for grey.
int eyas_turbo_planes(const uint8_t *jpg, unsigned long size, int w, int h, int samp,
                      uint8_t *y, uint8_t *cb, uint8_t *cr, int y_stride, int c_stride);

// eyas_turbo_pixels decodes a JPEG of w x h pixels of any subsampling into tightly packed pixels of four
// bytes.
int eyas_turbo_pixels(const uint8_t *jpg, unsigned long size, int w, int h, int format,
                      uint8_t *dst);

#endif
