/* Rounding of cache rows through formats: A to F against their arithmetic written out, every
 * shipped format against pack and unpack, and what is refused. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "generator/local/model/rounding.h"
#include "kernels/formats.h"

enum { kMostTokens = 150, kMostWidth = 640 };

typedef struct {
    uint16_t row[kMostTokens * kMostWidth];
} tokens;

static uint32_t next(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Rows whose magnitudes span many powers of two. One in 16 is zero, and some columns are
 * outliers. */
static void draw(tokens *t, int width, uint32_t seed) {
    for (int i = 0; i < kMostTokens; i++) {
        float size = i % 16 == 5 ? 0.0f : ldexpf(1.0f, (int)(next(&seed) % 24) - 12);
        for (int d = 0; d < width; d++) {
            float x = ((float)(next(&seed) % 4001) - 2000.0f) * 1e-3f * size;
            t->row[i * width + d] = bf16_from_f32(next(&seed) % 97 == 0 ? x * 300.0f : x);
        }
    }
}

static cache_rounding load(const char *name, int d_c, int d_r) {
    cache_rounding r;
    snap_err err = {0};
    snap_status st = rounding_load(&r, name, d_c, d_r, &err);
    if (st != SNAP_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    CU_ASSERT_EQUAL_FATAL(st, SNAP_OK);
    return r;
}

/* Appends rows as a sequence does: @first of them, then pieces of @piece. */
static void append(const cache_rounding *r, tokens *t, int width, int first, int piece) {
    for (int at = 0, n = first; at < kMostTokens; at += n, n = piece) {
        n = at + n > kMostTokens ? kMostTokens - at : n;
        uint16_t *page = t->row + at / MLA_PAGE * MLA_PAGE * width;
        rounding_apply(&r->rows, t->row + at * width, n, page, at % MLA_PAGE);
    }
}

/* ---- A to F ---------------------------------------------------------------------------------- */

/* @rows rows of @width columns, @stride numbers apart, that have one scale. */
typedef struct {
    uint16_t *at;
    int rows, stride, width;
} block;

static float largest_of(block b, float so_far) {
    for (int i = 0; i < b.rows; i++)
        for (int d = 0; d < b.width; d++)
            so_far = fmaxf(so_far, fabsf(bf16_to_f32(b.at[i * b.stride + d])));
    return so_far;
}

static void through_e4m3(block b, float scale) {
    for (int i = 0; i < b.rows; i++)
        for (int d = 0; d < b.width; d++) {
            uint16_t *x = &b.at[i * b.stride + d];
            *x = bf16_from_f32(e4m3_to_f32(e4m3_from_f32(bf16_to_f32(*x) / scale)) * scale);
        }
}

static void own_scale(block b) {
    through_e4m3(b, largest_of(b, QUANT_MIN_MAX) / E4M3_MAX);
}

static void in_groups_of_128(block b, block stored) {
    for (int d = 0; d < b.width; d += 128) {
        int n = b.width - d < 128 ? b.width - d : 128;
        block now = {b.at + d, b.rows, b.stride, n},
              then = {stored.at + d, stored.rows, b.stride, n};
        through_e4m3(now, largest_of(now, largest_of(then, QUANT_MIN_MAX)) / E4M3_MAX);
    }
}

/* Rounds @n rows that are appended at index @at of a sequence @all. */
static void expected(char name, int d_c, int d_r, uint16_t *all, int at, int n) {
    int width = d_c + d_r;
    if (name == 'C')
        own_scale((block){all + at * width, n, width, width});
    for (int i = at; i < at + n; i++) {
        uint16_t *row = all + i * width;
        block content = {row, 1, 0, d_c}, rope = {row + d_c, 1, 0, d_r}, none = {row, 0, 0, 0};
        if (name == 'A') {
            own_scale(content);
            own_scale(rope);
        } else if (name == 'B') {
            through_e4m3((block){row, 1, 0, width}, 1.0f);
        } else if (name == 'E') {
            in_groups_of_128(content, none);
        } else if (name == 'F') {
            float scale = largest_of(content, QUANT_MIN_MAX) / E4M3_MAX;
            through_e4m3(content, exp2f(ceilf(log2f(scale))));
        } else if (name == 'D') { /* all new rows of a page together */
            int page = i / MLA_PAGE * MLA_PAGE,
                end = page + MLA_PAGE < at + n ? page + MLA_PAGE : at + n;
            in_groups_of_128((block){row, end - i, width, d_c},
                             (block){all + page * width, i - page, width, d_c});
            i = end - 1;
        }
    }
}

static void check_ablation(char letter, int d_c, int d_r, int first, int piece) {
    static tokens got, want;
    char name[] = {letter, 0};
    cache_rounding r = load(name, d_c, d_r);
    int width = d_c + d_r;
    draw(&got, width, (uint32_t)(letter + first));
    want = got;
    append(&r, &got, width, first, piece);
    for (int at = 0, n = first; at < kMostTokens; at += n, n = piece) {
        n = at + n > kMostTokens ? kMostTokens - at : n;
        expected(letter, d_c, d_r, want.row, at, n);
    }
    for (int i = 0; i < kMostTokens * width; i++)
        if (got.row[i] != want.row[i]) {
            (void)printf("%s %d+%d: number %d of token %d\n", name, d_c, d_r, i % width, i / width);
            CU_FAIL("a format of the ablation differs from its arithmetic");
            return;
        }
}

/* At widths that groups of 128 columns divide, and at others. */
static void test_ablation(void) {
    for (const char *name = "ABCDEF"; *name; name++) {
        check_ablation(*name, 512, 64, 70, 1);
        check_ablation(*name, 512, 64, 1, 33);
        check_ablation(*name, 192, 96, 64, 64);
        check_ablation(*name, 32, 32, 10, 1);
    }
}

/* ---- all formats ----------------------------------------------------------------------------- */

/* One piece that begins at the start of a page must become what unpack() returns for it. */
static snap_status check_shipped(void *ctx, const char *name, snap_err *err) {
    static tokens got;
    static float x[kMostTokens * kMostWidth], y[kMostTokens * kMostWidth];
    const int width = 512 + 64, n = kMostTokens * width;
    cache_bytes packed = {0};
    cache_rounding r;
    snap_err why = {0};
    if (rounding_load(&r, name, 512, 64, &why) == SNAP_E_UNSUPPORTED)
        return SNAP_OK;
    CU_ASSERT_STRING_EQUAL(r.format.name, name);
    CU_ASSERT_EQUAL(strlen(r.sha256), 64);
    draw(&got, width, 1);
    for (int i = 0; i < n; i++)
        x[i] = bf16_to_f32(got.row[i]);
    CU_ASSERT_EQUAL_FATAL(cache_format_pack(&packed, &r.format, x, kMostTokens, err), SNAP_OK);
    cache_format_unpack(y, &r.format, &packed, NULL, 0, kMostTokens);
    append(&r, &got, width, kMostTokens, 1);
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += got.row[i] != bf16_from_f32(y[i]);
    if (wrong)
        (void)printf("%s: %d numbers\n", name, wrong);
    CU_ASSERT_EQUAL(wrong, 0);
    cache_bytes_release(&packed);
    ++*(int *)ctx;
    return SNAP_OK;
}

static void test_shipped(void) {
    int checked = 0;
    CU_ASSERT_EQUAL(cache_format_each(check_shipped, &checked, NULL), SNAP_OK);
    CU_ASSERT(checked >= 20);
}

/* snapmla-pow2 stores the scales of F in fewer bits. */
static void test_pow2_is_f(void) {
    static tokens a, b;
    cache_rounding f = load("F", 512, 64), pow2 = load("snapmla-pow2", 512, 64);
    draw(&a, 576, 7);
    b = a;
    append(&f, &a, 576, 20, 1);
    append(&pow2, &b, 576, 20, 1);
    CU_ASSERT_EQUAL(memcmp(a.row, b.row, (size_t)(kMostTokens * 576) * sizeof *a.row), 0);
    CU_ASSERT_EQUAL(rounding_token_bytes(&f), 644);
    CU_ASSERT_EQUAL(rounding_token_bytes(&pow2), 641);
}

/* A coded format must round as coded_round_rows() does, however a sequence is divided, and leave
 * the RoPE part and the tokens of an incomplete group as they are. */
static void test_coded(void) {
    static tokens whole, got, drawn;
    static float x[kMostTokens * kMostWidth];
    const int d_c = 192, width = 192 + 96;
    draw(&drawn, width, 3);
    for (const coded_format *f = coded_formats(); f->name; f++) {
        cache_rounding r = load(f->name, d_c, 96);
        CU_ASSERT_STRING_EQUAL(r.name, f->name);
        for (int i = 0; i < kMostTokens * width; i++)
            x[i] = bf16_to_f32(drawn.row[i]);
        coded_round_rows(f, x, kMostTokens, width, d_c);
        for (int i = 0; i < kMostTokens * width; i++)
            whole.row[i] = bf16_from_f32(x[i]);
        for (int first = 1; first < kMostTokens; first += 37) {
            got = drawn;
            append(&r, &got, width, first, first % 2 ? 1 : 29);
            CU_ASSERT(memcmp(got.row, whole.row, (size_t)(kMostTokens * width) * 2) == 0);
        }
        int last = (kMostTokens - 1) * width, kept = f->tokens > 1 ? width : 0;
        CU_ASSERT(memcmp(whole.row + last, drawn.row + last, (size_t)kept * 2) == 0);
        CU_ASSERT(memcmp(whole.row + d_c, drawn.row + d_c, 96 * sizeof *whole.row) == 0);
        CU_ASSERT(memcmp(whole.row, drawn.row, (size_t)width * 2) != 0);
    }
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void expect_refused(const char *name, int d_c, snap_status status, const char *text) {
    cache_rounding r;
    snap_err err = {0};
    CU_ASSERT_EQUAL(rounding_load(&r, name, d_c, 64, &err), status);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, text));
}

static void test_refusals(void) {
    static const char kPages[] =
        "{\"name\":\"x\",\"description\":\"x\",\"page_tokens\":48,\"rope\":{\"type\":\"bf16\"},"
        "\"content\":{\"type\":\"int8\",\"scale\":{\"type\":\"fp32\",\"per\":\"page\"}}}";
    char path[] = "/tmp/snapmla-rounding-XXXXXX.json";
    int fd = mkstemps(path, 5);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, kPages, sizeof kPages - 1), sizeof kPages - 1);
    (void)close(fd);
    expect_refused(path, 512, SNAP_E_UNSUPPORTED, "pages of 48 tokens");
    (void)unlink(path);
    expect_refused("int8-channel", 512, SNAP_E_UNSUPPORTED, "means and column scales");
    expect_refused("fp8_ds_mla", 640, SNAP_E_SHAPE, "512");
    expect_refused("snapmle", 512, SNAP_E_USAGE, "did you mean 'snapmla'");
}

CU_TestInfo tests_rounding[] = {
    {"A to F are their arithmetic written out", test_ablation},
    {"every shipped format is its pack and unpack", test_shipped},
    {"snapmla-pow2 is F", test_pow2_is_f},
    {"coded formats, however a sequence is divided", test_coded},
    {"what is refused", test_refusals},
    CU_TEST_INFO_NULL,
};
