//go:build amd64 || arm64

// The pass over a band of rows: it calls the kernels of the processor and does with plain C what they leave over, so that
// nothing outside of the planes' rows and of the tensor's sample is touched.
#include "kernels.h"

#include <string.h>

// Where a band keeps rows of the picture. Vectors may run over the ends, hence the room.
typedef struct {
	uint8_t *pixels;   // a converted row, R G B x
	int16_t *mixed[2]; // source rows mixed horizontally, one channel after the other
	uint8_t *levels;   // an output row, likewise
	int64_t held[2];   // the source row that each of mixed holds
	int32_t pitch;     // from channel to channel
} rows;

static int32_t clamp(int32_t v) { return v < -128 ? 0 : v > 127 ? 255 : v + 128; }

// The kernels' multiplication: a product of two fractions of 15 bits, rounded.
static int32_t scaled(int32_t a, int32_t b) { return (a * b + (1 << 14)) >> 15; }

// Reads, and converts, the pixel of column x.
static void read_pixel(const eyas_prep_job *j, const eyas_prep_samples *s, int32_t x, uint8_t rgb[3]) {
	const int32_t cx = j->yuv ? x / 2 : x;
	const int32_t c[3] = {s->at[0][(int64_t)x * s->step[0]], s->at[1][(int64_t)cx * s->step[1]], s->at[2][(int64_t)cx * s->step[2]]};
	if (!j->yuv) {
		rgb[0] = c[0], rgb[1] = c[1], rgb[2] = c[2];
		return;
	}
	const int32_t u = (c[1] - 128) * 256, v = (c[2] - 128) * 256;
	int32_t y = c[0] > j->black ? (c[0] - j->black) * 128 : 0;
	y += scaled(y, j->y) - 128 * 128 + 63;
	rgb[0] = clamp((y + scaled(v, j->vr)) >> 7);
	rgb[1] = clamp((y + scaled(v, j->vg) + scaled(u, j->ug)) >> 7);
	rgb[2] = clamp((y + (u >> 1) + scaled(u, j->ub)) >> 7);
}

// The samples of source row y from column x on, which is even where pairs share their chroma.
static eyas_prep_samples samples(const eyas_prep_job *j, const uint8_t *const *planes, int64_t y, int64_t x) {
	const uint8_t *p = planes[0] + y * j->stride[0] + x * j->pixel;
	const int64_t chroma_row = y >> j->sub_rows;
	const int32_t n = j->pixel;
	if (j->yuv && j->planes == 1) return (eyas_prep_samples){{p, p + 1, p + 3}, {2, 4, 4}};
	if (j->planes == 2) {
		const uint8_t *uv = planes[1] + chroma_row * j->stride[1] + x;
		return (eyas_prep_samples){{p, uv, uv + 1}, {1, 2, 2}};
	}
	if (j->planes == 3)
		return (eyas_prep_samples){{p, planes[1] + chroma_row * j->stride[1] + x / 2, planes[2] + chroma_row * j->stride[2] + x / 2}, {1, 1, 1}};
	if (n == 1) return (eyas_prep_samples){{p, p, p}, {1, 1, 1}};
	return (eyas_prep_samples){{p + j->red, p + 1, p + 2 - j->red}, {n, n, n}};
}

// Converts the columns in use of source row y to R G B x, or to their luma thrice, with the Go twin's weights.
static void convert(const eyas_prep_job *j, uint8_t *dst, const uint8_t *const *planes, int64_t y) {
	const eyas_prep_samples s = samples(j, planes, y, j->first);
	for (int32_t i = j->yuv ? eyas_prep_convert(j, dst, &s, j->span) : 0; i < j->span; i++) read_pixel(j, &s, i, dst + 4 * i);
	if (!j->luma) return;
	for (int32_t i = 0; i < j->span; i++, dst += 4)
		dst[0] = dst[1] = dst[2] = (dst[0] * 9798 + dst[1] * 19235 + dst[2] * 3735 + (1 << 14)) >> 15;
}

// Prefetches the columns in use of source row y.
static void prefetch(const eyas_prep_job *j, const uint8_t *const *planes, int64_t y) {
	const eyas_prep_samples s = samples(j, planes, y, j->first);
	for (int32_t p = 0; p < j->planes; p++) {
		const int64_t n = (int64_t)(p > 0 ? j->span / 2 : j->span) * s.step[p];
		for (int64_t i = 0; i < n; i += 64) __builtin_prefetch(s.at[p] + i);
	}
}

// Mixes source row y into buffer k, unless it is there; next is the row that will be read after it.
static void mix(const eyas_prep_job *j, rows *s, int k, const uint8_t *const *planes, int64_t y, int64_t next, const int32_t *at,
	const eyas_prep_pair *pairs) {
	if (s->held[k] == y) return;
	s->held[k] = y;
	const uint8_t *row = planes[0] + y * j->stride[0], *ahead = planes[0] + next * j->stride[0];
	int32_t pixel = j->pixel, red = j->red;
	if (j->yuv || pixel == 1 || j->luma) {
		convert(j, s->pixels, planes, y);
		row = s->pixels, ahead = NULL, pixel = 4, red = 0;
	}
	int16_t *dst = s->mixed[k];
	for (int32_t i = 0; i < j->new_w; i++) {
		if (i == j->safe_from) i = eyas_prep_mix_columns(dst, s->pitch, row, ahead, at, pairs, i, j->safe_to, pixel, red);
		if (i == j->new_w) return;
		const uint8_t *p = row + at[i];
		for (int32_t c = 0; c < 3; c++) {
			const int32_t byte = c == 1 ? 1 : c == 0 ? red : 2 - red;
			const int32_t right = pairs[i].right == 0 ? 0 : p[pixel + byte] * pairs[i].right;
			dst[c * s->pitch + i] = (p[byte] * pairs[i].left + right) >> 4;
		}
	}
}

// Puts the levels of source row y, where each column is one of its pixels, into the output row.
static void pick(const eyas_prep_job *j, rows *s, const uint8_t *const *planes, int64_t y, const int32_t *xs) {
	const eyas_prep_samples from = samples(j, planes, y, 0);
	for (int32_t i = 0; i < j->new_w; i++) {
		if (i == j->pick_from) i = eyas_prep_pick_columns(j, s->levels, s->pitch, &from);
		if (i == j->new_w) return;
		uint8_t rgb[3];
		read_pixel(j, &from, xs[i], rgb);
		for (int32_t c = 0; c < 3; c++) s->levels[c * s->pitch + i] = rgb[c];
	}
}

// Writes n elements of one value, step elements apart.
static void fill(void *dst, int32_t size, int64_t n, int32_t step, const void *value, int32_t stream) {
	uint8_t v1;
	uint16_t v2;
	uint32_t v4;
	switch (size) {
	case 1:
		for (memcpy(&v1, value, 1); n-- > 0; dst = (uint8_t *)dst + step) *(uint8_t *)dst = v1;
		break;
	case 2:
		for (memcpy(&v2, value, 2); n-- > 0; dst = (uint16_t *)dst + step) *(uint16_t *)dst = v2;
		break;
	default:
		memcpy(&v4, value, 4);
		if (step == 1) eyas_prep_fill32(dst, v4, n, stream);
		else
			for (; n-- > 0; dst = (uint32_t *)dst + step) *(uint32_t *)dst = v4;
	}
}

// Writes n pixels of padding from element `pixel` of the sample.
static void pad(const eyas_prep_job *j, const uint8_t *tables, uint8_t *dst, int64_t pixel, int64_t n) {
	for (int32_t c = 0; c < j->channels; c++) {
		const uint8_t *value = tables + (256 * c + j->pad) * j->size;
		if (j->nhwc) fill(dst + (pixel * j->channels + c) * j->size, j->size, n, j->channels, value, 0);
		else fill(dst + ((int64_t)c * j->in_w * j->in_h + pixel) * j->size, j->size, n, 1, value, j->stream);
	}
}

// Looks up the values of levels from..n.
static void look_up(uint8_t *dst, int32_t size, int32_t step, const uint8_t *table, const uint8_t *levels, int32_t from, int32_t n) {
	switch (size) {
	case 1:
		for (int32_t i = from; i < n; i++) dst[i * step] = table[levels[i]];
		break;
	case 2:
		for (int32_t i = from; i < n; i++) ((uint16_t *)dst)[i * step] = ((const uint16_t *)table)[levels[i]];
		break;
	default:
		for (int32_t i = from; i < n; i++) ((uint32_t *)dst)[i * step] = ((const uint32_t *)table)[levels[i]];
	}
}

// Writes an output row of levels.
static void store(const eyas_prep_job *j, const rows *s, const uint8_t *tables, uint8_t *dst, int32_t y) {
	const int64_t pixel = (int64_t)y * j->in_w + j->left;
	for (int32_t c = 0; c < j->channels; c++) {
		const uint8_t *levels = s->levels + s->pitch * (j->bgr && j->channels == 3 ? 2 - c : c);
		const uint8_t *table = tables + 256 * c * j->size;
		if (j->nhwc) {
			look_up(dst + (pixel * j->channels + c) * j->size, j->size, j->channels, table, levels, 0, j->new_w);
			continue;
		}
		uint8_t *row = dst + ((int64_t)c * j->in_w * j->in_h + pixel) * j->size;
		int32_t done = 0;
		if (j->computed && j->size == 4)
			done = eyas_prep_store32((float *)row, levels, j->new_w, j->mean[c], j->factor[c], j->rest[c], j->stream);
		else if (j->computed && j->size == 2)
			done = eyas_prep_store16((uint16_t *)row, levels, j->new_w, j->mean[c], j->factor[c], j->rest[c]);
		look_up(row, j->size, 1, table, levels, done, j->new_w);
	}
}

void eyas_prep_band(const eyas_prep_job *j, const uint8_t *p0, const uint8_t *p1, const uint8_t *p2, const int32_t *xs, const int32_t *at,
	const eyas_prep_pair *pairs, const eyas_prep_line *lines, const uint8_t *tables, uint8_t *scratch, uint8_t *dst,
	int32_t from, int32_t to) {
	const uint8_t *const planes[3] = {p0, p1, p2};
	rows s = {.held = {-1, -1}, .pitch = (j->new_w + 31) / 32 * 32};
	s.mixed[0] = (int16_t *)scratch;
	s.mixed[1] = s.mixed[0] + 3 * s.pitch;
	s.levels = (uint8_t *)(s.mixed[1] + 3 * s.pitch);
	s.pixels = s.levels + 3 * s.pitch;
	const int32_t bottom = j->top + j->new_h, right = j->left + j->new_w;
	if (from < j->top) pad(j, tables, dst, (int64_t)from * j->in_w, (int64_t)((to < j->top ? to : j->top) - from) * j->in_w);
	for (int32_t y = from > j->top ? from : j->top; y < to && y < bottom; y++) {
		const eyas_prep_line l = lines[y - j->top], after = lines[(y + 1 < bottom ? y + 1 : y) - j->top];
		if (j->exact && l.w0 == 1 << 11 && l.w1 == 0) {
			if (after.a > l.a + 1) prefetch(j, planes, after.a); // the processor does not foresee that rows are left out
			pick(j, &s, planes, l.a, xs);
		} else {
			// Which buffer is for row a; the other is for b. Rows that are there stay.
			const int k = s.held[1] == l.a || (s.held[0] == l.b && s.held[0] != l.a);
			const int other = l.b == l.a ? k : !k;
			const int64_t following = after.a > l.b ? after.a : after.b;
			mix(j, &s, k, planes, l.a, l.b > l.a ? l.b : following, at, pairs);
			mix(j, &s, other, planes, l.b, following, at, pairs);
			eyas_prep_mix_rows(s.levels, s.mixed[k], s.mixed[other], l.w0, l.w1, 3 * s.pitch);
		}
		store(j, &s, tables, dst, y);
		pad(j, tables, dst, (int64_t)y * j->in_w, j->left);
		pad(j, tables, dst, (int64_t)y * j->in_w + right, j->in_w - right);
	}
	const int32_t below = from > bottom ? from : bottom;
	if (below < to) pad(j, tables, dst, (int64_t)below * j->in_w, (int64_t)(to - below) * j->in_w);
	if (j->stream) eyas_prep_fence();
}
