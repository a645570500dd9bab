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

// Loads the 32 luma samples and 16 pairs of chroma samples of 32 pixels.
AVX2 static inline void load_yuv(int planes, const uint8_t *y, const uint8_t *u, const uint8_t *v, int32_t i, __m256i *luma, __m256i *chroma) {
	if (planes == 1) { // Y U Y V
		const __m256i low = _mm256_set1_epi16(0xff), a = load(y + 2 * i), b = load(y + 2 * i + 32);
		*luma = _mm256_permute4x64_epi64(_mm256_packus_epi16(_mm256_and_si256(a, low), _mm256_and_si256(b, low)), 0xd8);
		*chroma = _mm256_permute4x64_epi64(_mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8)), 0xd8);
		return;
	}
	*luma = load(y + i);
	if (planes == 2) {
		*chroma = load(u + i);
		return;
	}
	const __m128i us = _mm_loadu_si128((const void *)(u + i / 2)), vs = _mm_loadu_si128((const void *)(v + i / 2));
	*chroma = _mm256_set_m128i(_mm_unpackhi_epi8(us, vs), _mm_unpacklo_epi8(us, vs));
}

// Levels of 32 pixels from two halves of sums: 128ths of a level, less 128 levels, so that signed saturation clamps.
AVX2 static inline __m256i levels(__m256i lo, __m256i hi) {
	return _mm256_xor_si256(_mm256_packs_epi16(_mm256_srai_epi16(lo, 7), _mm256_srai_epi16(hi, 7)), _mm256_set1_epi8(-128));
}

AVX2 int32_t eyas_prep_convert(const eyas_prep_job *j, uint8_t *dst, const uint8_t *y, const uint8_t *u, const uint8_t *v, int32_t n) {
	const __m256i zero = _mm256_setzero_si256(), sign = _mm256_set1_epi16(-32768), high = _mm256_set1_epi16((short)0xff00);
	const __m256i black = _mm256_set1_epi8((char)j->black), ky = _mm256_set1_epi16(j->y), bias = _mm256_set1_epi16(128 * 128 - 63);
	const __m256i vr = _mm256_set1_epi16(j->vr), vg = _mm256_set1_epi16(j->vg), ug = _mm256_set1_epi16(j->ug), ub = _mm256_set1_epi16(j->ub);
	const int planes = j->planes;
	int32_t i = 0;
	for (; i + 32 <= n; i += 32) {
		__m256i luma, chroma;
		load_yuv(planes, y, u, v, i, &luma, &chroma);

		// Chroma less 128 in the high byte; its shares of red, green and blue, each for a pair of pixels.
		const __m256i us = _mm256_xor_si256(_mm256_slli_epi16(chroma, 8), sign);
		const __m256i vs = _mm256_xor_si256(_mm256_and_si256(chroma, high), sign);
		const __m256i r = _mm256_mulhrs_epi16(vs, vr);
		const __m256i g = _mm256_add_epi16(_mm256_mulhrs_epi16(vs, vg), _mm256_mulhrs_epi16(us, ug));
		const __m256i b = _mm256_mulhrs_epi16(us, ub), b1 = _mm256_srai_epi16(us, 1);

		luma = _mm256_subs_epu8(luma, black);
		__m256i lo = _mm256_srli_epi16(_mm256_unpacklo_epi8(zero, luma), 1), hi = _mm256_srli_epi16(_mm256_unpackhi_epi8(zero, luma), 1);
		lo = _mm256_add_epi16(_mm256_sub_epi16(lo, bias), _mm256_mulhrs_epi16(lo, ky));
		hi = _mm256_add_epi16(_mm256_sub_epi16(hi, bias), _mm256_mulhrs_epi16(hi, ky));

#define LO(x) _mm256_unpacklo_epi16(x, x)
#define HI(x) _mm256_unpackhi_epi16(x, x)
		const __m256i red = levels(_mm256_adds_epi16(lo, LO(r)), _mm256_adds_epi16(hi, HI(r)));
		const __m256i green = levels(_mm256_adds_epi16(lo, LO(g)), _mm256_adds_epi16(hi, HI(g)));
		const __m256i blue = levels(_mm256_adds_epi16(_mm256_adds_epi16(lo, LO(b1)), LO(b)),
			_mm256_adds_epi16(_mm256_adds_epi16(hi, HI(b1)), HI(b)));
#undef LO
#undef HI
		const __m256i rg0 = _mm256_unpacklo_epi8(red, green), rg1 = _mm256_unpackhi_epi8(red, green);
		const __m256i bx0 = _mm256_unpacklo_epi8(blue, zero), bx1 = _mm256_unpackhi_epi8(blue, zero);
		const __m256i p0 = _mm256_unpacklo_epi16(rg0, bx0), p1 = _mm256_unpackhi_epi16(rg0, bx0); // pixels 0-3 16-19, 4-7 20-23
		const __m256i p2 = _mm256_unpacklo_epi16(rg1, bx1), p3 = _mm256_unpackhi_epi16(rg1, bx1); // 8-11 24-27, 12-15 28-31
		store(dst + 4 * i, _mm256_permute2x128_si256(p0, p1, 0x20));
		store(dst + 4 * i + 32, _mm256_permute2x128_si256(p2, p3, 0x20));
		store(dst + 4 * i + 64, _mm256_permute2x128_si256(p0, p1, 0x31));
		store(dst + 4 * i + 96, _mm256_permute2x128_si256(p2, p3, 0x31));
	}
	return i;
}

AVX2 static inline int64_t load8(const uint8_t *p) {
	int64_t v;
	memcpy(&v, p, sizeof v);
	return v;
}

AVX2 int32_t eyas_prep_mix_columns(int16_t *dst, int32_t pitch, const uint8_t *row, const int32_t *at, const eyas_prep_pair *pairs,
	int32_t from, int32_t to, int32_t pixel, int32_t red) {
	// Two columns of two pixels each become two pairs of red, green and blue.
	const char r = red, g = 1, b = 2 - red, p = pixel;
	const __m256i order = _mm256_broadcastsi128_si256(_mm_setr_epi8(
		r, r + p, 8 + r, 8 + r + p, g, g + p, 8 + g, 8 + g + p, b, b + p, 8 + b, 8 + b + p, -1, -1, -1, -1));
	const __m256i zero = _mm256_setzero_si256();
	int32_t i = from;
	for (; i + 8 <= to; i += 8) {
		const int32_t *o = at + i;
		const __m256i x = _mm256_set_epi64x(load8(row + o[5]), load8(row + o[4]), load8(row + o[1]), load8(row + o[0]));
		const __m256i y = _mm256_set_epi64x(load8(row + o[7]), load8(row + o[6]), load8(row + o[3]), load8(row + o[2]));
		const __m256i xs = _mm256_shuffle_epi8(x, order), ys = _mm256_shuffle_epi8(y, order);
		const __m256i rg = _mm256_unpacklo_epi32(xs, ys), bs = _mm256_unpackhi_epi32(xs, ys);
		const __m256i w = load(pairs + i);
		const __m256i rs = _mm256_srli_epi32(_mm256_madd_epi16(_mm256_unpacklo_epi8(rg, zero), w), 4);
		const __m256i gs = _mm256_srli_epi32(_mm256_madd_epi16(_mm256_unpackhi_epi8(rg, zero), w), 4);
		const __m256i bl = _mm256_srli_epi32(_mm256_madd_epi16(_mm256_unpacklo_epi8(bs, zero), w), 4);
		const __m256i first = _mm256_permute4x64_epi64(_mm256_packus_epi32(rs, gs), 0xd8);
		const __m256i second = _mm256_permute4x64_epi64(_mm256_packus_epi32(bl, bl), 0xd8);
		_mm_storeu_si128((void *)(dst + i), _mm256_castsi256_si128(first));
		_mm_storeu_si128((void *)(dst + pitch + i), _mm256_extracti128_si256(first, 1));
		_mm_storeu_si128((void *)(dst + 2 * pitch + i), _mm256_castsi256_si128(second));
	}
	return i;
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

// The quotient is corrected with its own remainder, which gives what a division rounds to at a third of its time.
AVX2 static inline __m256 value(const uint8_t *levels, __m256 mean, __m256 std, __m256 inverse) {
	const __m256 x = _mm256_sub_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)levels))), mean);
	const __m256 q = _mm256_mul_ps(x, inverse);
	return _mm256_fmadd_ps(_mm256_fnmadd_ps(q, std, x), inverse, q);
}

AVX2 int32_t eyas_prep_store32(float *dst, const uint8_t *levels, int32_t n, float mean, float std, float inverse) {
	const __m256 m = _mm256_set1_ps(mean), s = _mm256_set1_ps(std), v = _mm256_set1_ps(inverse);
	int32_t i = 0;
	for (; i + 8 <= n; i += 8) _mm256_storeu_ps(dst + i, value(levels + i, m, s, v));
	return i;
}

AVX2 int32_t eyas_prep_store16(uint16_t *dst, const uint8_t *levels, int32_t n, float mean, float std, float inverse) {
	const __m256 m = _mm256_set1_ps(mean), s = _mm256_set1_ps(std), v = _mm256_set1_ps(inverse);
	int32_t i = 0;
	for (; i + 8 <= n; i += 8) _mm_storeu_si128((void *)(dst + i), _mm256_cvtps_ph(value(levels + i, m, s, v), _MM_FROUND_TO_NEAREST_INT));
	return i;
}
