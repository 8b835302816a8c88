/* format.h - a cache format as data: which numbers a cached token consists of, in which types, with
 * which scales, and at which bytes they lie. docs/formats.md describes the JSON files, and
 * configs/formats/ has the shipped ones.
 *
 * A token has two parts: the content (d_c columns) and the RoPE part (d_r columns). Column d of a
 * part stands for
 *     value = (code - zero) * scale          content, after the transform below
 *     value = code * scale                   RoPE part
 * If the format rotates, content rows are multiplied by a normalised Hadamard matrix before they
 * are quantised; if it has an offset, the mean of each column over all tokens is subtracted before
 * that. The scale of a column is stored_scale * tensor_scale if there are two levels.
 *
 * Memory consists of pools. A pool is an array of pages of `bytes` bytes each, or, if it is not
 * paged, one block of `bytes` bytes for the whole tensor. A plane is an array inside a pool. Its
 * element 0 for the token in slot s of page p lies at
 *     pool + p * bytes + offset + s * stride
 * with p = 0 in a pool that is not paged, and stride = 0 for values that all tokens of a page or of
 * the tensor share. */
#ifndef SNAPMLA_KERNELS_FORMAT_FORMAT_H
#define SNAPMLA_KERNELS_FORMAT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "kernels/format/element.h"
#include "kernels/judge.h"
#include "kernels/reference.h"

enum {
    CACHE_POOLS = 8,            /* most pools of a format */
    CACHE_MAX_PAGE = 4096,      /* most tokens per page */
    CACHE_MAX_STRIDE = 1 << 20, /* largest stride, in bytes */
};

typedef struct {
    element_type type;
    int columns; /* elements for each token, page or tensor; 0: the format has no such plane */
    int pool;    /* index into cache_format.pool */
    int64_t offset, stride; /* bytes, used by the formula at the head of this file; a 4-bit element
                               0 is the low half of its byte */
} cache_plane;

typedef struct {
    bool paged;
    int64_t bytes; /* bytes of each page or, if the pool is not paged, of the whole pool */
} cache_pool;

/* Where the scale of a part comes from. */
typedef enum {
    SCALE_NONE,    /* 1, not stored */
    SCALE_FIXED,   /* a constant of the format, not stored */
    SCALE_OWN,     /* chosen from the part's largest magnitudes, and stored */
    SCALE_CONTENT, /* RoPE only: the content's scale, chosen without the RoPE part's magnitudes */
    SCALE_SHARED,  /* RoPE only: the content's scale, chosen from the magnitudes of both parts */
} cache_scale_kind;

/* The tokens that share a scale. */
typedef enum { SCALE_PER_TOKEN, SCALE_PER_PAGE, SCALE_PER_TENSOR } cache_scale_per;

/* How a scale is rounded before it is stored in its type. m is the largest magnitude that the scale
 * covers, and t the largest value of the element type. With a zero point, m is the width of the
 * range of the numbers, and t that of the codes. If there is a second level, m / t is divided by it
 * first. */
typedef enum {
    SCALE_EXACT,      /* m / t */
    SCALE_POW2_UP,    /* the smallest power of two >= m / t */
    SCALE_POW2_FLOOR, /* 2^(floor(log2 m) - floor(log2 t)), the rule of OCP MX 1.0 section 6.3; the
                         largest magnitudes may saturate */
} cache_scale_rounding;

typedef struct {
    cache_scale_kind kind;
    cache_scale_per per;
    int columns; /* neighbouring columns that share a scale; all of the part's columns, or fewer */
    cache_scale_rounding rounding;
    float min;          /* a scale is at least this, before it is rounded to a power of two or to
                           its type; may be 0 */
    float fixed;        /* SCALE_FIXED: the scale */
    cache_plane plane;  /* SCALE_OWN: the stored scales */
    cache_plane tensor; /* fp32 [1] in a pool that is not paged: the second level. columns 0: none.
                           Its value is m / (t * largest value of the scale's type), over the whole
                           tensor (NVFP4) */
} cache_scale;

typedef struct {
    cache_plane plane;
    cache_scale scale;
    cache_plane zero; /* int8 or int4, one for each scale; columns 0: none. Content only */
} cache_part;

/* How the queries are rounded before they are multiplied with the cached tokens. */
typedef enum {
    QUERIES_EXACT,  /* not rounded */
    QUERIES_BF16,   /* rounded to bf16 */
    QUERIES_FORMAT, /* quantised like the cached tokens */
} cache_queries;

/* A plain value: copy it, no release. */
typedef struct {
    char name[64];
    char description[1024]; /* what the format is and its source */
    int d_c, d_r;
    int page_tokens;
    cache_part content, rope;
    int hadamard;       /* columns of one Hadamard transform, a power of two that divides d_c; 0:
                           none */
    cache_plane offset; /* fp32 [d_c] in a pool that is not paged: the means of the columns; columns
                           0: none */
    int pools;
    cache_pool pool[CACHE_POOLS];
    cache_queries queries; /* the arithmetic of the arm that reads this format */
    ref_pv pv;
} cache_format;

/* ---- reading descriptors ---- */

/**
 * cache_format_load - read a format
 *
 * @name: name of a shipped format ("snapmla" is configs/formats/snapmla.json, found by
 *        share_find()), or the path of a JSON file: a name with '/' or that ends with ".json"
 * @d_c, @d_r: widths of the two parts, as mla_capacity has them
 *
 * The result has passed cache_format_check(). Errors: SNAP_E_USAGE (no shipped format has the name;
 * the message lists them), SNAP_E_INPUT ("FILE: content.scale.type: reason"), SNAP_E_SHAPE (the
 * format does not have these widths), SNAP_E_IO, SNAP_E_NOMEM.
 */
snap_status cache_format_load(cache_format *out, const char *name, int d_c, int d_r,
                              snap_err *err) SNAP_CHECK_RESULT;

/* The path of the file that cache_format_load() reads for that name, which the caller frees. NULL:
 * no shipped format has the name, or out of memory. */
char *cache_format_path(const char *name);

/* Reads a format from a JSON value. @where stands for the file in messages. */
snap_status cache_format_read(cache_format *out, const js *doc, const char *where, int d_c, int d_r,
                              snap_err *err) SNAP_CHECK_RESULT;

/* Checks everything that the other functions rely on: widths, ranges, contradictions, and that no
 * two planes overlap or leave their page. SNAP_E_INPUT or, for widths, SNAP_E_SHAPE. */
snap_status cache_format_check(const cache_format *f, snap_err *err) SNAP_CHECK_RESULT;

/* Calls @fn with the name of each shipped format in alphabetical order, until it fails. */
typedef snap_status (*cache_format_fn)(void *ctx, const char *name, snap_err *err);
snap_status cache_format_each(cache_format_fn fn, void *ctx, snap_err *err) SNAP_CHECK_RESULT;

/* The planes that the format has, with a name for each: "content", "rope", "content.scale", ... */
enum { CACHE_PLANES = 8 };
typedef struct {
    const char *name;
    const cache_plane *plane;
} cache_plane_name;
int cache_format_planes(const cache_format *f, cache_plane_name out[CACHE_PLANES]);

/* ---- sizes ---- */

/* Bytes of paged memory for each token, padding and the page's shared values included. Not always
 * a whole number: values shared by a page count 1 / page_tokens each. */
double cache_format_token_bytes(const cache_format *f);

/* Bytes of a pool that holds @pages pages; -1 if that is more than 2^62. */
int64_t cache_format_pool_bytes(const cache_format *f, int pool, int64_t pages);

/* The fewest bytes that attention over @tokens tokens of one sequence reads of the cache: all
 * planes, without padding. The floor of a roofline is this number divided by the bandwidth. */
double cache_format_read_bytes(const cache_format *f, int64_t tokens);

/* Scales of the content for each token (1 if it has none). */
int cache_format_groups(const cache_format *f);

/* ---- packed bytes of a cache ---- */

/* The cache of one layer in host memory. cache_bytes_release() frees it; initialise with {0}. */
typedef struct {
    int64_t pages;
    uint8_t *pool[CACHE_POOLS];
} cache_bytes;
void cache_bytes_release(cache_bytes *b);

/**
 * cache_format_pack - quantise tokens and store them in pages
 *
 * @out:    new pools with ceil(tokens / page_tokens) pages; slots past the last token are zero.
 *          The caller releases it; empty on failure
 * @x:      fp32 [tokens][d_c + d_r], RoPE last. Token i goes to slot i % page_tokens of page i /
 *          page_tokens
 *
 * Divisions by a scale are FP32 divisions; magnitudes ignore NaNs. An infinite magnitude gives an
 * infinite scale, where the scale's type has one. Errors: SNAP_E_SHAPE (tokens outside 0 ..
 * MLA_MAX_CONTEXT), SNAP_E_NOMEM.
 */
snap_status cache_format_pack(cache_bytes *out, const cache_format *f, const float *x,
                              int64_t tokens, snap_err *err) SNAP_CHECK_RESULT;

/* cache_format_pack() with the values that all tokens of @like share: scales and zero points per
 * tensor, second-level scales, and means of columns. So parts of one cache can be packed one by
 * one. Numbers beyond the range of a shared scale saturate. @like has the format @f and at least
 * one token; NULL: the values are chosen. */
snap_status cache_format_pack_like(cache_bytes *out, const cache_format *f, const cache_bytes *like,
                                   const float *x, int64_t tokens, snap_err *err) SNAP_CHECK_RESULT;

/* cache_format_pack() for rows of bf16. */
snap_status cache_format_pack_bf16(cache_bytes *out, const cache_format *f, const uint16_t *x,
                                   int64_t tokens, snap_err *err) SNAP_CHECK_RESULT;

/**
 * cache_format_unpack - the values of tokens first .. first + count - 1
 *
 * @x:         fp32 [count][d_c + d_r]. (code - zero) * scale is exact in FP64; transform and offset
 *             are undone in FP64; the result is rounded to FP32 once
 * @table_row: page numbers of the sequence; NULL: 0, 1, 2, ... A page number outside the pool is
 *             clamped
 */
void cache_format_unpack(float *x, const cache_format *f, const cache_bytes *b,
                         const int32_t *table_row, int64_t first, int64_t count);

/* Tokens 0 .. tokens-1 as stored, before transform and offset are undone: content holds code -
 * zero. The caller releases @out. SNAP_E_NOMEM. */
snap_status cache_format_rows(ref_rows *out, const cache_format *f, const cache_bytes *b,
                              const int32_t *table_row, int64_t tokens,
                              snap_err *err) SNAP_CHECK_RESULT;

/* Allocates rows of zeros for @tokens tokens. The caller releases @out. SNAP_E_NOMEM. */
snap_status cache_format_rows_init(ref_rows *out, const cache_format *f, int64_t tokens,
                                   snap_err *err) SNAP_CHECK_RESULT;

/* Sets rows first .. first + count - 1 to tokens 0 .. count - 1 of a cache, as cache_format_rows()
 * does. Threads may set different rows at the same time. */
void cache_format_rows_set(ref_rows *out, int64_t first, const cache_format *f,
                           const cache_bytes *b, const int32_t *table_row, int64_t count);

/* ---- attention ---- */

/* Attention in FP64 over what a format holds. The struct's functions only read it, so threads may
 * share it. */
typedef struct {
    const cache_format *format; /* borrowed */
    ref_rows q, k;              /* in the transformed space */
    double *offset;             /* [d_c] means of the columns, NULL: none */
    double *q_offset;           /* [queries] product of query and offset */
} cache_oracle;

/**
 * cache_oracle_init - bring queries and cached tokens into the form that the arm multiplies
 *
 * @q:      fp32 [queries][d_c + d_r], not transformed and not rounded; rounded here as f->queries
 *          says
 * @b:      cache with at least @tokens tokens
 *
 * The caller releases @o with cache_oracle_release(), and keeps @f until then. SNAP_E_SHAPE,
 * SNAP_E_NOMEM.
 */
snap_status cache_oracle_init(cache_oracle *o, const cache_format *f, const float *q,
                              int64_t queries, const cache_bytes *b, const int32_t *table_row,
                              int64_t tokens, snap_err *err) SNAP_CHECK_RESULT;
void cache_oracle_release(cache_oracle *o);

/* Like cache_oracle_init(), for a sequence that is packed part by part. @like: a cache with the
 * values that all tokens share, see cache_format_pack_like(). The tokens are 0 until
 * cache_oracle_add() sets them. */
snap_status cache_oracle_begin(cache_oracle *o, const cache_format *f, const float *q,
                               int64_t queries, const cache_bytes *like, int64_t tokens,
                               snap_err *err) SNAP_CHECK_RESULT;

/* Sets tokens first .. first + count - 1 to tokens 0 .. count - 1 of @part, a cache that was packed
 * like the one of cache_oracle_begin(). Threads may set different tokens at the same time. */
void cache_oracle_add(cache_oracle *o, const cache_bytes *part, int64_t first, int64_t count);

/* Computes output row @query over the first @visible tokens, as ref_attend() does, with P rounded
 * as @pv says. @out: fp64 [d_c]; @lse: may be NULL. */
void cache_oracle_attend(const cache_oracle *o, int64_t query, int64_t visible,
                         double softmax_scale, ref_pv pv, double *out, double *lse);

/* ---- what a correct implementation may differ by ---- */

/* The largest |unpacked - x| of the content or of the RoPE part, divided by the largest magnitude
 * that the column's scale covers (for unscaled columns: divided by |x|). It holds where that
 * magnitude lies between the smallest and the largest that the scale's type can serve. A format
 * with transform or offset has this bound in the transformed space. */
double cache_part_rounding(const cache_format *f, const cache_part *part);

/* The largest errors of a correct backend that reads this format, against cache_oracle_attend()
 * with the format's pv over the same bytes. The bounds are those of judge_bound_of(). Where the
 * format's values are not exact in bf16 and P is not e4m3, they are wider, because the backend may
 * round each value to bf16 before it multiplies. */
judge_bound cache_format_bound(const cache_format *f);

/* ---- inputs for conformance ---- */

/* Tokens that try the edges of a format. */
typedef enum {
    CACHE_INPUT_NORMAL,     /* N(0, 1) */
    CACHE_INPUT_ZERO,       /* all 0, some -0 */
    CACHE_INPUT_CODES,      /* all values of the element type in turn; those of e4m3fn if the type
                               has more than 8 bits */
    CACHE_INPUT_TIES,       /* the numbers halfway between the values of consecutive codes */
    CACHE_INPUT_RANGE,      /* magnitudes that about double from column to column: saturation and
                               subnormal numbers */
    CACHE_INPUT_OUTLIERS,   /* one column in 128 is 1000 times the others */
    CACHE_INPUT_NOT_FINITE, /* normal, with single NaNs and infinities */
    CACHE_INPUTS
} cache_input;
const char *cache_input_name(cache_input kind);

/* Fills @x, fp32 [tokens][d_c + d_r] of bf16 values. */
void cache_format_input(float *x, const cache_format *f, cache_input kind, int64_t tokens,
                        uint64_t seed);

#endif
