/* Tests the rounding of cache rows through formats. For the formats A to F, the test computes the
 * expected numbers itself. For the shipped formats and other descriptors, it compares the rows with
 * those that were packed and unpacked. It also tests which formats are refused. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "generator/local/model/rounding.h"
#include "kernels/formats.h"

enum { kMostTokens = 150, kMostWidth = 640, kMostPadded = 640 };

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
        rounding_apply(&r->rows, t->row + at * width, n, page, at);
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

/* What pack and unpack make of @n rows of bf16 that share values with the @before rows in front of
 * them. */
static void through_bytes(const cache_rounding *r, uint16_t *rows, int before, int n) {
    static float x[(MLA_PAGE + kMostTokens) * kMostPadded];
    int width = r->rows.d_c + r->rows.d_r, padded = r->format.d_c + r->rows.d_r;
    cache_bytes packed = {0};
    const uint16_t *from = rows - before * width;
    for (int i = 0; i < before + n; i++)
        for (int d = 0; d < padded; d++) {
            int column = d < r->format.d_c ? d : d - r->format.d_c + r->rows.d_c;
            bool padding = d >= r->rows.d_c && d < r->format.d_c;
            x[i * padded + d] = padding ? 0.0f : bf16_to_f32(from[i * width + column]);
        }
    CU_ASSERT_EQUAL_FATAL(cache_format_pack(&packed, &r->format, x, before + n, NULL), SNAP_OK);
    cache_format_unpack(x, &r->format, &packed, NULL, before, n);
    for (int i = 0; i < n; i++)
        for (int d = 0; d < width; d++)
            rows[i * width + d] = bf16_from_f32(
                x[i * padded + (d < r->rows.d_c ? d : d - r->rows.d_c + r->format.d_c)]);
    cache_bytes_release(&packed);
}

/* Appends rows as append() does, through pack and unpack. */
static void append_bytes(const cache_rounding *r, tokens *t, int width, int first, int piece) {
    for (int at = 0, n = first; at < kMostTokens; at += n, n = piece) {
        n = at + n > kMostTokens ? kMostTokens - at : n;
        int page = r->rows.page_tokens ? r->rows.page_tokens : n;
        for (int done = 0, count; done < n; done += count) {
            int before = r->rows.page_tokens ? (at + done) % page : 0;
            count = page - before < n - done ? page - before : n - done;
            through_bytes(r, t->row + (at + done) * width, before, count);
        }
    }
}

static bool is_nan(uint16_t bf16) {
    return (bf16 & 0x7fffu) > 0x7f80u;
}

static void draw_edges(tokens *t, const cache_rounding *r, cache_input kind) {
    static float x[kMostTokens * kMostPadded];
    int width = r->rows.d_c + r->rows.d_r, padded = r->format.d_c + r->rows.d_r;
    cache_format_input(x, &r->format, kind, kMostTokens, 5);
    for (int i = 0; i < kMostTokens; i++)
        for (int d = 0; d < width; d++)
            t->row[i * width + d] = bf16_from_f32(
                x[i * padded + (d < r->rows.d_c ? d : d - r->rows.d_c + r->format.d_c)]);
}

/* Appends the rows of @got, and compares them with what pack and unpack make of them. A NaN may
 * have any sign and payload. */
static int wrong_numbers(const cache_rounding *r, tokens *got, int first, int piece) {
    static tokens want;
    const int width = r->rows.d_c + r->rows.d_r;
    int wrong = 0;
    want = *got;
    append(r, got, width, first, piece);
    append_bytes(r, &want, width, first, piece);
    for (int i = 0; i < kMostTokens * width; i++)
        wrong += got->row[i] != want.row[i] && !(is_nan(got->row[i]) && is_nan(want.row[i]));
    return wrong;
}

/* Tries all inputs of conformance, and sequences that are divided in other ways. */
static void check_bytes(const cache_rounding *r) {
    static tokens got;
    static const int pieces[][2] = {{kMostTokens, 1}, {70, 1}, {5, 33}};
    int wrong = 0;
    for (int kind = 0; kind < CACHE_INPUTS; kind++) {
        draw_edges(&got, r, (cache_input)kind);
        wrong += wrong_numbers(r, &got, 61, 89);
    }
    for (int p = 0; p < 3; p++) {
        draw(&got, r->rows.d_c + r->rows.d_r, 1);
        wrong += wrong_numbers(r, &got, pieces[p][0], pieces[p][1]);
    }
    if (wrong)
        (void)printf("%s, %d+%d columns: %d numbers\n", r->name, r->rows.d_c, r->rows.d_r, wrong);
    CU_ASSERT_EQUAL(wrong, 0);
}

static snap_status check_shipped(void *ctx, const char *name, snap_err *err) {
    (void)err;
    static const int widths[][2] = {{512, 64}, {192, 96}, {32, 32}};
    for (int i = 0; i < 3; i++) {
        cache_rounding r;
        snap_err why = {0};
        snap_status st = rounding_load(&r, name, widths[i][0], widths[i][1], &why);
        if (st == SNAP_E_UNSUPPORTED || (i && st == SNAP_E_SHAPE))
            continue;
        CU_ASSERT_EQUAL_FATAL(st, SNAP_OK);
        CU_ASSERT_STRING_EQUAL(r.format.name, name);
        CU_ASSERT_EQUAL(strlen(r.sha256), 64);
        check_bytes(&r);
        ++*(int *)ctx;
    }
    return SNAP_OK;
}

static void test_shipped(void) {
    int checked = 0;
    CU_ASSERT_EQUAL(cache_format_each(check_shipped, &checked, NULL), SNAP_OK);
    CU_ASSERT(checked >= 60);
}

/* Writes a file with a format. @path: a template for mkstemps() that ends with ".json". @fields:
 * the fields after name and description, with ' for ". */
static void write_format(char path[], const char *fields) {
    buf text = {0};
    (void)buf_printf(&text, "{'name':'x','description':'x',%s}", fields);
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] == '\'')
            text.data[i] = '"';
    int fd = mkstemps(path, 5);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, text.data, text.len), (ssize_t)text.len);
    (void)close(fd);
    buf_release(&text);
}

/* Combinations that no shipped format has. */
static void test_other_descriptors(void) {
    static const char *const formats[] = {
        "'page_tokens':16,'content':{'type':'e2m1','hadamard':64,'scale':{'type':'e4m3fn',"
        "'per':'page','columns':16,'tensor_scale':true}},"
        "'rope':{'type':'e2m1','scale':{'type':'e4m3fn','columns':16,'tensor_scale':true}}",

        "'content':{'type':'e5m2','scale':{'type':'bf16'}},'rope':{'type':'e5m2','scale':'shared'}",

        "'page_tokens':8,'content':{'type':'e4m3fnuz','scale':{'type':'fp16','per':'page'}},"
        "'rope':{'type':'e4m3fnuz','scale':'shared'}",

        "'content':{'type':'int8','zero':{},'scale':{'type':'fp32','per':'tensor',"
        "'rounding':'pow2-up'}},'rope':{'type':'int4','scale':{'type':'ue8m0','per':'page',"
        "'columns':8,'rounding':'pow2-floor','min':0.01}}",

        "'content':{'type':'int8','zero':{},'scale':{'type':'fp32'}},"
        "'rope':{'type':'int8','scale':'content'}",

        "'content':{'type':'fp16'},'rope':{'type':'fp32','scale':{'fixed':3.0}}",
    };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char path[] = "/tmp/snapmla-rounding-XXXXXX.json";
        write_format(path, formats[i]);
        cache_rounding r = load(path, 512, 64), narrow = load(path, 192, 96);
        (void)unlink(path);
        check_bytes(&r);
        check_bytes(&narrow);
    }
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
 * the RoPE part, the tokens of an incomplete group and those that the format keeps exact as they
 * are. */
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
        size_t exact = (size_t)f->exact * (size_t)width;
        CU_ASSERT(memcmp(whole.row, drawn.row, exact * 2) == 0);
        CU_ASSERT(memcmp(whole.row + exact, drawn.row + exact, (size_t)width * 2) != 0);
    }
}

/* ROW_FP8 must give what quant_row() and dequant_row() give. */
static void test_fp8_rows(void) {
    static tokens got;
    const row_format f = {.rule = ROW_FP8, .d_c = 192, .d_r = 96, .columns = 192};
    uint8_t content[192];
    uint16_t rope[96], want[288];
    int wrong = 0;
    draw(&got, 288, 11);
    for (int i = 0; i < kMostTokens; i++) {
        uint16_t *row = got.row + i * 288;
        float scale = quant_row(row, 192, 96, MLA_SCALE_MAX, content, rope);
        dequant_row(content, rope, scale, 192, 96, want);
        rounding_apply(&f, row, 1, got.row + i / MLA_PAGE * MLA_PAGE * 288, i);
        wrong += memcmp(row, want, sizeof want) != 0;
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void expect_refused(const char *name, int d_c, snap_status status, const char *text) {
    cache_rounding r;
    snap_err err = {0};
    CU_ASSERT_EQUAL(rounding_load(&r, name, d_c, 64, &err), status);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, text));
}

static void test_refusals(void) {
    char path[] = "/tmp/snapmla-rounding-XXXXXX.json";
    write_format(path, "'page_tokens':48,'rope':{'type':'bf16'},"
                       "'content':{'type':'int8','scale':{'type':'fp32','per':'page'}}");
    expect_refused(path, 512, SNAP_E_UNSUPPORTED, "pages of 48 tokens");
    (void)unlink(path);
    expect_refused("int8-channel", 512, SNAP_E_UNSUPPORTED, "means and column scales");
    expect_refused("fp8_ds_mla", 640, SNAP_E_SHAPE, "512");
    expect_refused("snapmle", 512, SNAP_E_USAGE, "did you mean 'snapmla'");
}

CU_TestInfo tests_rounding[] = {
    {"formats A to F equal their arithmetic written out", test_ablation},
    {"rounding equals packing and unpacking in every shipped format", test_shipped},
    {"rounding equals packing and unpacking with other descriptors", test_other_descriptors},
    {"snapmla-pow2 rounds as format F", test_pow2_is_f},
    {"coded formats, however a sequence is divided", test_coded},
    {"rows of the FP8 cache in bf16", test_fp8_rows},
    {"formats that are refused", test_refusals},
    CU_TEST_INFO_NULL,
};
