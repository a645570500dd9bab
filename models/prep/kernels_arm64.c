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

// The shares of chroma in 8 pixels, or pairs of pixels. That of blue is in two parts.
typedef struct {
	int16x8_t r, g, b, b1;
} shares;

static inline shares shares_of(const eyas_prep_job *j, uint8x8_t u, uint8x8_t v) {
	const uint8x8_t sign = vdup_n_u8(128);
	const int16x8_t us = vreinterpretq_s16_u16(vshll_n_u8(veor_u8(u, sign), 8)), vs = vreinterpretq_s16_u16(vshll_n_u8(veor_u8(v, sign), 8));
	return (shares){vqrdmulhq_n_s16(vs, j->vr), vaddq_s16(vqrdmulhq_n_s16(vs, j->vg), vqrdmulhq_n_s16(us, j->ug)),
		vqrdmulhq_n_s16(us, j->ub), vshrq_n_s16(us, 1)};
}

// The share of luma in 8 pixels, with the half that rounds, one unit short (colour.go).
static inline int16x8_t luma_share(const eyas_prep_job *j, uint8x8_t y) {
	const int16x8_t l = vreinterpretq_s16_u16(vshll_n_u8(y, 7));
	return vaddq_s16(vsubq_s16(l, vdupq_n_s16(128 * 128 - 63)), vqrdmulhq_n_s16(l, j->y));
}

// Levels of 16 pixels from their luma samples and the shares of the first and the last 8.
static inline uint8x16x3_t to_rgb(const eyas_prep_job *j, uint8x16_t luma, const shares *l, const shares *h) {
	luma = vqsubq_u8(luma, vdupq_n_u8(j->black));
	const int16x8_t lo = luma_share(j, vget_low_u8(luma)), hi = luma_share(j, vget_high_u8(luma));
	return (uint8x16x3_t){{
		levels(vqaddq_s16(lo, l->r), vqaddq_s16(hi, h->r)),
		levels(vqaddq_s16(lo, l->g), vqaddq_s16(hi, h->g)),
		levels(vqaddq_s16(vqaddq_s16(lo, l->b1), l->b), vqaddq_s16(vqaddq_s16(hi, h->b1), h->b)),
	}};
}

int32_t eyas_prep_convert(const eyas_prep_job *j, uint8_t *dst, const eyas_prep_samples *s, int32_t n) {
	int32_t i = 0;
	for (; i + 16 <= n; i += 16) {
		uint8x16_t luma;
		uint8x8x2_t c; // 8 samples of each
		if (j->planes == 1) { // Y U Y V
			const uint8x8x4_t p = vld4_u8(s->at[0] + 2 * i);
			luma = vcombine_u8(vzip1_u8(p.val[0], p.val[2]), vzip2_u8(p.val[0], p.val[2]));
			c.val[0] = p.val[1], c.val[1] = p.val[3];
		} else {
			luma = vld1q_u8(s->at[0] + i);
			if (j->planes == 2) c = vld2_u8(s->at[1] + i);
			else c.val[0] = vld1_u8(s->at[1] + i / 2), c.val[1] = vld1_u8(s->at[2] + i / 2);
		}
		const shares pair = shares_of(j, c.val[0], c.val[1]);
#define TWICE(zip) {zip(pair.r, pair.r), zip(pair.g, pair.g), zip(pair.b, pair.b), zip(pair.b1, pair.b1)}
		const shares lo = TWICE(vzip1q_s16), hi = TWICE(vzip2q_s16);
#undef TWICE
		const uint8x16x3_t rgb = to_rgb(j, luma, &lo, &hi);
		vst4q_u8(dst + 4 * i, ((uint8x16x4_t){{rgb.val[0], rgb.val[1], rgb.val[2], vdupq_n_u8(0)}}));
	}
	return i;
}

int32_t eyas_prep_pick_columns(const eyas_prep_job *j, uint8_t *dst, int32_t pitch, const eyas_prep_samples *s) {
	int32_t i = j->pick_from;
	for (; i + 16 <= j->pick_to; i += 16) {
		uint8x16x3_t c;
		for (int k = 0; k < 3; k++) {
			const eyas_prep_pick *o = &j->pick[k];
			const uint8_t *p = s->at[k] + o->base + (int64_t)i / 16 * o->step;
			c.val[k] = vdupq_n_u8(0);
			for (int32_t w = 0; w < o->windows; w++) c.val[k] = vorrq_u8(c.val[k], vqtbl1q_u8(vld1q_u8(p + 16 * w), vld1q_u8(o->order[w])));
		}
		if (j->yuv) {
			const shares lo = shares_of(j, vget_low_u8(c.val[1]), vget_low_u8(c.val[2]));
			const shares hi = shares_of(j, vget_high_u8(c.val[1]), vget_high_u8(c.val[2]));
			c = to_rgb(j, c.val[0], &lo, &hi);
		}
		for (int k = 0; k < 3; k++) vst1q_u8(dst + k * pitch + i, c.val[k]);
	}
	return i;
}

int32_t eyas_prep_mix_columns(int16_t *dst, int32_t pitch, const uint8_t *row, const uint8_t *next, const int32_t *at,
	const eyas_prep_pair *pairs, int32_t from, int32_t to, int32_t pixel, int32_t red) {
	// Four columns of two pixels each: which bytes are the left ones of red and green, and of blue, then the right ones.
	const uint8_t r = red, g = 1, b = 2 - red;
	const uint8_t first[16] = {r, 8 + r, 16 + r, 24 + r, g, 8 + g, 16 + g, 24 + g, b, 8 + b, 16 + b, 24 + b, b, 8 + b, 16 + b, 24 + b};
	const uint8x16_t left = vld1q_u8(first), right = vaddq_u8(left, vdupq_n_u8(pixel));
	int32_t i = from;
	for (; i + 4 <= to; i += 4) {
		uint8x16x2_t p;
		if (next) __builtin_prefetch(next + at[i]);
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

static inline float32x4_t value(uint16x4_t levels, float32x4_t mean, float32x4_t factor, float32x4_t rest) {
	const float32x4_t x = vsubq_f32(vcvtq_f32_u32(vmovl_u16(levels)), mean);
	return vfmaq_f32(vmulq_f32(x, rest), x, factor);
}

// Without streaming stores: these processors see by themselves that whole lines are written, and do not read them first.
int32_t eyas_prep_store32(float *dst, const uint8_t *levels, int32_t n, float mean, float factor, float rest, int32_t stream) {
	const float32x4_t m = vdupq_n_f32(mean), f = vdupq_n_f32(factor), r = vdupq_n_f32(rest);
	int32_t i = 0;
	for (; i + 8 <= n; i += 8) {
		const uint16x8_t l = vmovl_u8(vld1_u8(levels + i));
		vst1q_f32(dst + i, value(vget_low_u16(l), m, f, r));
		vst1q_f32(dst + i + 4, value(vget_high_u16(l), m, f, r));
	}
	return i;
}

int32_t eyas_prep_store16(uint16_t *dst, const uint8_t *levels, int32_t n, float mean, float factor, float rest) {
	const float32x4_t m = vdupq_n_f32(mean), f = vdupq_n_f32(factor), r = vdupq_n_f32(rest);
	int32_t i = 0;
	for (; i + 8 <= n; i += 8) {
		const uint16x8_t l = vmovl_u8(vld1_u8(levels + i));
		const float16x4_t lo = vcvt_f16_f32(value(vget_low_u16(l), m, f, r)), hi = vcvt_f16_f32(value(vget_high_u16(l), m, f, r));
		vst1q_u16(dst + i, vcombine_u16(vreinterpret_u16_f16(lo), vreinterpret_u16_f16(hi)));
	}
	return i;
}

void eyas_prep_fill32(uint32_t *dst, uint32_t v, int64_t n, int32_t stream) {
	for (int64_t i = 0; i < n; i++) dst[i] = v;
}

void eyas_prep_fence(void) {}
