// The vector twin of the fused pass: what vector_cgo.go and band.c, and band.c and the kernels of a processor, share.
#ifndef EYAS_PREP_KERNELS_H
#define EYAS_PREP_KERNELS_H

#include <stddef.h>
#include <stdint.h>

// How blocks of 16 columns find one channel's samples in a row, where each column is one source column: block i lies
// `step` bytes from block i-1; the samples are those of its first bytes, 16 a window, that each window's order names.
// Channels of one plane have the same windows.
enum { eyas_prep_windows = 12 };
typedef struct {
	int32_t base, step, windows;
	uint8_t order[eyas_prep_windows][32]; // twice the same 16; 0x80 and above: the sample is in another window
} eyas_prep_pick;

// Everything about a pass that is no pointer. Sizes and positions are pixels, strides bytes.
typedef struct {
	// The picture. A pixel of plane 0 takes `pixel` bytes, red is its byte `red`; planes and yuv tell the formats apart.
	int64_t stride[3];
	int32_t yuv, planes, pixel, red;
	int32_t sub_rows;           // chroma rows are at y >> sub_rows
	int32_t luma;               // levels are luma
	int32_t first, span;        // the columns that are converted: span of them from first, which is even
	int32_t safe_from, safe_to; // the output columns whose eight bytes lie within their row
	int32_t exact;              // each output column is one source column
	int32_t pick_from, pick_to; // the output columns, whole blocks, whose windows lie within their row
	eyas_prep_pick pick[3];     // red, green, blue, or Y, U, V
	int16_t black, y, vr, vg, ug, ub;
	// The tensor: the picture's place in it, its element's bytes, and how a level becomes a value.
	int32_t in_w, in_h, left, top, new_w, new_h;
	int32_t channels, nhwc, bgr, size, pad;
	int32_t computed; // values are computed, to the bits of the table; else they are looked up
	int32_t stream;   // 32-bit values that lie side by side are written with streaming stores
	float mean[3], factor[3], rest[3];
} eyas_prep_job;

// An output row: source rows and their weights, in units of 1/2048.
typedef struct {
	uint32_t a, b, w0, w1;
} eyas_prep_line;

// A column's weights for the pixel at its offset and for the next one, in units of 1/2048.
typedef struct {
	int16_t left, right;
} eyas_prep_pair;

// eyas_prep_supported says whether this processor has the instructions that the kernels need.
int eyas_prep_supported(void);

// eyas_prep_band writes rows from..to of the tensor's sample at dst. xs, at and pairs have an entry for each of new_w
// columns: the source column of the left pixel, its byte in the row that is mixed, and the weights; lines one for each of new_h rows. tables holds 256 values a channel.
// scratch has eyas_prep_scratch bytes, aligned to 32.
void eyas_prep_band(const eyas_prep_job *j, const uint8_t *p0, const uint8_t *p1, const uint8_t *p2, const int32_t *xs, const int32_t *at,
	const eyas_prep_pair *pairs, const eyas_prep_line *lines, const uint8_t *tables, uint8_t *scratch, uint8_t *dst,
	int32_t from, int32_t to);

// Kernels: each handles as much of a row as fits its vectors and returns where it stopped; band.c does the rest.

// The samples of a row: where each channel's begin (red, green, blue, or Y, U, V) and how far apart they lie.
typedef struct {
	const uint8_t *at[3];
	int32_t step[3];
} eyas_prep_samples;

// Converts n pixels of a YUV row to R G B x.
int32_t eyas_prep_convert(const eyas_prep_job *j, uint8_t *dst, const eyas_prep_samples *s, int32_t n);

// Picks, and converts, the pixels of columns from pick_from on: levels, one row a channel, pitch apart.
int32_t eyas_prep_pick_columns(const eyas_prep_job *j, uint8_t *dst, int32_t pitch, const eyas_prep_samples *s);

// Mixes two neighbouring pixels for each column from..to: 15-bit levels, one row a channel, pitch apart. Meanwhile those
// of row next, unless it is NULL, are prefetched.
int32_t eyas_prep_mix_columns(int16_t *dst, int32_t pitch, const uint8_t *row, const uint8_t *next, const int32_t *at,
	const eyas_prep_pair *pairs, int32_t from, int32_t to, int32_t pixel, int32_t red);

// Mixes two rows of 15-bit levels to levels; n is a multiple of 32.
void eyas_prep_mix_rows(uint8_t *dst, const int16_t *a, const int16_t *b, int32_t w0, int32_t w1, int32_t n);

// Computes (level - mean) * (factor + rest), where the sum is 1 / std in twice float's precision: what a division rounds to.
// Other threads see what was written with streaming stores after eyas_prep_fence.
int32_t eyas_prep_store32(float *dst, const uint8_t *levels, int32_t n, float mean, float factor, float rest, int32_t stream);
int32_t eyas_prep_store16(uint16_t *dst, const uint8_t *levels, int32_t n, float mean, float factor, float rest);

// Writes n times v.
void eyas_prep_fill32(uint32_t *dst, uint32_t v, int64_t n, int32_t stream);

void eyas_prep_fence(void);

#endif
