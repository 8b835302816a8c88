/* Compares element types, pack and unpack with numpy and ml_dtypes, bit for bit
 * (fixtures/make_formats.py). */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/hash.h"
#include "kernels/format/format.h"

enum { kC = 512, kR = 64, kWidth = kC + kR };

static js *expected(void) {
    snap_err err = {0};
    js *doc = js_parse_file("kernels/test/fixtures/formats.json", 1 << 20, &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
    return doc;
}

static bool has_hash(const void *bytes, size_t n, const char *want) {
    char got[HASH_HEX];
    CU_ASSERT_EQUAL_FATAL(hash_bytes(bytes, n, got, NULL), SNAP_OK);
    return want && strcmp(got, want) == 0;
}

/* The fixture has one bit pattern for all NaNs. */
static float plain_nan(float x) {
    return isnan(x) ? (float)NAN : x;
}

/* ---- elements -------------------------------------------------------------------------------- */

enum { kMostCodes = 1 << 16, kMostNumbers = 8 * kMostCodes };

/* All decoded codes; of fp32 only those whose lower half is 0. */
static int decode_all(element_type t, float *out) {
    int bits = element_bits(t), n = 1 << (bits < 16 ? bits : 16);
    for (int c = 0; c < n; c++)
        out[c] = plain_nan(element_decode(t, bits == 32 ? (uint32_t)c << 16 : (uint32_t)c));
    return n;
}

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Writes the numbers that the script's numbers() has, too: the type's values, the midpoints between
 * them, the neighbours of the midpoints, and numbers beyond the type's range, all with both signs,
 * and one NaN. Returns how many there are. */
static int numbers(const float *values, int n, float *out) {
    float *v = out;
    int count = 0, m = 0;
    for (int i = 0; i < n; i++)
        if (isfinite(values[i]) && values[i] >= 0.0f)
            v[count++] = fabsf(values[i]);
    qsort(v, (size_t)count, sizeof *v, by_value);
    for (int i = 0; i < count; i++)
        if (m == 0 || v[i] != v[m - 1])
            v[m++] = v[i];
    float *mid = v + m, *below = mid + m - 1, *above = below + m - 1, *end = above + m - 1;
    for (int i = 0; i + 1 < m; i++) {
        mid[i] = (float)(((double)v[i] + (double)v[i + 1]) / 2.0);
        below[i] = nextafterf(mid[i], 0.0f);
        above[i] = nextafterf(mid[i], INFINITY);
    }
    *end++ = v[m - 1] * 1.03f;
    *end++ = v[m - 1] * 1.2f;
    *end++ = INFINITY;
    *end++ = (float)NAN;
    n = (int)(end - out);
    for (int i = 0; i + 1 < n; i++)
        *end++ = -out[i];
    return 2 * n - 1;
}

static void test_elements(void) {
    js *doc = expected();
    float *values = calloc(kMostCodes, sizeof *values), *x = calloc(kMostNumbers, sizeof *x);
    uint32_t *codes = calloc(kMostNumbers, sizeof *codes);
    CU_ASSERT_FATAL(values && x && codes);
    for (int t = 0; t < ELEMENT_TYPES; t++) {
        const js *want = js_get_object(js_get_object(doc, "elements"), element_name(t));
        int n = decode_all(t, values);
        if (!has_hash(values, (size_t)n * sizeof *values, js_get_str(want, "decode")))
            CU_FAIL("decoded codes differ from ml_dtypes");
        n = numbers(values, n, x);
        for (int i = 0; i < n; i++)
            codes[i] = element_encode(t, (double)x[i]);
        if (t != ELEMENT_UE8M0 &&
            !has_hash(codes, (size_t)n * sizeof *codes, js_get_str(want, "encode")))
            CU_FAIL("encoded numbers differ from ml_dtypes");
    }
    free(values);
    free(x);
    free(codes);
    js_free(doc);
}

static void test_ue8m0(void) {
    static const struct {
        double x;
        uint32_t code;
    } cases[] = {{1.0, 127},
                 {2.0, 128},
                 {1.001, 128},
                 {0x1p127, 254},
                 {0x1.1p127, 255},
                 {0x1p-127, 0},
                 {0.0, 0},
                 {-3.0, 0},
                 {(double)NAN, 255},
                 {0x1.8p-127, 1},
                 {(double)INFINITY, 255}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CU_ASSERT_EQUAL(element_encode(ELEMENT_UE8M0, cases[i].x), cases[i].code);
}

static void test_arrays_of_elements(void) {
    static const uint8_t want[] = {0x21, 0x43, 0x05};
    uint8_t at[3] = {0};
    for (int i = 0; i < 5; i++)
        element_store(ELEMENT_INT4, at, i, (uint32_t)i + 1);
    CU_ASSERT(memcmp(at, want, sizeof at) == 0);
    element_store(ELEMENT_E2M1, at, 1, 0xf);
    CU_ASSERT_EQUAL(at[0], 0xf1);
    element_store(ELEMENT_FP16, at, 0, 0x1234);
    CU_ASSERT(at[0] == 0x34 && at[1] == 0x12 && element_load(ELEMENT_FP16, at, 0) == 0x1234);
}

/* ---- formats --------------------------------------------------------------------------------- */

/* Loads a shipped format with the fixture's pages. */
static cache_format load_small(const char *name, int page_tokens) {
    char path[128];
    cache_format f;
    snap_err err = {0};
    (void)snprintf(path, sizeof path, "configs/formats/%s.json", name);
    js *doc = js_parse_file(path, 1 << 20, &err);
    CU_ASSERT_FATAL(doc && js_set_int(doc, "page_tokens", page_tokens));
    CU_ASSERT_EQUAL_FATAL(cache_format_read(&f, doc, path, kC, kR, &err), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(f.name, name);
    js_free(doc);
    return f;
}

typedef struct {
    js *doc;
    int checked;
    float *x, *clean, *y;
    int tokens;
} fixture;

static snap_status check_format(void *ctx, const char *name, snap_err *err) {
    fixture *t = ctx;
    const js *want = js_get_object(js_get_object(t->doc, "formats"), name);
    cache_format f = load_small(name, (int)js_get_int(t->doc, "page_tokens", 0));
    cache_bytes b;
    const float *x = js_get_bool(want, "nan", true) ? t->x : t->clean;
    CU_ASSERT_PTR_NOT_NULL(want);
    CU_ASSERT_EQUAL_FATAL(cache_format_pack(&b, &f, x, t->tokens, err), SNAP_OK);
    const js *pools = js_get_array(want, "pools");
    CU_ASSERT_EQUAL((int)js_len(pools), f.pools);
    for (int i = 0; i < f.pools; i++)
        if (!has_hash(b.pool[i], (size_t)cache_format_pool_bytes(&f, i, b.pages),
                      js_str(js_at(pools, (size_t)i)))) {
            printf("%s: pool %d differs\n", name, i);
            CU_FAIL("packed bytes differ from numpy's");
        }
    cache_format_unpack(t->y, &f, &b, NULL, 0, t->tokens);
    for (int i = 0; i < t->tokens * kWidth; i++)
        t->y[i] = plain_nan(t->y[i]);
    if (!has_hash(t->y, (size_t)(t->tokens * kWidth) * sizeof *t->y, js_get_str(want, "values"))) {
        printf("%s: values differ\n", name);
        CU_FAIL("unpacked values differ from numpy's");
    }
    cache_bytes_release(&b);
    t->checked++;
    return SNAP_OK;
}

static void test_shipped_formats(void) {
    buf rows = {0};
    fixture t = {.doc = expected()};
    t.tokens = (int)js_get_int(t.doc, "tokens", 0);
    size_t n = (size_t)t.tokens * kWidth;
    CU_ASSERT_EQUAL_FATAL(fs_read("kernels/test/fixtures/formats.f32", &rows, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(rows.len, n * sizeof(float));
    t.x = malloc(n * sizeof *t.x);
    t.clean = malloc(n * sizeof *t.clean);
    t.y = malloc(n * sizeof *t.y);
    CU_ASSERT_FATAL(t.x && t.clean && t.y);
    memcpy(t.x, rows.data, rows.len);
    for (size_t i = 0; i < n; i++)
        t.clean[i] = isnan(t.x[i]) ? 0.0f : t.x[i];
    CU_ASSERT_EQUAL(cache_format_each(check_format, &t, NULL), SNAP_OK);
    void *it = js_first(js_get_object(t.doc, "formats"));
    int known = 0;
    for (; it; it = js_next(js_get_object(t.doc, "formats"), it))
        known++;
    CU_ASSERT_EQUAL(t.checked, known);
    free(t.x);
    free(t.clean);
    free(t.y);
    buf_release(&rows);
    js_free(t.doc);
}

CU_TestInfo tests_format_bytes[] = {
    {"every code, tie and neighbour of every element type", test_elements},
    {"ue8m0 rounds up to powers of two", test_ue8m0},
    {"small elements share a byte", test_arrays_of_elements},
    {"every shipped format has the bytes and values of numpy", test_shipped_formats},
    CU_TEST_INFO_NULL};
