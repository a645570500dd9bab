// The kernels for x86-64 with AVX2, 32 pixels or 8 columns a step. The file is built for any x86-64; each function says
// what it needs, and eyas_prep_supported whether this processor has it.
#include "kernels.h"

#include <cpuid.h>
#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2,fma,f16c")))

int eyas_prep_supported(void) {
	unsigned a, b, c, d;
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

AVX2 static inline __m256i load(const void *p) { return _mm256_loadu_si256(p); }

AVX2 static inline void store(void *p, __m256i v) { _mm256_storeu_si256(p, v); }

// Levels of 32 pixels from two halves of sums: 128ths of a level, less 128 levels, so that signed saturation clamps.
AVX2 static inline __m256i levels(__m256i lo, __m256i hi) {
	return _mm256_xor_si256(_mm256_packs_epi16(_mm256_srai_epi16(lo, 7), _mm256_srai_epi16(hi, 7)), _mm256_set1_epi8(-128));
}

// The factors of a conversion in vectors.
typedef struct {
	__m256i black, y, vr, vg, ug, ub;
} factors;

AVX2 static inline factors factors_of(const eyas_prep_job *j) {
	return (factors){_mm256_set1_epi8((char)j->black), _mm256_set1_epi16(j->y), _mm256_set1_epi16(j->vr), _mm256_set1_epi16(j->vg),
		_mm256_set1_epi16(j->ug), _mm256_set1_epi16(j->ub)};
}

// The shares of chroma in 16 pixels, or pairs of pixels, from samples in the high bytes. That of blue is in two parts.
typedef struct {
	__m256i r, g, b, b1;
} shares;

AVX2 static inline shares shares_of(const factors *f, __m256i u, __m256i v) {
	const __m256i sign = _mm256_set1_epi16(-32768);
	u = _mm256_xor_si256(u, sign), v = _mm256_xor_si256(v, sign); // less 128
	return (shares){_mm256_mulhrs_epi16(v, f->vr), _mm256_add_epi16(_mm256_mulhrs_epi16(v, f->vg), _mm256_mulhrs_epi16(u, f->ug)),
		_mm256_mulhrs_epi16(u, f->ub), _mm256_srai_epi16(u, 1)};
}

// The share of luma in 16 pixels, from samples in the high bytes, with the half that rounds, one unit short (colour.go).
AVX2 static inline __m256i luma_share(const factors *f, __m256i y) {
	y = _mm256_srli_epi16(y, 1);
	return _mm256_add_epi16(_mm256_sub_epi16(y, _mm256_set1_epi16(128 * 128 - 63)), _mm256_mulhrs_epi16(y, f->y));
}

// Levels of 32 pixels from their luma samples and the shares of the pixels that unpacking calls low and high.
AVX2 static inline void to_rgb(__m256i rgb[3], const factors *f, __m256i luma, const shares *l, const shares *h) {
	const __m256i zero = _mm256_setzero_si256();
	luma = _mm256_subs_epu8(luma, f->black);
	const __m256i lo = luma_share(f, _mm256_unpacklo_epi8(zero, luma)), hi = luma_share(f, _mm256_unpackhi_epi8(zero, luma));
	rgb[0] = levels(_mm256_adds_epi16(lo, l->r), _mm256_adds_epi16(hi, h->r));
	rgb[1] = levels(_mm256_adds_epi16(lo, l->g), _mm256_adds_epi16(hi, h->g));
	rgb[2] = levels(_mm256_adds_epi16(_mm256_adds_epi16(lo, l->b1), l->b), _mm256_adds_epi16(_mm256_adds_epi16(hi, h->b1), h->b));
}

// Loads the 32 luma samples and 16 pairs of chroma samples of 32 pixels.
AVX2 static inline void load_yuv(int planes, const eyas_prep_samples *s, int32_t i, __m256i *luma, __m256i *chroma) {
	if (planes == 1) { // Y U Y V
		const uint8_t *p = s->at[0] + 2 * i;
		const __m256i low = _mm256_set1_epi16(0xff), a = load(p), b = load(p + 32);
		*luma = _mm256_permute4x64_epi64(_mm256_packus_epi16(_mm256_and_si256(a, low), _mm256_and_si256(b, low)), 0xd8);
		*chroma = _mm256_permute4x64_epi64(_mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8)), 0xd8);
		return;
	}
	*luma = load(s->at[0] + i);
	if (planes == 2) {
		*chroma = load(s->at[1] + i);
		return;
	}
	const __m128i u = _mm_loadu_si128((const void *)(s->at[1] + i / 2)), v = _mm_loadu_si128((const void *)(s->at[2] + i / 2));
	*chroma = _mm256_set_m128i(_mm_unpackhi_epi8(u, v), _mm_unpacklo_epi8(u, v));
}

AVX2 int32_t eyas_prep_convert(const eyas_prep_job *j, uint8_t *dst, const eyas_prep_samples *s, int32_t n) {
	const __m256i zero = _mm256_setzero_si256(), high = _mm256_set1_epi16((short)0xff00);
	const factors f = factors_of(j);
	const int planes = j->planes;
	const int32_t end = (n - 32) & ~1;
	if (n < 32) return 0;
	for (int32_t i = 0;; i = i + 32 < end ? i + 32 : end) { // the last pixels may overlap the ones before
		__m256i luma, chroma, rgb[3];
		load_yuv(planes, s, i, &luma, &chroma);
		const shares pair = shares_of(&f, _mm256_slli_epi16(chroma, 8), _mm256_and_si256(chroma, high));
#define TWICE(unpack) {unpack(pair.r, pair.r), unpack(pair.g, pair.g), unpack(pair.b, pair.b), unpack(pair.b1, pair.b1)}
		const shares lo = TWICE(_mm256_unpacklo_epi16), hi = TWICE(_mm256_unpackhi_epi16);
#undef TWICE
		to_rgb(rgb, &f, luma, &lo, &hi);
		const __m256i rg0 = _mm256_unpacklo_epi8(rgb[0], rgb[1]), rg1 = _mm256_unpackhi_epi8(rgb[0], rgb[1]);
		const __m256i bx0 = _mm256_unpacklo_epi8(rgb[2], zero), bx1 = _mm256_unpackhi_epi8(rgb[2], zero);
		const __m256i p0 = _mm256_unpacklo_epi16(rg0, bx0), p1 = _mm256_unpackhi_epi16(rg0, bx0); // pixels 0-3 16-19, 4-7 20-23
		const __m256i p2 = _mm256_unpacklo_epi16(rg1, bx1), p3 = _mm256_unpackhi_epi16(rg1, bx1); // 8-11 24-27, 12-15 28-31
		store(dst + 4 * i, _mm256_permute2x128_si256(p0, p1, 0x20));
		store(dst + 4 * i + 32, _mm256_permute2x128_si256(p2, p3, 0x20));
		store(dst + 4 * i + 64, _mm256_permute2x128_si256(p0, p1, 0x31));
		store(dst + 4 * i + 96, _mm256_permute2x128_si256(p2, p3, 0x31));
		if (i == end) return end + 32;
	}
}

// Loads 16 bytes at p and 16 at q.
AVX2 static inline __m256i load2(const void *p, const void *q) {
	return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(p)), _mm_loadu_si128(q), 1);
}

// What is inlined here is made anew for each layout, so that samples stay in registers.
#define INLINE AVX2 static inline __attribute__((always_inline))

// Picks the samples of n channels that share a row, of two blocks, the first of which begins at p.
INLINE void pick_windows(int n, int windows, __m256i *samples, const eyas_prep_pick *k, const uint8_t *p) {
	for (int c = 0; c < n; c++) samples[c] = _mm256_shuffle_epi8(load2(p, p + k->step), load(k[c].order[0]));
	for (int w = 1; w < windows; w++) {
		const __m256i x = load2(p + 16 * w, p + k->step + 16 * w);
		for (int c = 0; c < n; c++) samples[c] = _mm256_or_si256(samples[c], _mm256_shuffle_epi8(x, load(k[c].order[w])));
	}
}

INLINE void pick(int n, __m256i *samples, const eyas_prep_pick *k, const uint8_t *row, int32_t block) {
	const uint8_t *p = row + k->base + (int64_t)block * k->step;
	if (k->windows == 3) pick_windows(n, 3, samples, k, p); // a third of the width, planar
	else pick_windows(n, k->windows, samples, k, p);
}

INLINE void pick_row(int yuv, int planes, const eyas_prep_job *j, uint8_t *dst, int32_t pitch, const eyas_prep_samples *s) {
	const __m256i zero = _mm256_setzero_si256();
	const factors f = factors_of(j);
	const int32_t end = j->pick_to - 32;
	for (int32_t i = j->pick_from;; i = i + 32 < end ? i + 32 : end) { // the last two blocks may overlap the ones before
		__m256i c[3];
		pick(planes == 1 ? 3 : 1, c, j->pick, s->at[0], i / 16);
		if (planes > 1) pick(planes == 2 ? 2 : 1, c + 1, j->pick + 1, s->at[1], i / 16);
		if (planes > 2) pick(1, c + 2, j->pick + 2, s->at[2], i / 16);
		if (yuv) {
			const shares lo = shares_of(&f, _mm256_unpacklo_epi8(zero, c[1]), _mm256_unpacklo_epi8(zero, c[2]));
			const shares hi = shares_of(&f, _mm256_unpackhi_epi8(zero, c[1]), _mm256_unpackhi_epi8(zero, c[2]));
			to_rgb(c, &f, c[0], &lo, &hi);
		}
		for (int k = 0; k < 3; k++) store(dst + k * pitch + i, c[k]);
		if (i == end) return;
	}
}

AVX2 int32_t eyas_prep_pick_columns(const eyas_prep_job *j, uint8_t *dst, int32_t pitch, const eyas_prep_samples *s) {
	if (j->pick_to - j->pick_from < 32) return j->pick_from;
	if (!j->yuv) pick_row(0, 1, j, dst, pitch, s);
	else if (j->planes == 1) pick_row(1, 1, j, dst, pitch, s);
	else if (j->planes == 2) pick_row(1, 2, j, dst, pitch, s);
	else pick_row(1, 3, j, dst, pitch, s);
	return j->pick_to;
}

AVX2 static inline int64_t load8(const uint8_t *p) {
	int64_t v;
	memcpy(&v, p, sizeof v);
	return v;
}

// Columns 0, 1, 8, 9 or the like, two pixels each, as bytes: pairs of red, of green, of blue.
AVX2 static inline __m256i load_columns(const uint8_t *row, const int32_t *at, __m256i order) {
	return _mm256_shuffle_epi8(_mm256_set_epi64x(load8(row + at[9]), load8(row + at[8]), load8(row + at[1]), load8(row + at[0])), order);
}

// Mixes 8 pairs of bytes.
AVX2 static inline __m256i weigh(__m256i pairs, __m256i weights) {
	return _mm256_srli_epi32(_mm256_madd_epi16(pairs, weights), 4);
}

AVX2 int32_t eyas_prep_mix_columns(int16_t *dst, int32_t pitch, const uint8_t *row, const uint8_t *next, const int32_t *at,
	const eyas_prep_pair *pairs, int32_t from, int32_t to, int32_t pixel, int32_t red) {
	const char r = red, g = 1, b = 2 - red, p = pixel;
	const __m256i order = _mm256_broadcastsi128_si256(_mm_setr_epi8(
		r, r + p, 8 + r, 8 + r + p, g, g + p, 8 + g, 8 + g + p, b, b + p, 8 + b, 8 + b + p, -1, -1, -1, -1));
	const __m256i zero = _mm256_setzero_si256();
	const int32_t end = to - 16;
	if (end < from) return from;
	for (int32_t i = from;; i = i + 16 < end ? i + 16 : end) { // the last columns may overlap the ones before
		__m256i mixed[2][3];
		for (int k = 0; next && k < 16; k += 4) __builtin_prefetch(next + at[i + k]);
		for (int k = 0; k < 2; k++) { // columns 0-3 and 8-11, then 4-7 and 12-15, so that packing puts them in order
			const __m256i x = load_columns(row, at + i + 4 * k, order), y = load_columns(row, at + i + 4 * k + 2, order);
			const __m256i rg = _mm256_unpacklo_epi32(x, y), bs = _mm256_unpackhi_epi32(x, y);
			const __m256i w = load2(pairs + i + 4 * k, pairs + i + 4 * k + 8);
			mixed[k][0] = weigh(_mm256_unpacklo_epi8(rg, zero), w);
			mixed[k][1] = weigh(_mm256_unpackhi_epi8(rg, zero), w);
			mixed[k][2] = weigh(_mm256_unpacklo_epi8(bs, zero), w);
		}
		for (int c = 0; c < 3; c++) store(dst + c * pitch + i, _mm256_packus_epi32(mixed[0][c], mixed[1][c]));
		if (i == end) return to;
	}
}

// Two vectors of 15-bit levels, mixed with two others: levels of 16 bits.
AVX2 static inline __m256i mixed(const int16_t *a, const int16_t *b, __m256i w0, __m256i w1) {
	const __m256i sum = _mm256_add_epi16(_mm256_mulhi_epi16(load(a), w0), _mm256_mulhi_epi16(load(b), w1));
	return _mm256_srli_epi16(_mm256_add_epi16(sum, _mm256_set1_epi16(2)), 2);
}

AVX2 void eyas_prep_mix_rows(uint8_t *dst, const int16_t *a, const int16_t *b, int32_t w0, int32_t w1, int32_t n) {
	const __m256i v0 = _mm256_set1_epi16(w0), v1 = _mm256_set1_epi16(w1);
	for (int32_t i = 0; i < n; i += 32) {
		const __m256i both = _mm256_packus_epi16(mixed(a + i, b + i, v0, v1), mixed(a + i + 16, b + i + 16, v0, v1));
		store(dst + i, _mm256_permute4x64_epi64(both, 0xd8));
	}
}

AVX2 static inline __m256 value(const uint8_t *levels, __m256 mean, __m256 factor, __m256 rest) {
	const __m256 x = _mm256_sub_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)levels))), mean);
	return _mm256_fmadd_ps(x, factor, _mm256_mul_ps(x, rest));
}

// Values of 4 bytes from dst on to where a cache line begins: streaming stores are fast for whole lines only.
static inline int32_t to_line(const void *dst) { return (-(uintptr_t)dst & 63) / 4; }

AVX2 int32_t eyas_prep_store32(float *dst, const uint8_t *levels, int32_t n, float mean, float factor, float rest, int32_t stream) {
	const __m256 m = _mm256_set1_ps(mean), f = _mm256_set1_ps(factor), r = _mm256_set1_ps(rest);
	int32_t i = 0;
	if (stream && n >= 32) {
		for (const int32_t head = to_line(dst); i < head; i = i + 8 < head ? i + 8 : head) _mm256_storeu_ps(dst + i, value(levels + i, m, f, r));
		for (; i + 16 <= n; i += 16)
			for (int k = i; k < i + 16; k += 8) _mm256_stream_ps(dst + k, value(levels + k, m, f, r));
	}
	for (; i + 32 <= n; i += 32)
		for (int k = i; k < i + 32; k += 8) _mm256_storeu_ps(dst + k, value(levels + k, m, f, r));
	for (; i + 8 <= n; i += 8) _mm256_storeu_ps(dst + i, value(levels + i, m, f, r));
	return i;
}

AVX2 int32_t eyas_prep_store16(uint16_t *dst, const uint8_t *levels, int32_t n, float mean, float factor, float rest) {
	const __m256 m = _mm256_set1_ps(mean), f = _mm256_set1_ps(factor), r = _mm256_set1_ps(rest);
	int32_t i = 0;
	for (; i + 8 <= n; i += 8) _mm_storeu_si128((void *)(dst + i), _mm256_cvtps_ph(value(levels + i, m, f, r), _MM_FROUND_TO_NEAREST_INT));
	return i;
}

AVX2 void eyas_prep_fill32(uint32_t *dst, uint32_t v, int64_t n, int32_t stream) {
	const __m256i x = _mm256_set1_epi32(v);
	int64_t i = 0;
	if (stream && n >= 32) {
		for (const int32_t head = to_line(dst); i < head; i++) dst[i] = v;
		for (; i + 16 <= n; i += 16)
			for (int64_t k = i; k < i + 16; k += 8) _mm256_stream_si256((void *)(dst + k), x);
	}
	for (; i < n; i++) dst[i] = v;
}

void eyas_prep_fence(void) { _mm_sfence(); }
