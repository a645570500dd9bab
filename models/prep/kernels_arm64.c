// The kernels for arm64: NEON, which every such processor has, 16 pixels or 4 columns a step. Each gives the bits of its
// counterpart in kernels_amd64.c.
#include "kernels.h"

#include <arm_neon.h>

int eyas_prep_supported(void) { return 1; }

// Clamps sums, in 128ths of a level less 128 levels, to levels.
static inline uint8x16_t levels(int16x8_t lo, int16x8_t hi) {
	const int8x16_t s = vqshrn_high_n_s16(vqshrn_n_s16(lo, 7), hi, 7);
	return veorq_u8(vreinterpretq_u8_s8(s), vdupq_n_u8(128));
}

// Chroma less 128 in the high byte.
static inline int16x8_t centred(uint8x8_t c) { return vreinterpretq_s16_u16(veorq_u16(vshll_n_u8(c, 8), vdupq_n_u16(0x8000))); }

static inline int16x8_t luma_share(uint8x8_t y, int16_t k) {
	const int16x8_t l = vreinterpretq_s16_u16(vshll_n_u8(y, 7));
	return vaddq_s16(vsubq_s16(l, vdupq_n_s16(128 * 128 - 63)), vqrdmulhq_n_s16(l, k));
}

int32_t eyas_prep_convert(const eyas_prep_job *j, uint8_t *dst, const uint8_t *y, const uint8_t *u, const uint8_t *v, int32_t n) {
	int32_t i = 0;
	for (; i + 16 <= n; i += 16) {
		uint8x16_t luma;
		uint8x8x2_t c; // 8 samples of each
		switch (j->planes) {
		case 1: {
			const uint8x8x4_t p = vld4_u8(y + 2 * i);
			luma = vcombine_u8(vzip1_u8(p.val[0], p.val[2]), vzip2_u8(p.val[0], p.val[2]));
			c.val[0] = p.val[1], c.val[1] = p.val[3];
			break;
		}
		case 2:
			luma = vld1q_u8(y + i);
			c = vld2_u8(u + i);
			break;
		default:
			luma = vld1q_u8(y + i);
			c.val[0] = vld1_u8(u + i / 2), c.val[1] = vld1_u8(v + i / 2);
		}
		const int16x8_t us = centred(c.val[0]), vs = centred(c.val[1]);
		const int16x8_t r = vqrdmulhq_n_s16(vs, j->vr);
		const int16x8_t g = vaddq_s16(vqrdmulhq_n_s16(vs, j->vg), vqrdmulhq_n_s16(us, j->ug));
		const int16x8_t b = vqrdmulhq_n_s16(us, j->ub), b1 = vshrq_n_s16(us, 1);

		luma = vqsubq_u8(luma, vdupq_n_u8(j->black));
		const int16x8_t lo = luma_share(vget_low_u8(luma), j->y), hi = luma_share(vget_high_u8(luma), j->y);
		uint8x16x4_t p;
		p.val[0] = levels(vqaddq_s16(lo, vzip1q_s16(r, r)), vqaddq_s16(hi, vzip2q_s16(r, r)));
		p.val[1] = levels(vqaddq_s16(lo, vzip1q_s16(g, g)), vqaddq_s16(hi, vzip2q_s16(g, g)));
		p.val[2] = levels(vqaddq_s16(vqaddq_s16(lo, vzip1q_s16(b1, b1)), vzip1q_s16(b, b)),
			vqaddq_s16(vqaddq_s16(hi, vzip2q_s16(b1, b1)), vzip2q_s16(b, b)));
		p.val[3] = vdupq_n_u8(0);
		vst4q_u8(dst + 4 * i, p);
	}
	return i;
}

int32_t eyas_prep_mix_columns(int16_t *dst, int32_t pitch, const uint8_t *row, const int32_t *at, const eyas_prep_pair *pairs,
	int32_t from, int32_t to, int32_t pixel, int32_t red) {
	// Four columns of two pixels each: which bytes are the left ones of red and green, and of blue, then the right ones.
	const uint8_t r = red, g = 1, b = 2 - red;
	const uint8_t first[16] = {r, 8 + r, 16 + r, 24 + r, g, 8 + g, 16 + g, 24 + g, b, 8 + b, 16 + b, 24 + b, b, 8 + b, 16 + b, 24 + b};
	const uint8x16_t left = vld1q_u8(first), right = vaddq_u8(left, vdupq_n_u8(pixel));
	int32_t i = from;
	for (; i + 4 <= to; i += 4) {
		uint8x16x2_t p;
		p.val[0] = vcombine_u8(vld1_u8(row + at[i]), vld1_u8(row + at[i + 1]));
		p.val[1] = vcombine_u8(vld1_u8(row + at[i + 2]), vld1_u8(row + at[i + 3]));
		const uint8x16_t a = vqtbl2q_u8(p, left), c = vqtbl2q_u8(p, right);
		const uint16x8_t a0 = vmovl_u8(vget_low_u8(a)), a1 = vmovl_high_u8(a), c0 = vmovl_u8(vget_low_u8(c)), c1 = vmovl_high_u8(c);
		const int16x4x2_t w = vld2_s16((const int16_t *)(pairs + i));
		const uint16x4_t w0 = vreinterpret_u16_s16(w.val[0]), w1 = vreinterpret_u16_s16(w.val[1]);
		const uint32x4_t rs = vmlal_u16(vmull_u16(vget_low_u16(a0), w0), vget_low_u16(c0), w1);
		const uint32x4_t gs = vmlal_u16(vmull_u16(vget_high_u16(a0), w0), vget_high_u16(c0), w1);
		const uint32x4_t bs = vmlal_u16(vmull_u16(vget_low_u16(a1), w0), vget_low_u16(c1), w1);
		vst1_s16(dst + i, vreinterpret_s16_u16(vshrn_n_u32(rs, 4)));
		vst1_s16(dst + pitch + i, vreinterpret_s16_u16(vshrn_n_u32(gs, 4)));
		vst1_s16(dst + 2 * pitch + i, vreinterpret_s16_u16(vshrn_n_u32(bs, 4)));
	}
	return i;
}

// Eight 15-bit levels mixed with eight others. The doubled product's upper half, halved again, is the product's.
static inline uint16x8_t mixed(const int16_t *a, const int16_t *b, int16_t w0, int16_t w1) {
	const int16x8_t p = vshrq_n_s16(vqdmulhq_n_s16(vld1q_s16(a), w0), 1), q = vshrq_n_s16(vqdmulhq_n_s16(vld1q_s16(b), w1), 1);
	return vreinterpretq_u16_s16(vaddq_s16(p, q));
}

void eyas_prep_mix_rows(uint8_t *dst, const int16_t *a, const int16_t *b, int32_t w0, int32_t w1, int32_t n) {
	for (int32_t i = 0; i < n; i += 16) {
		const uint8x8_t lo = vrshrn_n_u16(mixed(a + i, b + i, w0, w1), 2), hi = vrshrn_n_u16(mixed(a + i + 8, b + i + 8, w0, w1), 2);
		vst1q_u8(dst + i, vcombine_u8(lo, hi));
	}
}

// The quotient is corrected with its own remainder, which gives what a division rounds to at a third of its time.
static inline float32x4_t value(uint16x4_t levels, float32x4_t mean, float32x4_t std, float32x4_t inverse) {
	const float32x4_t x = vsubq_f32(vcvtq_f32_u32(vmovl_u16(levels)), mean);
	const float32x4_t q = vmulq_f32(x, inverse);
	return vfmaq_f32(q, vfmsq_f32(x, q, std), inverse);
}

int32_t eyas_prep_store32(float *dst, const uint8_t *levels, int32_t n, float mean, float std, float inverse) {
	const float32x4_t m = vdupq_n_f32(mean), s = vdupq_n_f32(std), v = vdupq_n_f32(inverse);
	int32_t i = 0;
	for (; i + 8 <= n; i += 8) {
		const uint16x8_t l = vmovl_u8(vld1_u8(levels + i));
		vst1q_f32(dst + i, value(vget_low_u16(l), m, s, v));
		vst1q_f32(dst + i + 4, value(vget_high_u16(l), m, s, v));
	}
	return i;
}

int32_t eyas_prep_store16(uint16_t *dst, const uint8_t *levels, int32_t n, float mean, float std, float inverse) {
	const float32x4_t m = vdupq_n_f32(mean), s = vdupq_n_f32(std), v = vdupq_n_f32(inverse);
	int32_t i = 0;
	for (; i + 8 <= n; i += 8) {
		const uint16x8_t l = vmovl_u8(vld1_u8(levels + i));
		const float16x4_t lo = vcvt_f16_f32(value(vget_low_u16(l), m, s, v)), hi = vcvt_f16_f32(value(vget_high_u16(l), m, s, v));
		vst1q_u16(dst + i, vcombine_u16(vreinterpret_u16_f16(lo), vreinterpret_u16_f16(hi)));
	}
	return i;
}
