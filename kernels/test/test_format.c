/* Tests descriptors of cache formats: reading, refusing, sizes, attention, bounds. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/format/format.h"
#include "kernels/formats.h"

enum { kC = 512, kR = 64, kWidth = kC + kR, kTokens = 100, kQueries = 2 };

static cache_format load(const char *name) {
    cache_format f;
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(cache_format_load(&f, name, kC, kR, &err), SNAP_OK);
    return f;
}

/* ---- reading descriptors --------------------------------------------------------------------- */

/* Reads a descriptor whose parts are given as JSON; NULL stands for a valid part. */
static snap_status read_parts(cache_format *f, const char *head, const char *content,
                              const char *rope, snap_err *err) {
    char text[2048];
    int n = snprintf(text, sizeof text,
                     "{\"name\": \"x\", \"description\": \"d\", %s \"content\": %s, \"rope\": %s}",
                     head ? head : "",
                     content ? content : "{\"type\": \"e4m3fn\", \"scale\": {\"type\": \"fp32\"}}",
                     rope ? rope : "{\"type\": \"bf16\"}");
    js *doc = js_parse(text, (size_t)n, "x.json", err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
    snap_status st = cache_format_read(f, doc, "x.json", kC, kR, err);
    js_free(doc);
    return st;
}

/* fp8_ds_mla byte by byte, as the documentation of the kernels that read it describes it. */
static void test_656_bytes(void) {
    cache_format f = load("fp8_ds_mla");
    cache_bytes b;
    float x[kWidth] = {0};
    x[0] = 448.0f;    /* scale 1 */
    x[128] = -896.0f; /* scale 2: code of -448 */
    x[511] = 56.0f;   /* scale 1/8 */
    x[kC] = 1.5f;
    x[kWidth - 1] = -2.0f;
    CU_ASSERT_EQUAL(cache_format_token_bytes(&f), 656.0);
    CU_ASSERT_EQUAL(cache_format_read_bytes(&f, 100), 65600.0);
    CU_ASSERT_EQUAL_FATAL(cache_format_pack(&b, &f, x, 1, NULL), SNAP_OK);
    const uint8_t *at = b.pool[0];
    static const uint8_t scales[16] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40,
                                       0, 0, 0x80, 0,    0, 0, 0, 0x3e};
    CU_ASSERT(at[0] == 0x7e && at[128] == 0xfe && at[511] == 0x7e);
    CU_ASSERT(memcmp(at + 512, scales, sizeof scales) == 0);
    CU_ASSERT(at[528] == 0xc0 && at[529] == 0x3f && at[654] == 0x00 && at[655] == 0xc0);
    CU_ASSERT_EQUAL(at[656], 0);
    cache_bytes_release(&b);
}

static void test_orders(void) {
    cache_format f;
    CU_ASSERT_EQUAL(read_parts(&f, NULL, NULL, NULL, NULL), SNAP_OK);
    CU_ASSERT(f.pools == 3 && f.pool[0].bytes == 64 * kC && f.pool[1].bytes == 64 * 4);
    CU_ASSERT_EQUAL(read_parts(&f, "\"order\": \"interleaved\",", NULL, NULL, NULL), SNAP_OK);
    CU_ASSERT(f.pools == 1 && f.content.scale.plane.offset == 512 && f.rope.plane.offset == 516);
    CU_ASSERT(f.rope.plane.stride == 644 && f.pool[0].bytes == 64 * 644);
    CU_ASSERT_EQUAL(read_parts(&f, "\"order\": \"page\", \"page_bytes\": 45056,", NULL, NULL, NULL),
                    SNAP_OK);
    CU_ASSERT(f.pools == 1 && f.content.scale.plane.offset == 64 * kC);
    CU_ASSERT(f.rope.plane.offset == 64 * (kC + 4) && f.rope.plane.stride == 128);
    CU_ASSERT_EQUAL(cache_format_token_bytes(&f), 704.0);
    CU_ASSERT_EQUAL(cache_format_read_bytes(&f, 1), 644.0);
    /* a value of the page follows the records of its tokens */
    CU_ASSERT_EQUAL(
        read_parts(&f, "\"order\": \"interleaved\", \"page_tokens\": 16,",
                   "{\"type\": \"int8\", \"scale\": {\"type\": \"fp32\", \"per\": \"page\"}}", NULL,
                   NULL),
        SNAP_OK);
    CU_ASSERT(f.content.scale.plane.offset == 16 * 640 && f.pool[0].bytes == 16 * 640 + 4);
}

static void test_refused(void) {
    static const struct {
        const char *head, *content, *rope, *said;
        snap_status code;
    } cases[] = {
        {"\"x\": 1,", NULL, NULL, "x.json: unknown key 'x'", SNAP_E_INPUT},
        {"\"order\": \"diagonal\",", NULL, NULL, "unknown order 'diagonal'", SNAP_E_INPUT},
        {"\"page_tokens\": 0,", NULL, NULL, "'page_tokens' must be 1..4096", SNAP_E_INPUT},
        {"\"page_tokens\": 1.5,", NULL, NULL, "page_tokens", SNAP_E_INPUT},
        {"\"token_bytes\": 700,", NULL, NULL, "interleaved", SNAP_E_INPUT},
        {"\"order\": \"interleaved\", \"token_bytes\": 600,", NULL, NULL, "overlap", SNAP_E_INPUT},
        {"\"order\": \"page\", \"page_bytes\": 64,", NULL, NULL, "reaches past", SNAP_E_INPUT},
        {"\"order\": \"page\", \"page_bytes\": 9223372036854775807,", NULL, NULL, "must be 1..",
         SNAP_E_INPUT},
        {"\"attention\": {\"queries\": \"fp8\"},", NULL, NULL,
         "x.json: attention: unknown queries 'fp8'", SNAP_E_INPUT},
        {"\"attention\": null,", NULL, NULL, "'attention' is null", SNAP_E_INPUT},
        {NULL, "[]", NULL, "content", SNAP_E_INPUT},
        {NULL, "{}", NULL, "x.json: content", SNAP_E_INPUT},
        {NULL, "{\"type\": \"e4m3fm\"}", NULL, "unknown type 'e4m3fm' (did you mean", SNAP_E_INPUT},
        {NULL, "{\"type\": \"bf16\\u0000\"}", NULL, "unknown type", SNAP_E_INPUT},
        {NULL, "{\"type\": \"ue8m0\"}", NULL, "type of scales", SNAP_E_INPUT},
        {NULL, "{\"type\": \"int8\"}", NULL, "content.scale: integers need a scale", SNAP_E_INPUT},
        {NULL, "{\"type\": \"bf16\", \"offset\": -1}", NULL, "'offset' must be 0..", SNAP_E_INPUT},
        {NULL, "{\"type\": \"bf16\", \"stride\": -64}", NULL, "'stride' must be 0..", SNAP_E_INPUT},
        {NULL, "{\"type\": \"bf16\", \"stride\": 9000000000000000000}", NULL, "'stride' must be",
         SNAP_E_INPUT},
        {NULL, "{\"type\": \"bf16\", \"stride\": 512}", NULL, "overlap the next token",
         SNAP_E_INPUT},
        {NULL, "{\"type\": \"bf16\", \"offset\": 3}", NULL, "must be multiples of its 2 bytes",
         SNAP_E_INPUT},
        {NULL, "{\"type\": \"bf16\", \"columns\": 1000000000}", NULL, "'columns' must be 1..1024",
         SNAP_E_INPUT},
        {NULL, "{\"type\": \"bf16\", \"columns\": 256}", NULL, "256 columns, not 512",
         SNAP_E_SHAPE},
        {NULL, "{\"type\": \"bf16\", \"scale\": {\"type\": \"fp32\"}}", NULL,
         "bf16 needs no scale of its own", SNAP_E_INPUT},
        {NULL, "{\"type\": \"e4m3fn\", \"scale\": \"content\"}", NULL, "only the RoPE part",
         SNAP_E_INPUT},
        {NULL, "{\"type\": \"e4m3fn\", \"scale\": {\"type\": \"e5m2\"}}", NULL,
         "content.scale.type: a scale is", SNAP_E_INPUT},
        {NULL, "{\"type\": \"e4m3fn\", \"scale\": {\"type\": \"ue8m0\"}}", NULL,
         "ue8m0 holds powers of two only", SNAP_E_INPUT},
        {NULL, "{\"type\": \"e4m3fn\", \"scale\": {\"type\": \"fp32\", \"columns\": 100}}", NULL,
         "x.json: content.scale: scales of 100 columns", SNAP_E_SHAPE},
        {NULL, "{\"type\": \"e4m3fn\", \"scale\": {\"type\": \"fp32\", \"min\": -1}}", NULL,
         "'min' must be", SNAP_E_INPUT},
        {NULL, "{\"type\": \"e4m3fn\", \"scale\": {\"type\": \"fp32\", \"min\": 1e300}}", NULL,
         "'min' must be", SNAP_E_INPUT},
        {NULL, "{\"type\": \"e4m3fn\", \"scale\": {\"fixed\": 0}}", NULL, "content.scale.fixed",
         SNAP_E_INPUT},
        {NULL, "{\"type\": \"e4m3fn\", \"scale\": {\"fixed\": 1, \"type\": \"fp32\"}}", NULL,
         "unknown key 'type'", SNAP_E_INPUT},
        {NULL, "{\"type\": \"e2m1\", \"scale\": {\"type\": \"fp32\", \"tensor_scale\": true}}",
         NULL, "a second level needs scales of type e4m3fn", SNAP_E_INPUT},
        {NULL,
         "{\"type\": \"e2m1\", \"scale\": {\"type\": \"e4m3fn\", \"per\": \"tensor\", "
         "\"tensor_scale\": true}}",
         NULL, "a second level needs \"per\"", SNAP_E_INPUT},
        {NULL, "{\"type\": \"e4m3fn\", \"scale\": {\"type\": \"fp32\"}, \"zero\": {}}", NULL,
         "content.zero", SNAP_E_INPUT},
        {NULL, "{\"type\": \"int4\", \"scale\": {\"fixed\": 1}, \"zero\": {}}", NULL,
         "content.zero", SNAP_E_INPUT},
        {NULL, "{\"type\": \"bf16\", \"hadamard\": 3}", NULL, "not a power of two", SNAP_E_INPUT},
        {NULL, "{\"type\": \"bf16\", \"hadamard\": 1024}", NULL, "does not divide", SNAP_E_SHAPE},
        {"\"attention\": {\"queries\": \"format\"},", "{\"type\": \"bf16\", \"mean\": true}", NULL,
         "without their mean", SNAP_E_INPUT},
        {NULL, NULL, "{\"type\": \"bf16\", \"zero\": {}}", "unknown key 'zero'", SNAP_E_INPUT},
        {NULL, NULL, "{\"type\": \"bf16\", \"scale\": \"shared\"}", "of one type", SNAP_E_INPUT},
        {NULL, "{\"type\": \"bf16\"}", "{\"type\": \"bf16\", \"scale\": \"content\"}",
         "must have one stored scale", SNAP_E_INPUT},
        {"\"order\": \"interleaved\",", "{\"type\": \"bf16\", \"offset\": 0}",
         "{\"type\": \"bf16\", \"offset\": 1000}", "rope overlaps content", SNAP_E_INPUT},
        {"\"order\": \"page\",", "{\"type\": \"bf16\", \"stride\": 2048}",
         "{\"type\": \"bf16\", \"offset\": 1100, \"stride\": 2200}", "overlaps", SNAP_E_INPUT},
        {NULL,
         "{\"type\": \"int8\", \"scale\": {\"type\": \"fp32\", \"per\": \"page\", \"stride\": 4}}",
         NULL, "stride: it must be 0", SNAP_E_INPUT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cache_format f;
        snap_err err = {0};
        snap_status st = read_parts(&f, cases[i].head, cases[i].content, cases[i].rope, &err);
        if (st != cases[i].code || !strstr(err.text, cases[i].said) ||
            !strstr(err.text, "x.json: ")) {
            printf("case %zu: %s\n", i, err.text);
            CU_FAIL("a descriptor was accepted, or refused with another message");
        }
    }
}

static void test_refused_files(void) {
    cache_format f;
    snap_err err = {0};
    CU_ASSERT_EQUAL(cache_format_load(&f, "snapmla8", kC, kR, &err), SNAP_E_USAGE);
    CU_ASSERT(strstr(err.text, "did you mean 'snapmla'?") && strstr(err.text, "fp8_ds_mla"));
    err = (snap_err){0};
    CU_ASSERT_EQUAL(cache_format_load(&f, "none/x.json", kC, kR, &err), SNAP_E_IO);
    err = (snap_err){0};
    CU_ASSERT_EQUAL(cache_format_load(&f, "fp8_ds_mla", 256, 32, &err), SNAP_E_SHAPE);
    CU_ASSERT_EQUAL(cache_format_load(&f, "snapmla", 100000, 64, NULL), SNAP_E_SHAPE);
    CU_ASSERT_EQUAL(cache_format_load(&f, "snapmla", 256, 32, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(cache_format_token_bytes(&f), 256 + 4 + 64.0);
    js *list = js_new_array();
    err = (snap_err){0};
    CU_ASSERT_EQUAL(cache_format_read(&f, list, "x.json", kC, kR, &err), SNAP_E_INPUT);
    CU_ASSERT_STRING_EQUAL(err.text, "x.json: a cache format is a JSON object");
    js_free(list);
}

/* The text has nested lists. The parser refuses too many levels, and the format refuses even one.
 */
static void test_deep_json(void) {
    enum { kFew = 1000, kMany = 100000 };
    static char text[2 * kMany + 1];
    cache_format f;
    for (int deep = kFew; deep <= kMany; deep += kMany - kFew) {
        memset(text, '[', (size_t)deep);
        memset(text + deep, ']', (size_t)deep);
        snap_err err = {0};
        js *list = js_parse(text, (size_t)(2 * deep), "x.json", &err);
        CU_ASSERT_EQUAL(list != NULL, deep == kFew);
        if (!list)
            continue;
        js *doc = js_new_object();
        CU_ASSERT(js_set_str(doc, "name", "x") && js_set_str(doc, "description", "d") &&
                  js_set_new(doc, "content", list));
        CU_ASSERT_EQUAL(cache_format_read(&f, doc, "x.json", kC, kR, &err), SNAP_E_INPUT);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "content"));
        js_free(doc);
    }
}

/* A struct that was not read from JSON is checked as well. */
static void test_wrong_structs(void) {
    cache_format f = load("snapmla"), g = f;
    g.content.plane.pool = 7;
    CU_ASSERT_EQUAL(cache_format_check(&g, NULL), SNAP_E_INPUT);
    g = f;
    g.rope.plane.pool = g.content.plane.pool;
    CU_ASSERT_EQUAL(cache_format_check(&g, NULL), SNAP_E_INPUT);
    g = f;
    g.pools = 1000;
    CU_ASSERT_EQUAL(cache_format_check(&g, NULL), SNAP_E_INPUT);
    g = f;
    g.pool[0].bytes = INT64_MAX;
    CU_ASSERT_EQUAL(cache_format_check(&g, NULL), SNAP_E_INPUT);
    g = f;
    g.content.plane.offset = INT64_MAX;
    CU_ASSERT_EQUAL(cache_format_check(&g, NULL), SNAP_E_INPUT);
    CU_ASSERT_EQUAL(cache_format_pool_bytes(&f, 0, INT64_MAX), -1);
    cache_bytes b;
    CU_ASSERT_EQUAL(cache_format_pack(&b, &f, NULL, -1, NULL), SNAP_E_SHAPE);
    CU_ASSERT_EQUAL(cache_format_pack(&b, &f, NULL, INT64_MAX, NULL), SNAP_E_SHAPE);
}

/* ---- the arm's own layout -------------------------------------------------------------------- */

/* The format @name packs what quant_row() of the backends gives. */
static void same_as_backends(const char *name, mla_scale rule) {
    cache_format f = load(name);
    uint16_t row[kWidth], rope[kR];
    uint8_t c8[kC];
    float x[kWidth];
    cache_bytes b;
    for (int k = 0; k < CACHE_INPUTS; k++) {
        cache_format_input(x, &f, (cache_input)k, 1, 9);
        for (int d = 0; d < kWidth; d++)
            row[d] = bf16_from_f32(x[d]);
        float a = quant_row(row, kC, kR, rule, c8, rope);
        CU_ASSERT_EQUAL_FATAL(cache_format_pack_bf16(&b, &f, row, 1, NULL), SNAP_OK);
        CU_ASSERT(memcmp(b.pool[0], c8, sizeof c8) == 0);
        CU_ASSERT(memcmp(b.pool[1], &a, sizeof a) == 0);
        CU_ASSERT(memcmp(b.pool[2], rope, sizeof rope) == 0);
        cache_bytes_release(&b);
    }
}

static void test_same_as_backends(void) {
    same_as_backends("snapmla", MLA_SCALE_MAX);
    same_as_backends("F", MLA_SCALE_POW2);
}

/* ---- values and attention -------------------------------------------------------------------- */

typedef struct {
    float x[kTokens * kWidth], y[kTokens * kWidth], q[kQueries * kWidth];
} numbers;

/* The largest |y - x| of the content, divided by the largest magnitude of the columns that share
 * the scale. */
static double worst_rounding(const cache_format *f, const numbers *n) {
    int width = f->content.scale.columns;
    double worst = 0.0;
    for (int i = 0; i < kTokens; i++)
        for (int first = 0; first < kC; first += width) {
            double largest = 0.0, off = 0.0;
            for (int d = i * kWidth + first; d < i * kWidth + first + width; d++) {
                largest = fmax(largest, fabs((double)n->x[d]));
                off = fmax(off, fabs((double)n->y[d] - (double)n->x[d]));
            }
            worst = largest > 0.0 ? fmax(worst, off / largest) : worst;
        }
    return worst;
}

/* With a stored scale for each token and no rotation, the error never exceeds the bound. The
 * largest error is more than a third of the bound, so the bound is not too loose. */
static snap_status check_rounding(void *ctx, const char *name, snap_err *err) {
    static const cache_input kinds[] = {CACHE_INPUT_NORMAL, CACHE_INPUT_CODES, CACHE_INPUT_TIES,
                                        CACHE_INPUT_OUTLIERS};
    numbers *n = ctx;
    cache_format f = load(name);
    double bound = cache_part_rounding(&f, &f.content), worst = 0.0;
    cache_bytes b;
    if (f.content.scale.kind != SCALE_OWN || f.content.scale.per != SCALE_PER_TOKEN || f.hadamard)
        return SNAP_OK;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        cache_format_input(n->x, &f, kinds[k], kTokens, 4);
        CU_ASSERT_EQUAL_FATAL(cache_format_pack(&b, &f, n->x, kTokens, err), SNAP_OK);
        cache_format_unpack(n->y, &f, &b, NULL, 0, kTokens);
        cache_bytes_release(&b);
        worst = fmax(worst, worst_rounding(&f, n));
    }
    if (!(worst <= bound && worst > bound / 3)) {
        printf("%s: %g, bound %g\n", name, worst, bound);
        CU_FAIL("the rounding error does not fit its bound");
    }
    return SNAP_OK;
}

static void test_rounding(void) {
    numbers *n = calloc(1, sizeof *n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(n);
    CU_ASSERT_EQUAL(cache_format_each(check_rounding, n, NULL), SNAP_OK);
    free(n);
}

/* Attention as in a textbook: all scores, one maximum, one sum. */
static void textbook(const float *q, const float *kv, double scale, double *o, double *lse) {
    double s[kTokens], m = -(double)INFINITY, l = 0;
    for (int j = 0; j < kTokens; j++) {
        s[j] = 0;
        for (int d = 0; d < kWidth; d++)
            s[j] += scale * (double)q[d] * (double)kv[j * kWidth + d];
        m = fmax(m, s[j]);
    }
    for (int j = 0; j < kTokens; j++)
        l += exp(s[j] - m);
    for (int d = 0; d < kC; d++) {
        o[d] = 0;
        for (int j = 0; j < kTokens; j++)
            o[d] += exp(s[j] - m) / l * (double)kv[j * kWidth + d];
    }
    *lse = m + log(l);
}

static double relative(const double *a, const double *b) {
    double diff = 0, norm = 0;
    for (int d = 0; d < kC; d++) {
        diff += (a[d] - b[d]) * (a[d] - b[d]);
        norm += b[d] * b[d];
    }
    return sqrt(diff / norm);
}

/* Swaps the two pages of a cache, and checks that the table finds them. */
static void check_table(const cache_format *f, cache_bytes *b, const numbers *n) {
    static const int32_t table[2] = {1, 0}, wild[2] = {INT32_MIN, INT32_MAX};
    float row[kWidth];
    CU_ASSERT_EQUAL_FATAL(b->pages, 2);
    for (int p = 0; p < f->pools; p++)
        for (int64_t i = 0; f->pool[p].paged && i < f->pool[p].bytes; i++) {
            uint8_t kept = b->pool[p][i];
            b->pool[p][i] = b->pool[p][f->pool[p].bytes + i];
            b->pool[p][f->pool[p].bytes + i] = kept;
        }
    cache_format_unpack(row, f, b, table, 70, 1);
    CU_ASSERT(memcmp(row, n->y + 70 * kWidth, sizeof row) == 0);
    cache_format_unpack(row, f, b, wild, 70, 1); /* clamped to page 1, which holds tokens 0 .. 63 */
    CU_ASSERT(memcmp(row, n->y + 6 * kWidth, sizeof row) == 0);
}

/* Attention over the stored codes and scales is attention over the unpacked values. */
static snap_status check_attention(void *ctx, const char *name, snap_err *err) {
    numbers *n = ctx;
    cache_format f = load(name);
    cache_bytes b;
    cache_oracle oracle;
    double o[kC], want[kC], lse, want_lse;
    cache_format_input(n->x, &f, CACHE_INPUT_NORMAL, kTokens, 5);
    cache_format_input(n->q, &f, CACHE_INPUT_NORMAL, kQueries, 6);
    f.queries = QUERIES_EXACT;
    CU_ASSERT_EQUAL_FATAL(cache_format_pack(&b, &f, n->x, kTokens, err), SNAP_OK);
    cache_format_unpack(n->y, &f, &b, NULL, 0, kTokens);
    CU_ASSERT_EQUAL_FATAL(cache_oracle_init(&oracle, &f, n->q, kQueries, &b, NULL, kTokens, err),
                          SNAP_OK);
    for (int i = 0; i < kQueries; i++) {
        textbook(n->q + i * kWidth, n->y, 0.05, want, &want_lse);
        cache_oracle_attend(&oracle, i, kTokens, 0.05, REF_P_EXACT, o, &lse);
        CU_ASSERT(relative(o, want) < 1e-6);
        CU_ASSERT_DOUBLE_EQUAL(lse, want_lse, 1e-6);
    }
    cache_oracle_attend(&oracle, 0, 0, 0.05, REF_P_EXACT, o, &lse);
    CU_ASSERT(isinf(lse) && lse < 0 && o[0] == 0.0 && o[kC - 1] == 0.0);
    cache_oracle_release(&oracle);
    check_table(&f, &b, n);
    cache_bytes_release(&b);
    return SNAP_OK;
}

static void test_attention(void) {
    numbers *n = calloc(1, sizeof *n);
    CU_ASSERT_PTR_NOT_NULL_FATAL(n);
    CU_ASSERT_EQUAL(cache_format_each(check_attention, n, NULL), SNAP_OK);
    free(n);
}

/* A rotation spreads an outlier, so that int4 with one scale per token keeps the other columns. */
static void test_rotation(void) {
    cache_format plain, rotated;
    double error[2] = {0};
    float x[kWidth], y[kWidth];
    CU_ASSERT_EQUAL_FATAL(read_parts(&plain, NULL,
                                     "{\"type\": \"int4\", \"scale\": {\"type\": \"fp32\"}}", NULL,
                                     NULL),
                          SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(read_parts(&rotated, NULL,
                                     "{\"type\": \"int4\", \"scale\": {\"type\": \"fp32\"}, "
                                     "\"hadamard\": 512}",
                                     NULL, NULL),
                          SNAP_OK);
    cache_format_input(x, &plain, CACHE_INPUT_NORMAL, 1, 3);
    x[17] = 100.0f;
    for (int i = 0; i < 2; i++) {
        cache_bytes b;
        const cache_format *f = i ? &rotated : &plain;
        CU_ASSERT_EQUAL_FATAL(cache_format_pack(&b, f, x, 1, NULL), SNAP_OK);
        cache_format_unpack(y, f, &b, NULL, 0, 1);
        for (int d = 0; d < kC; d++)
            error[i] += d == 17 ? 0.0 : pow((double)y[d] - (double)x[d], 2);
        cache_bytes_release(&b);
    }
    CU_ASSERT(error[1] < error[0] / 2);
}

CU_TestInfo tests_format[] = {
    {"656 bytes of fp8_ds_mla, one by one", test_656_bytes},
    {"planar, interleaved and page order", test_orders},
    {"wrong descriptors are refused with the field", test_refused},
    {"wrong names, files and widths", test_refused_files},
    {"deep JSON is refused", test_deep_json},
    {"wrong structs are refused", test_wrong_structs},
    {"the format snapmla has the bytes of the backends", test_same_as_backends},
    {"rounding stays within its bound", test_rounding},
    {"attention over a cache is attention over its values", test_attention},
    {"a rotation spreads outliers", test_rotation},
    CU_TEST_INFO_NULL};
