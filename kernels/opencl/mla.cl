/* mla.cl - both arms and the dataflow in plain OpenCL C 1.2: no extensions, FP32 sums, 64
 * work-items per work-group.
 *
 * With ATTEND defined, this is the attention of one kind of plan; D_C, D_R, ROWS (rows per
 * work-group) and FP8 (0 or 1) must be defined, too. Without ATTEND, it is the dataflow and the
 * probes. Every buffer argument is followed by an offset in bytes. */
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

__kernel void probe_read(__global uchar *data, ulong data_at, ulong items,
                         __global uchar *sink, ulong sink_at) {
    uint4 sum = (uint4)(0);
    for (ulong i = get_global_id(0); i < items; i += get_global_size(0))
        sum ^= AT(uint4, data)[i];
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

#define CHUNK 32 /* columns loaded at once; D_C and D_R are multiples of it */
#define COLUMNS ((D_C + GROUP - 1) / GROUP)

/* The first page of part `part`, if a sequence of `pages` is split into `parts`. */
int part_of(int pages, int part, int parts) {
    return (int)((long)pages * part / parts);
}

float load_content(__global const uchar *content, ulong row, int d) {
#if FP8
    return e4m3_decode(content[row * D_C + d]);
#else
    return bf16_decode(((__global const ushort *)content)[row * (D_C + D_R) + d]);
#endif
}

float load_rope(__global const uchar *content, __global const uchar *rope, ulong row, int d) {
#if FP8
    return bf16_decode(((__global const ushort *)rope)[row * D_R + d]);
#else
    return bf16_decode(((__global const ushort *)content)[row * (D_C + D_R) + D_C + d]);
#endif
}

/* One work-group computes up to ROWS rows of sequence b over one part of its pages. */
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
attend(__global uchar *q, ulong q_at, __global uchar *q_rope, ulong q_rope_at,
       __global uchar *q_scale, ulong q_scale_at, __global uchar *content, ulong content_at,
       __global uchar *rope, ulong rope_at, __global uchar *scale, ulong scale_at,
       __global uchar *lengths, ulong lengths_at, __global uchar *table, ulong table_at,
       __global uchar *sums, ulong sums_at, __global uchar *maxima, ulong maxima_at, int width,
       int pages, int room, int s_q, int heads, int max_parts, float scale_log2) {
    __local float key[PAGE][CHUNK + 1], query[ROWS][CHUNK], p[ROWS][PAGE];
    __local float m[ROWS], l[ROWS], rescale[ROWS];
#if FP8
    __local float sigma[ROWS];
#endif
    int t = get_local_id(0), row0 = get_group_id(0) * ROWS, part = get_group_id(1),
        b = get_group_id(2);
    int rows = s_q * heads, length = length_of(AT(int, lengths), b, room);
    int all = (length + PAGE - 1) / PAGE, parts = clamp(all, 1, max_parts);
    if (part >= parts)
        return;
    float acc[ROWS][COLUMNS], s[ROWS];
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++)
            acc[r][c] = 0.0f;
    if (t < ROWS) {
        m[t] = -INFINITY;
        l[t] = 0.0f;
    }
    int last = part_of(all, part + 1, parts);
    for (int page = part_of(all, part, parts); page < last; page++) {
        int n = min(PAGE, length - page * PAGE);
        ulong slot = slot_of(AT(int, table) + (long)b * width, pages, page * PAGE);
        for (int r = 0; r < ROWS; r++)
            s[r] = 0.0f;
        for (int d0 = 0; d0 < D_C + D_R; d0 += CHUNK) {
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int i = t; i < PAGE * CHUNK; i += GROUP) {
                int j = i / CHUNK, d = i % CHUNK + d0;
                key[j][i % CHUNK] =
                    j >= n    ? 0.0f
                    : d < D_C ? load_content(AT(uchar, content), slot + j, d)
                              : load_rope(AT(uchar, content), AT(uchar, rope), slot + j, d - D_C);
            }
            for (int i = t; i < ROWS * CHUNK; i += GROUP) {
                int r = i / CHUNK, d = i % CHUNK + d0;
                ulong row = (ulong)b * rows + row0 + r;
                query[r][i % CHUNK] =
                    row0 + r >= rows ? 0.0f
                    : d < D_C        ? load_content(AT(uchar, q), row, d)
                                     : load_rope(AT(uchar, q), AT(uchar, q_rope), row, d - D_C);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int d = 0; d < CHUNK; d++) {
                float k = key[t][d];
                for (int r = 0; r < ROWS; r++)
                    s[r] = mad(query[r][d], k, s[r]);
            }
        }
        float a_k = 1.0f;
#if FP8
        a_k = t < n ? AT(float, scale)[slot + t] : 0.0f;
#endif
        for (int r = 0; r < ROWS; r++) {
            int row = row0 + r;
            float factor = scale_log2 * a_k;
#if FP8
            factor *= row < rows ? AT(float, q_scale)[(ulong)b * rows + row] : 0.0f;
#endif
            bool seen = row < rows && page * PAGE + t < length - (s_q - 1 - row / heads);
            p[r][t] = seen ? s[r] * factor : -INFINITY;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t < ROWS) {
            float largest = m[t];
            for (int j = 0; j < PAGE; j++)
                largest = fmax(largest, p[t][j]);
            rescale[t] = m[t] == -INFINITY ? 0.0f : exp2(m[t] - largest);
            m[t] = largest;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int r = 0; r < ROWS; r++)
            p[r][t] = p[r][t] == -INFINITY ? 0.0f : exp2(p[r][t] - m[r]);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t < ROWS) {
            float sum = 0.0f;
            for (int j = 0; j < PAGE; j++)
                sum += p[t][j];
            l[t] = l[t] * rescale[t] + sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#if FP8
        /* P' = P a_k, rounded to e4m3 with one scale for the page */
        for (int r = 0; r < ROWS; r++)
            p[r][t] *= a_k;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t < ROWS) {
            float largest = 0.0f;
            for (int j = 0; j < PAGE; j++)
                largest = fmax(largest, p[t][j]);
            sigma[t] = largest < 0x1p-100f ? 0.0f : largest / E4M3_MAX;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int r = 0; r < ROWS; r++)
            p[r][t] = sigma[r] > 0.0f ? sigma[r] * e4m3_decode(e4m3_encode(p[r][t] / sigma[r]))
                                      : 0.0f;
#else
        for (int r = 0; r < ROWS; r++)
            p[r][t] = bf16_decode(bf16_encode(p[r][t]));
#endif
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int c = 0; c < COLUMNS; c++) {
            int d = t + c * GROUP;
            if (d >= D_C)
                continue;
            for (int r = 0; r < ROWS; r++)
                acc[r][c] *= rescale[r];
            for (int j = 0; j < n; j++) {
                float v = load_content(AT(uchar, content), slot + j, d);
                for (int r = 0; r < ROWS; r++)
                    acc[r][c] = mad(p[r][j], v, acc[r][c]);
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int r = 0; r < ROWS && row0 + r < rows; r++) {
        ulong at = ((ulong)b * rows + row0 + r) * max_parts + part;
        for (int c = 0; c < COLUMNS; c++)
            if (t + c * GROUP < D_C)
                AT(float, sums)[at * D_C + t + c * GROUP] = acc[r][c];
        if (t == 0) {
            AT(float, maxima)[2 * at] = m[r];
            AT(float, maxima)[2 * at + 1] = l[r];
        }
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
