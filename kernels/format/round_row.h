/* round_row.h - rounds a cached token through a format and back to bf16, as inline functions for
 * the host and for CUDA kernels. For a descriptor the result is the bf16 of what
 * cache_format_unpack() returns for the packed row. On a device the threads of a block round a row
 * together (row_team).
 *
 * A row is bf16 [d_c + d_r], RoPE part last. With some descriptors, tokens share scales: those of a
 * page or of the whole tensor, and second-level scales. A shared scale is chosen from the range of
 * the numbers of all tokens that share it. row_add_ranges() collects this range from each of these
 * tokens before row_round() rounds the new ones. */
#ifndef SNAPMLA_KERNELS_FORMAT_ROUND_ROW_H
#define SNAPMLA_KERNELS_FORMAT_ROUND_ROW_H

#include "kernels/format/coded_row.h"
#include "kernels/format/scale_rule.h"

typedef enum {
    ROW_DESCRIPTOR, /* a descriptor without means of columns, and with at most one scale per tensor
                       for each part */
    ROW_CODED,      /* a coded format whose tokens are rounded one by one */
    ROW_KIVI,       /* kivi_column(): groups of KIVI_TOKENS tokens, not rows, are rounded */
    ROW_FP8,        /* the planes of MLA_FP8 (quant_row(), dequant_row()) */
} row_rule;

/* The facts about a format that the functions below need. The struct has no pointers, so it can be
 * copied to a device. */
typedef struct row_format {
    row_rule rule;
    int d_c, d_r;    /* widths of the rows */
    int columns;     /* columns of the format's content: d_c, or more, which are padded with 0 */
    int hadamard;    /* as in cache_format */
    int page_tokens; /* tokens of a page that share ranges. 0: the tokens that a sequence appends
                            at once share them */
    cache_part content, rope;
    coded_kind coded; /* ROW_CODED */
    int setting;      /* ROW_CODED, ROW_KIVI: as in coded_format */
    int exact;        /* the first tokens of a sequence that are not rounded; only with ROW_CODED */
} row_format;

/* The range of 0 and a group of numbers: the FP32 bits of -low and of high. Neither is below 0, so
 * their bits as integers compare like the numbers. All zeros: no numbers yet. */
typedef struct row_range {
    uint32_t low, high;
} row_range;

/* Memory that the threads of a team share. */
typedef struct {
    float x[MLA_MAX_CONTENT + MLA_MAX_ROPE]; /* content with its padding, then RoPE part */
    float scale[MLA_MAX_CONTENT], zero[MLA_MAX_CONTENT];
    float rope_scale[MLA_MAX_ROPE], rope_zero[MLA_MAX_ROPE];
    row_range range[MLA_MAX_CONTENT], rope_range[MLA_MAX_ROPE];
    coded_memory coded; /* its y holds the transformed content of descriptors */
} row_memory;

/* ---- ranges of numbers that share a scale ---------------------------------------------------- */

/* Sets *most to the bits of @x if they are larger. @x is above 0. On a device, several threads may
 * do this at once. */
FORMAT_INLINE void row_raise(uint32_t *most, float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (bits <= *most)
        return;
#ifdef __CUDA_ARCH__
    atomicMax(most, bits);
#else
    *most = bits;
#endif
}

/* Divides x[0 .. n - 1] into @groups groups of neighbouring numbers, and widens the range r[g] by
 * the numbers of group g. */
FORMAT_INLINE void row_widen(row_team t, row_range *r, int groups, const float *x, int n) {
    for (int d = t.rank; d < n; d += t.size) {
        row_range *own = &r[d / (n / groups)];
        if (x[d] > 0.0f)
            row_raise(&own->high, x[d]);
        else if (x[d] < 0.0f) /* a NaN is ignored */
            row_raise(&own->low, -x[d]);
    }
}

FORMAT_INLINE scale_range row_range_of(row_range r) {
    scale_range s;
    s.low = 0.0f - element_float_of_bits(r.low);
    s.high = element_float_of_bits(r.high);
    return s;
}

/* Number of scales that a part has for each token, page or tensor. 1 if it has none of its own. */
FORMAT_INLINE int row_groups(const cache_part *p) {
    return p->scale.kind == SCALE_OWN ? p->scale.plane.columns : 1;
}

/* Number of ranges of a part that tokens share. */
FORMAT_INLINE int row_part_shared(const cache_part *p) {
    if (p->scale.kind != SCALE_OWN)
        return 0;
    if (p->scale.per != SCALE_PER_TOKEN)
        return row_groups(p);
    return p->scale.tensor.columns ? 1 : 0;
}

/* Number of ranges that tokens share. Those of the content come before those of the RoPE part. */
FORMAT_INLINE int row_shared_ranges(const row_format *f) {
    return f->rule == ROW_DESCRIPTOR ? row_part_shared(&f->content) + row_part_shared(&f->rope) : 0;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Reads a row into m->x. Rotates its content if the format does. */
FORMAT_INLINE void row_load(row_team t, const row_format *f, const uint16_t *row, row_memory *m) {
    for (int d = t.rank; d < f->columns; d += t.size) {
        m->x[d] = d < f->d_c ? element_value(ELEMENT_BF16, row[d]) : 0.0f;
        m->coded.y[d] = (double)m->x[d];
    }
    for (int d = t.rank; d < f->d_r; d += t.size)
        m->x[f->columns + d] = element_value(ELEMENT_BF16, row[f->d_c + d]);
    team_wait();
    if (!f->hadamard)
        return;
    team_hadamard(t, m->coded.y, f->columns, f->hadamard);
    for (int d = t.rank; d < f->columns; d += t.size)
        m->x[d] = (float)m->coded.y[d];
    team_wait();
}

FORMAT_INLINE uint16_t row_bf16(double x) {
    return (uint16_t)element_code(ELEMENT_BF16, x);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

/* Sets @scale and @zero to the scales and zero points of a part, [row_groups()]. @own: ranges of
 * the token alone. @shared: ranges that it shares with others. */
FORMAT_INLINE void row_choose(row_team t, const cache_part *p, const row_range *own,
                              const row_range *shared, float *scale, float *zero) {
    for (int g = t.rank; g < row_groups(p); g += t.size) {
        zero[g] = 0.0f;
        scale[g] = p->scale.kind == SCALE_FIXED ? p->scale.fixed : 1.0f;
        if (p->scale.kind != SCALE_OWN)
            continue;
        scale_range r = row_range_of(p->scale.per == SCALE_PER_TOKEN ? own[g] : shared[g]);
        float largest = 0.0f;
        for (int i = 0; i < row_part_shared(p); i++)
            largest = fmaxf(largest, scale_magnitude(row_range_of(shared[i])));
        float tensor = p->scale.tensor.columns ? scale_second_level(p, largest) : 1.0f;
        float value = element_nearest(p->scale.plane.type, (double)scale_ideal(p, r, tensor));
        zero[g] = p->zero.columns ? scale_zero_point(p, r, value) : 0.0f;
        scale[g] = value * tensor;
    }
}

/* The value of @x after rounding to a code of a part. */
FORMAT_INLINE double row_held(const cache_part *p, float x, float scale, float zero) {
    element_type type = p->plane.type;
    return (double)(element_value(type, scale_code(type, x, scale, zero)) - zero) * (double)scale;
}

/* Finds the ranges of the token itself, and chooses its scales and zero points. */
FORMAT_INLINE void row_choose_all(row_team t, const row_format *f, const row_range *shared,
                                  row_memory *m) {
    const cache_scale *rope = &f->rope.scale;
    int groups = row_groups(&f->content), rope_groups = row_groups(&f->rope);
    for (int g = t.rank; g < groups; g += t.size)
        m->range[g].low = m->range[g].high = 0;
    for (int g = t.rank; g < rope_groups; g += t.size)
        m->rope_range[g].low = m->rope_range[g].high = 0;
    team_wait();
    row_widen(t, m->range, groups, m->x, f->columns);
    row_widen(t, rope->kind == SCALE_SHARED ? m->range : m->rope_range, rope_groups,
              m->x + f->columns, f->d_r);
    team_wait();
    row_choose(t, &f->content, m->range, shared, m->scale, m->zero);
    row_choose(t, &f->rope, m->rope_range, shared + row_part_shared(&f->content), m->rope_scale,
               m->rope_zero);
    team_wait();
}

FORMAT_INLINE void row_round_descriptor(row_team t, const row_format *f, uint16_t *row,
                                        const row_range *shared, row_memory *m) {
    cache_scale_kind kind = f->rope.scale.kind;
    const float *rope_scale =
        kind == SCALE_CONTENT || kind == SCALE_SHARED ? m->scale : m->rope_scale;
    int width = f->columns / row_groups(&f->content), rope_width = f->d_r / row_groups(&f->rope);
    row_choose_all(t, f, shared, m);
    for (int d = t.rank; d < f->columns; d += t.size)
        m->coded.y[d] = row_held(&f->content, m->x[d], m->scale[d / width], m->zero[d / width]);
    team_hadamard(t, m->coded.y, f->columns, f->hadamard);
    for (int d = t.rank; d < f->d_c; d += t.size)
        row[d] = row_bf16((double)(float)m->coded.y[d]);
    for (int d = t.rank; d < f->d_r; d += t.size)
        row[f->d_c + d] = row_bf16((double)(float)row_held(&f->rope, m->x[f->columns + d],
                                                           rope_scale[d / rope_width], 0.0f));
}

/* ---- MLA_FP8 --------------------------------------------------------------------------------- */

/* Each product of a code and the scale is rounded once, to bf16. With a descriptor it is first
 * rounded to fp32. */
FORMAT_INLINE void row_round_fp8(row_team t, const row_format *f, uint16_t *row, row_memory *m) {
    if (t.rank == 0)
        m->range[0].low = m->range[0].high = 0;
    team_wait();
    row_widen(t, m->range, 1, m->x, f->d_c);
    team_wait();
    float largest = scale_magnitude(row_range_of(m->range[0]));
    float scale = (largest > QUANT_MIN_MAX ? largest : QUANT_MIN_MAX) / E4M3_MAX;
    for (int d = t.rank; d < f->d_c + f->d_r; d += t.size) {
        double code = (double)element_nearest(d < f->d_c ? ELEMENT_E4M3FN : ELEMENT_BF16,
                                              (double)(m->x[d] / scale));
        row[d] = row_bf16(code * (double)scale);
    }
}

/* ---- whole rows ------------------------------------------------------------------------------ */

/* Widens the ranges @shared [row_shared_ranges()] by the numbers of a token. Several teams may do
 * this at once with the same ranges. */
FORMAT_INLINE void row_add_ranges(row_team t, const row_format *f, const uint16_t *row,
                                  row_range *shared, row_memory *m) {
    int content = row_part_shared(&f->content), rope = row_part_shared(&f->rope);
    row_load(t, f, row, m);
    if (content)
        row_widen(t, shared, content, m->x, f->columns);
    if (content && f->rope.scale.kind == SCALE_SHARED) /* content and RoPE share one range */
        row_widen(t, shared, content, m->x + f->columns, f->d_r);
    if (rope)
        row_widen(t, shared + content, rope, m->x + f->columns, f->d_r);
}

/* Rounds a row in place. It must not be called for ROW_KIVI. @shared: the ranges from
 * row_add_ranges(). */
FORMAT_INLINE void row_round(row_team t, const row_format *f, uint16_t *row,
                             const row_range *shared, row_memory *m) {
    row_load(t, f, row, m);
    if (f->rule == ROW_DESCRIPTOR) {
        row_round_descriptor(t, f, row, shared, m);
    } else if (f->rule == ROW_FP8) {
        row_round_fp8(t, f, row, m);
    } else {
        coded_row(t, f->coded, f->setting, m->x, f->d_c, &m->coded);
        for (int d = t.rank; d < f->d_c; d += t.size)
            row[d] = row_bf16((double)m->x[d]);
    }
}

/* Rounds column @d of a group of KIVI_TOKENS rows (ROW_KIVI). The first @before rows of the group
 * are at @rows, the others at @next. Rows are d_c + d_r numbers apart. */
FORMAT_INLINE void row_round_column(const row_format *f, uint16_t *rows, int before, uint16_t *next,
                                    int d) {
    float x[KIVI_TOKENS];
    int width = f->d_c + f->d_r;
    for (int i = 0; i < KIVI_TOKENS; i++)
        x[i] = element_value(ELEMENT_BF16,
                             i < before ? rows[i * width + d] : next[(i - before) * width + d]);
    kivi_column(x, 1, f->setting);
    for (int i = 0; i < KIVI_TOKENS; i++)
        *(i < before ? &rows[i * width + d] : &next[(i - before) * width + d]) =
            row_bf16((double)x[i]);
}

#endif
