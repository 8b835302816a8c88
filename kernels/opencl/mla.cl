/* mla.cl - both arms and the dataflow in plain OpenCL C 1.2: no extensions, FP32 sums, 64
 * work-items per work-group.
 *
 * With ATTEND defined, this is the attention of one kind of plan. Then these must be defined, too:
 * D_C, D_R, ROWS (rows per work-group: 1, 8 or 16) and FP8 (0 or 1). Without ATTEND, it is the
 * dataflow and the probes. Every buffer argument is followed by an offset in bytes. */
#define PAGE 64
#define GROUP 64
#define E4M3_MAX 448.0f

#define AT(type, p) ((__global type *)((p) + p##_at))

/* ---- formats: as in kernels/formats.h; NaNs and subnormal FP32 numbers may differ ---- */

float bf16_decode(ushort b) {
    return as_float((uint)b << 16);
}

ushort bf16_encode(float x) {
    uint u = as_uint(x);
    return isnan(x) ? (ushort)(u >> 16 | 0x40u) : (ushort)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

float e4m3_decode(uchar b) {
    uint e = b >> 3 & 15u, m = b & 7u;
    float x = e ? as_float((e + 120u) << 23 | m << 20) : (float)m * 0x1p-9f;
    x = e == 15u && m == 7u ? NAN : x;
    return b & 0x80 ? -x : x;
}

uchar e4m3_encode(float x) {
    uint u = as_uint(x), sign = u >> 24 & 0x80u, magnitude = u & 0x7fffffffu;
    if (isnan(x))
        return (uchar)(sign | 0x7fu);
    if (magnitude < as_uint(0x1p-6f)) /* subnormal: steps of 2^-9 */
        return (uchar)(sign | convert_uint_rte(as_float(magnitude) * 512.0f));
    if (magnitude > as_uint(E4M3_MAX))
        magnitude = as_uint(E4M3_MAX);
    return (uchar)(sign | ((magnitude + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20) - (120u << 3));
}

/* A division whose quotient is corrected twice, because OpenCL allows an error of 2.5 units in the
 * last place. Quotients below 2^-100 in magnitude are not corrected. */
float divide(float a, float b) {
    float q = a / b, r = 1.0f / b;
    if (!isfinite(q) || fabs(q) < 0x1p-100f)
        return q;
    q = fma(fma(-q, b, a), r, q);
    return fma(fma(-q, b, a), r, q);
}

/* Rounds the exact product x * y to bf16 once. It is first rounded to FP32 with round-to-odd: if
 * anything was lost, the last bit becomes 1. */
ushort bf16_product(float x, float y) {
    float near = x * y, rest = fma(x, y, -near);
    uint u = as_uint(near);
    if (isfinite(near) && rest != 0.0f && (u & 1u) == 0)
        u = signbit(rest) == signbit(near) ? u + 1 : u - 1;
    return bf16_encode(as_float(u));
}

/* ---- the paged cache ---- */

int length_of(__global const int *lengths, int b, int room) {
    return clamp(lengths[b], 0, room);
}

ulong slot_of(__global const int *table_row, int pages, int token) {
    return (ulong)clamp(table_row[token / PAGE], 0, pages - 1) * PAGE + token % PAGE;
}

#ifndef ATTEND

/* ---- dataflow ---- */

/* Quantises one row with the whole work-group. @pow2: the scale is rounded up to a power of two;
 * adding all bits of a mantissa carries into the exponent unless the mantissa is zero. */
void quantise(__global const ushort *row, int d_c, int d_r, int pow2, __global uchar *c8,
              __global ushort *rope, __global float *scale, __local float *maxima) {
    int t = get_local_id(0);
    float largest = 1e-10f;
    for (int d = t; d < d_c; d += GROUP) {
        float x = fabs(bf16_decode(row[d]));
        largest = x > largest ? x : largest; /* false for a NaN */
    }
    maxima[t] = largest;
    for (int step = GROUP / 2; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t < step)
            maxima[t] = fmax(maxima[t], maxima[t + step]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float a = divide(maxima[0], E4M3_MAX);
    if (pow2)
        a = as_float((as_uint(a) + 0x7fffffu) & 0x7f800000u);
    for (int d = t; d < d_c; d += GROUP)
        c8[d] = e4m3_encode(divide(bf16_decode(row[d]), a));
    for (int d = t; d < d_r; d += GROUP)
        rope[d] = bf16_encode(divide(bf16_decode(row[d_c + d]), a));
    if (t == 0)
        *scale = a;
}

__kernel void quant_q(__global uchar *q, ulong q_at, __global uchar *q8, ulong q8_at,
                      __global uchar *rope, ulong rope_at, __global uchar *scale, ulong scale_at,
                      int d_c, int d_r, int pow2) {
    __local float maxima[GROUP];
    ulong i = get_group_id(0);
    quantise(AT(ushort, q) + i * (d_c + d_r), d_c, d_r, pow2, AT(uchar, q8) + i * d_c,
             AT(ushort, rope) + i * d_r, AT(float, scale) + i, maxima);
}

__kernel void append(__global uchar *kv, ulong kv_at, __global uchar *content, ulong content_at,
                     __global uchar *rope, ulong rope_at, __global uchar *scale, ulong scale_at,
                     __global uchar *lengths, ulong lengths_at, __global uchar *table,
                     ulong table_at, int fp8, int d_c, int d_r, int width, int pages, int room,
                     int s_q, int pow2) {
    __local float maxima[GROUP];
    int i = get_group_id(0), b = i / s_q, w = d_c + d_r;
    int token = length_of(AT(int, lengths), b, room) - s_q + i % s_q;
    if (token < 0)
        return;
    ulong slot = slot_of(AT(int, table) + (long)b * width, pages, token);
    __global const ushort *row = AT(ushort, kv) + (long)i * w;
    if (fp8)
        quantise(row, d_c, d_r, pow2, AT(uchar, content) + slot * d_c,
                 AT(ushort, rope) + slot * d_r, AT(float, scale) + slot, maxima);
    else
        for (int d = get_local_id(0); d < w; d += GROUP)
            AT(ushort, content)[slot * w + d] = row[d];
}

__kernel void fetch(__global uchar *kv, ulong kv_at, __global uchar *content, ulong content_at,
                    __global uchar *rope, ulong rope_at, __global uchar *scale, ulong scale_at,
                    __global uchar *lengths, ulong lengths_at, __global uchar *table,
                    ulong table_at, int fp8, int d_c, int d_r, int width, int pages, int room,
                    int b, int first) {
    int i = get_group_id(0), w = d_c + d_r, token = first + i;
    bool there = token < length_of(AT(int, lengths), b, room);
    ulong slot = there ? slot_of(AT(int, table) + (long)b * width, pages, token) : 0;
    __global ushort *row = AT(ushort, kv) + (long)i * w;
    for (int d = get_local_id(0); d < w; d += GROUP) {
        ushort x = 0;
        if (there && !fp8)
            x = AT(ushort, content)[slot * w + d];
        else if (there)
            x = bf16_product(d < d_c ? e4m3_decode(AT(uchar, content)[slot * d_c + d])
                                     : bf16_decode(AT(ushort, rope)[slot * d_r + d - d_c]),
                             AT(float, scale)[slot]);
        row[d] = x;
    }
}

/* ---- probes of the ceilings ---- */

/* Each work-item reads `each` items that are `step` items apart. The first items of neighbouring
 * work-items are `apart` items apart. */
__kernel void probe_read(__global uchar *data, ulong data_at, ulong each, ulong apart, ulong step,
                         __global uchar *sink, ulong sink_at) {
    __global const uint4 *from = AT(uint4, data) + get_global_id(0) * apart;
    uint4 sum = (uint4)(0);
    for (ulong i = 0; i < each; i++)
        sum ^= from[i * step];
    if ((sum.x ^ sum.y ^ sum.z ^ sum.w) == 0x12345678u) /* keeps the compiler from removing the
                                                           reads */
        AT(uint, sink)[0] = sum.x;
}

/* The 64 sums of a work-item differ, and the result depends on all of them. Otherwise a compiler
 * may compute equal sums once, and leave out unused ones. */
__kernel void probe_fma(__global uchar *sink, ulong sink_at, int turns, float factor) {
    float16 a = (float16)(0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f, 9.0f, 10.0f, 11.0f,
                          12.0f, 13.0f, 14.0f, 15.0f) +
                (float)get_global_id(0);
    float16 b = a + 16.0f, c = a + 32.0f, d = a + 48.0f;
    for (int i = 0; i < turns; i++) {
        a = mad(a, factor, 1.0f);
        b = mad(b, factor, 1.0f);
        c = mad(c, factor, 1.0f);
        d = mad(d, factor, 1.0f);
    }
    a += b + c + d;
    float8 half_sum = a.lo + a.hi;
    float4 sum = half_sum.lo + half_sum.hi;
    if (sum.x + sum.y + sum.z + sum.w == 0.12345f) /* practically never */
        AT(float, sink)[0] = sum.x;
}

#else

/* ---- attention ---- */

#define CHUNK    32 /* columns loaded at once; D_C and D_R are multiples of it */
#define PER_ITEM 4  /* neighbouring columns of V that a work-item sums */
#define COLUMNS  ((D_C / PER_ITEM + GROUP - 1) / GROUP)

/* One number for each row of the work-group. A processor computes them with one instruction. */
#if ROWS == 16
typedef float16 rows_t;
#elif ROWS == 8
typedef float8 rows_t;
#else
typedef float rows_t;
#endif

/* The first page of part `part`, if a sequence of `pages` is split into `parts`. */
int part_of(int pages, int part, int parts) {
    return (int)((long)pages * part / parts);
}

/* ---- eight numbers at once, so that a processor decodes them with vector instructions ---- */

/* As e4m3_decode(). A subnormal number with the bits m is first read as 2^-7 * (1 + m / 8). */
float8 e4m3_decode8(uchar8 b) {
    uint8 u = convert_uint8(b), magnitude = u & 127u;
    float8 x = as_float8((magnitude << 20) + (120u << 23));
    x = select(x, fma(x, 2.0f, -0x1p-6f), magnitude < 8u);
    x = select(x, (float8)(NAN), magnitude == 127u);
    return as_float8(as_uint8(x) | (u & 128u) << 24);
}

/* Eight neighbouring columns. `at` is a multiple of 8. */
float8 bf16_load8(__global const uchar *p, ulong at) {
    return as_float8(convert_uint8(((__global const ushort8 *)p)[at / 8]) << 16);
}

/* Eight neighbouring columns of the content of a row. `d` is a multiple of 8. */
float8 load_content(__global const uchar *content, ulong row, int d) {
#if FP8
    return e4m3_decode8(((__global const uchar8 *)content)[(row * D_C + d) / 8]);
#else
    return bf16_load8(content, row * (D_C + D_R) + d);
#endif
}

float8 load_rope(__global const uchar *content, __global const uchar *rope, ulong row, int d) {
#if FP8
    return bf16_load8(rope, row * D_R + d);
#else
    return bf16_load8(content, row * (D_C + D_R) + D_C + d);
#endif
}

/* Four neighbouring columns of the content of two rows. `d` is a multiple of 4. */
float8 load_two(__global const uchar *content, ulong first, ulong second, int d) {
#if FP8
    __global const uchar4 *p = (__global const uchar4 *)content;
    return e4m3_decode8((uchar8)(p[(first * D_C + d) / 4], p[(second * D_C + d) / 4]));
#else
    __global const ushort4 *p = (__global const ushort4 *)content;
    return as_float8(convert_uint8((ushort8)(p[(first * (D_C + D_R) + d) / 4],
                                             p[(second * (D_C + D_R) + d) / 4]))
                     << 16);
#endif
}

/* Stores neighbouring columns as a column of a matrix whose rows have `stride` numbers. */
void store_column(__local float *to, int stride, float8 x) {
    to[0] = x.s0;
    to[stride] = x.s1;
    to[2 * stride] = x.s2;
    to[3 * stride] = x.s3;
    to[4 * stride] = x.s4;
    to[5 * stride] = x.s5;
    to[6 * stride] = x.s6;
    to[7 * stride] = x.s7;
}

/* One work-group computes up to ROWS rows of sequence b over one part of its pages. A number
 * that it reads as K or as V is decoded once for all these rows. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
attend(__global uchar *q, ulong q_at, __global uchar *q_rope, ulong q_rope_at,
       __global uchar *q_scale, ulong q_scale_at, __global uchar *content, ulong content_at,
       __global uchar *rope, ulong rope_at, __global uchar *scale, ulong scale_at,
       __global uchar *lengths, ulong lengths_at, __global uchar *table, ulong table_at,
       __global uchar *sums, ulong sums_at, __global uchar *maxima, ulong maxima_at, int width,
       int pages, int room, int s_q, int heads, int max_parts, float scale_log2) {
    __local float key[CHUNK][PAGE + 1], m[ROWS], l[ROWS];
    __local rows_t query[CHUNK], p[PAGE], rescale;
    __local float *query_of = (__local float *)query, *p_of = (__local float *)p; /* [][ROWS] */
    __local float *rescale_of = (__local float *)&rescale;                        /* [ROWS] */
#if FP8
    __local float sigma[ROWS];
#endif
    int t = get_local_id(0), row0 = get_group_id(0) * ROWS, part = get_group_id(1),
        b = get_group_id(2);
    int rows = s_q * heads, length = length_of(AT(int, lengths), b, room);
    int all = (length + PAGE - 1) / PAGE, parts = clamp(all, 1, max_parts);
    if (part >= parts)
        return;
    rows_t acc[COLUMNS][PER_ITEM];
    for (int c = 0; c < COLUMNS; c++)
        for (int i = 0; i < PER_ITEM; i++)
            acc[c][i] = 0.0f;
    if (t < ROWS) {
        m[t] = -INFINITY;
        l[t] = 0.0f;
    }
    int last = part_of(all, part + 1, parts);
    for (int page = part_of(all, part, parts); page < last; page++) {
        int n = min(PAGE, length - page * PAGE);
        ulong slot = slot_of(AT(int, table) + (long)b * width, pages, page * PAGE);
        rows_t s = 0.0f;
        for (int d0 = 0; d0 < D_C + D_R; d0 += CHUNK) {
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int i = t; i < PAGE * CHUNK / 8; i += GROUP) {
                int j = i / (CHUNK / 8), d = i % (CHUNK / 8) * 8;
                float8 x = 0.0f;
                if (j < n)
                    x = d0 < D_C ? load_content(AT(uchar, content), slot + j, d0 + d)
                                 : load_rope(AT(uchar, content), AT(uchar, rope), slot + j,
                                             d0 + d - D_C);
                store_column(&key[d][j], PAGE + 1, x);
            }
            for (int i = t; i < ROWS * CHUNK / 8; i += GROUP) {
                int r = i / (CHUNK / 8), d = i % (CHUNK / 8) * 8;
                ulong row = (ulong)b * rows + row0 + r;
                float8 x = 0.0f;
                if (row0 + r < rows)
                    x = d0 < D_C
                            ? load_content(AT(uchar, q), row, d0 + d)
                            : load_rope(AT(uchar, q), AT(uchar, q_rope), row, d0 + d - D_C);
                store_column(query_of + d * ROWS + r, ROWS, x);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int d = 0; d < CHUNK; d++)
                s = mad(query[d], (rows_t)(key[d][t]), s);
        }
        float a_k = 1.0f;
#if FP8
        a_k = t < n ? AT(float, scale)[slot + t] : 0.0f;
#endif
        p[t] = s;
        __local float *mine = p_of + t * ROWS;      /* this work-item's token, all rows */
        __local const float *row_of = p_of + t;     /* for t < ROWS: row t, all tokens */
        for (int r = 0; r < ROWS; r++) {
            int row = row0 + r;
            float factor = scale_log2 * a_k;
#if FP8
            factor *= row < rows ? AT(float, q_scale)[(ulong)b * rows + row] : 0.0f;
#endif
            bool seen = row < rows && page * PAGE + t < length - (s_q - 1 - row / heads);
            mine[r] = seen ? mine[r] * factor : -INFINITY;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t < ROWS) {
            float largest = m[t];
            for (int j = 0; j < PAGE; j++)
                largest = fmax(largest, row_of[j * ROWS]);
            rescale_of[t] = m[t] == -INFINITY ? 0.0f : exp2(m[t] - largest);
            m[t] = largest;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int r = 0; r < ROWS; r++)
            mine[r] = mine[r] == -INFINITY ? 0.0f : exp2(mine[r] - m[r]);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t < ROWS) {
            float sum = 0.0f;
            for (int j = 0; j < PAGE; j++)
                sum += row_of[j * ROWS];
            l[t] = l[t] * rescale_of[t] + sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#if FP8
        /* P' = P a_k, rounded to e4m3 with one scale for the page */
        for (int r = 0; r < ROWS; r++)
            mine[r] *= a_k;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t < ROWS) {
            float largest = 0.0f;
            for (int j = 0; j < PAGE; j++)
                largest = fmax(largest, row_of[j * ROWS]);
            sigma[t] = largest < 0x1p-100f ? 0.0f : largest / E4M3_MAX;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int r = 0; r < ROWS; r++)
            mine[r] = sigma[r] > 0.0f
                          ? sigma[r] * e4m3_decode(e4m3_encode(mine[r] / sigma[r]))
                          : 0.0f;
#else
        for (int r = 0; r < ROWS; r++)
            mine[r] = bf16_decode(bf16_encode(mine[r]));
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int c = 0; c < COLUMNS; c++) {
            int d = (t + c * GROUP) * PER_ITEM;
            if (d >= D_C)
                continue;
            rows_t x = acc[c][0] * rescale, y = acc[c][1] * rescale, z = acc[c][2] * rescale,
                   w = acc[c][3] * rescale;
            for (int j = 0; j < n; j += 2) { /* P of token n is 0 */
                float8 v = load_two(AT(uchar, content), slot + j, slot + min(j + 1, n - 1), d);
                x = mad(p[j], (rows_t)(v.s0), x);
                y = mad(p[j], (rows_t)(v.s1), y);
                z = mad(p[j], (rows_t)(v.s2), z);
                w = mad(p[j], (rows_t)(v.s3), w);
                x = mad(p[j + 1], (rows_t)(v.s4), x);
                y = mad(p[j + 1], (rows_t)(v.s5), y);
                z = mad(p[j + 1], (rows_t)(v.s6), z);
                w = mad(p[j + 1], (rows_t)(v.s7), w);
            }
            acc[c][0] = x;
            acc[c][1] = y;
            acc[c][2] = z;
            acc[c][3] = w;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < COLUMNS * PER_ITEM; i++) {
        int d = (t + i / PER_ITEM * GROUP) * PER_ITEM + i % PER_ITEM;
        union {
            rows_t all;
            float of[ROWS];
        } sum;
        sum.all = acc[i / PER_ITEM][i % PER_ITEM];
        for (int r = 0; r < ROWS; r++)
            if (d < D_C && row0 + r < rows)
                AT(float, sums)[(((ulong)b * rows + row0 + r) * max_parts + part) * D_C + d] =
                    sum.of[r];
    }
    if (t < ROWS && row0 + t < rows) {
        ulong at = ((ulong)b * rows + row0 + t) * max_parts + part;
        AT(float, maxima)[2 * at] = m[t];
        AT(float, maxima)[2 * at + 1] = l[t];
    }
}

/* One work-group merges the partial results of one row. l of a part is 0 if the row sees no token
 * of it, and NaN if a score is NaN. */
__kernel void combine(__global uchar *sums, ulong sums_at, __global uchar *maxima,
                      ulong maxima_at, __global uchar *lengths, ulong lengths_at,
                      __global uchar *out, ulong out_at, __global uchar *lse, ulong lse_at,
                      int with_lse, int room, int max_parts) {
    int t = get_local_id(0), b = get_group_id(1), rows = get_num_groups(0);
    int all = (length_of(AT(int, lengths), b, room) + PAGE - 1) / PAGE;
    int parts = clamp(all, 1, max_parts);
    ulong row = (ulong)b * rows + get_group_id(0), at = row * max_parts;
    __global const float *ml = AT(float, maxima) + 2 * at;
    float largest = -INFINITY, sum = 0.0f;
    for (int i = 0; i < parts; i++)
        largest = fmax(largest, ml[2 * i]);
    for (int i = 0; i < parts; i++)
        sum += ml[2 * i + 1] == 0.0f ? 0.0f : exp2(ml[2 * i] - largest) * ml[2 * i + 1];
    for (int d = t; d < D_C; d += GROUP) {
        float o = 0.0f;
        for (int i = 0; i < parts; i++)
            if (ml[2 * i + 1] != 0.0f)
                o += exp2(ml[2 * i] - largest) * AT(float, sums)[(at + i) * D_C + d];
        AT(ushort, out)[row * D_C + d] = sum == 0.0f ? 0 : bf16_encode(o / sum);
    }
    if (t == 0 && with_lse)
        AT(float, lse)[row] =
            sum == 0.0f ? -INFINITY : 0.69314718055994530942f * (largest + log2(sum));
}
#endif
