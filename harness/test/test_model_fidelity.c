#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/rng.h"
#include "generator/local/local.h"
#include "generator/test/score.h"
#include "generator/test/tiny_model.h"
#include "harness/bench/layer_bound.h"
#include "harness/bench/layer_values.h"
#include "harness/bench/model_fidelity.h"
#include "harness/record/results.h"
#include "kernels/formats.h"

static const char kText[] =
    "The cache holds one row a token, and a row holds its content and its place. What is read most "
    "is laid out first. She measured it twice; the second time it was not faster.";

/* Perplexity by score_text(), which is itself tested against sampling. */
static double perplexity(const char *dir, int *n) {
    static float logprobs[128];
    local_model m;
    tok_ids ids = {0};
    double sum = 0;
    local_options how = {.precision = "fp32", .sequences = 1, .threads = 1};
    CU_ASSERT_EQUAL_FATAL(local_open(&m, dir, &how, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(tok_encode(m.encoder, kText, strlen(kText), TOK_SPECIALS, &ids, NULL), SNAP_OK);
    *n = (int)ids.n;
    CU_ASSERT_FATAL(*n > 20 && *n <= 128);
    CU_ASSERT_EQUAL(score_text(m.runner, ids.v, *n, 8, logprobs, NULL, NULL, NULL), SNAP_OK);
    for (int i = 0; i + 1 < *n; i++)
        sum -= (double)logprobs[i];
    tok_ids_release(&ids);
    local_close(&m);
    return exp(sum / (*n - 1));
}

static void test_formats_against_the_first(void) {
    char dir[64];
    model_fidelity_row rows[MODEL_FIDELITY_FORMATS];
    int n, tokens;
    tiny_folder(dir, "v3");
    double want = perplexity(dir, &tokens);
    for (int chunks = 0; chunks < 2; chunks++) {
        model_fidelity_options o = {.dir = dir,
                                    .text = kText,
                                    .formats = "fp32,fp32,bf16,fp8",
                                    .threads = 1,
                                    .chunks = chunks};
        CU_ASSERT_EQUAL_FATAL(model_fidelity_run(&o, rows, &n, NULL), SNAP_OK);
        CU_ASSERT_EQUAL_FATAL(n, 4);
        for (int i = 0; i < n; i++) {
            CU_ASSERT_EQUAL(rows[i].all.tokens, tokens - 1);
            CU_ASSERT_EQUAL(rows[i].range[0].tokens, 64);
            CU_ASSERT_EQUAL(rows[i].range[1].tokens, tokens - 1 - 64);
            CU_ASSERT_DOUBLE_EQUAL(rows[i].range[0].kl + rows[i].range[1].kl, rows[i].all.kl, 1e-9);
        }
        CU_ASSERT_DOUBLE_EQUAL(exp(rows[0].all.nll / (tokens - 1)), want, 1e-4 * want);
        CU_ASSERT(rows[1].all.kl == 0 && rows[1].all.flips == 0 && rows[1].all.moved == 0);
        CU_ASSERT(rows[3].all.moved > rows[2].all.moved);
        CU_ASSERT(rows[2].all.kl > 0 && rows[2].all.kl < 0.1 * tokens);
        CU_ASSERT(rows[3].all.kl > 0 && rows[3].all.kl < 0.1 * tokens);
        CU_ASSERT(rows[3].all.kl_max <= rows[3].all.kl);
        CU_ASSERT(rows[3].all.kl_max >= rows[3].all.kl / (tokens - 1));
        CU_ASSERT_STRING_EQUAL(rows[3].format, "fp8");
        /* three layers of 64 + 32 values: FP32, BF16, and e4m3 with RoPE in BF16 and a scale */
        CU_ASSERT_EQUAL(rows[0].cache_bytes, 3 * 384);
        CU_ASSERT_EQUAL(rows[2].cache_bytes, 3 * 192);
        CU_ASSERT_EQUAL(rows[3].cache_bytes, 3 * (64 + 64 + 4));
    }
    tiny_remove(dir);
}

/* Formats of docs/formats.md, by name and by path: the results name the format and its file. */
static void test_described_formats(void) {
    static model_fidelity_row rows[MODEL_FIDELITY_FORMATS];
    char dir[64], hex[HASH_HEX];
    int n;
    tiny_folder(dir, "v3");
    model_fidelity_options o = {.dir = dir,
                                .text = kText,
                                .formats = "bf16,A,configs/formats/A.json,int8",
                                .max_tokens = 40,
                                .threads = 1};
    CU_ASSERT_EQUAL_FATAL(model_fidelity_run(&o, rows, &n, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(n, 4);
    CU_ASSERT_EQUAL(hash_file("configs/formats/A.json", hex, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(rows[0].format_sha256, "");
    for (int i = 1; i < 3; i++) {
        CU_ASSERT_STRING_EQUAL(rows[i].format, "A");
        CU_ASSERT_STRING_EQUAL(rows[i].format_sha256, hex);
        CU_ASSERT_EQUAL(rows[i].cache_bytes, 3 * (64 + 4 + 32 + 4));
        CU_ASSERT(rows[i].all.kl > 0 && rows[i].all.kl == rows[1].all.kl);
    }
    CU_ASSERT(rows[3].all.kl > 0 && rows[3].all.kl != rows[1].all.kl);
    tiny_remove(dir);
}

static void test_refusals(void) {
    char dir[64];
    model_fidelity_row rows[MODEL_FIDELITY_FORMATS];
    int n;
    snap_err err = {0};
    tiny_folder(dir, "v3");
    model_fidelity_options o = {.dir = dir, .text = kText, .formats = "bf16,int5", .threads = 1};
    CU_ASSERT_EQUAL(model_fidelity_run(&o, rows, &n, &err), SNAP_E_USAGE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "int5"));
    o.formats = "bf16";
    o.max_tokens = 1;
    CU_ASSERT_EQUAL(model_fidelity_run(&o, rows, &n, NULL), SNAP_E_INPUT);
    volatile sig_atomic_t cancel = 1;
    o.max_tokens = 0;
    o.cancel = &cancel;
    CU_ASSERT_EQUAL(model_fidelity_run(&o, rows, &n, NULL), SNAP_E_CANCELLED);
    tiny_remove(dir);
}

/* ---- free continuations ---- */

enum { kSteps = 40, kPlaces = 2, kMostDiverged = 8 };

typedef struct {
    model_record row[kMostDiverged];
    record_bin bins[kMostDiverged][8];
    int n;
} diverged_rows;

static snap_status keep_diverged(void *ctx, const model_record *row, snap_err *err) {
    diverged_rows *r = ctx;
    (void)err;
    CU_ASSERT_FATAL(r->n < kMostDiverged && row->survival.n <= 8);
    memcpy(r->bins[r->n], row->survival.at, row->survival.n * sizeof *row->survival.at);
    r->row[r->n] = *row;
    r->row[r->n].survival.at = r->bins[r->n];
    r->n++;
    return SNAP_OK;
}

/* Gives the model a context of 512 tokens. */
static void lengthen_context(const char *dir) {
    char path[128];
    (void)snprintf(path, sizeof path, "%s/config.json", dir);
    js *config = js_parse_file(path, 1 << 20, NULL);
    CU_ASSERT_FATAL(config && js_set_int(config, "max_position_embeddings", 512));
    CU_ASSERT_EQUAL_FATAL(js_write_file(config, path, NULL), SNAP_OK);
    js_free(config);
}

/* What the engine generates greedily after the first @n tokens of a text. */
static void generate(const char *dir, const char *precision, const int32_t *ids, int n,
                     int32_t out[kSteps]) {
    local_model m;
    int32_t pages[8];
    static float logits[640];
    local_options how = {.precision = precision, .sequences = 1, .threads = 1};
    CU_ASSERT_EQUAL_FATAL(local_open(&m, dir, &how, NULL), SNAP_OK);
    for (int i = 0; i < 8; i++)
        pages[i] = i;
    for (int i = 0; i < n + kSteps - 1; i++) {
        const int32_t *token = i < n ? &ids[i] : &out[i - n];
        model_piece p = {.tokens = token, .count = 1, .position = i, .pages = pages, .logits = 1};
        CU_ASSERT_EQUAL_FATAL(runner_step(m.runner, &p, 1, logits, NULL), SNAP_OK);
        if (i < n - 1)
            continue;
        int best = 0;
        for (int k = 1; k < 640; k++)
            best = logits[k] > logits[best] ? k : best;
        out[i - n + 1] = best;
    }
    local_close(&m);
}

/* The text has places after 64 and after 128 tokens. Each greedy continuation is made again by a
 * model of its own that has read the text up to there only. So a row that a continuation leaves in
 * the cache changes nothing. */
static void test_divergence(void) {
    char dir[64], text[256] = "";
    static model_fidelity_row rows[MODEL_FIDELITY_FORMATS];
    diverged_rows got = {.n = 0};
    local_model m;
    tok_ids ids = {0};
    int n, changed = 0;
    double equal = 0, whole = 0;
    tiny_folder(dir, "v3");
    lengthen_context(dir);
    for (int i = 0; i < 190; i++)
        text[i] = (char)('a' + i * i % 23);
    model_fidelity_options o = {.dir = dir,
                                .text = text,
                                .formats = "bf16,bf16,B",
                                .threads = 1,
                                .diverge = kSteps,
                                .diverge_places = 100,
                                .seed = 3,
                                .emit = keep_diverged,
                                .ctx = &got};
    CU_ASSERT_EQUAL_FATAL(model_fidelity_run(&o, rows, &n, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(got.n, 4); /* two formats, each in two ways */
    local_options how = {.precision = "bf16", .sequences = 1, .threads = 1};
    CU_ASSERT_EQUAL_FATAL(local_open(&m, dir, &how, NULL), SNAP_OK);
    CU_ASSERT_EQUAL(tok_encode(m.encoder, text, strlen(text), TOK_SPECIALS, &ids, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(m.n_stop_ids, 1);
    int32_t end = m.stop_ids[0];
    local_close(&m);
    CU_ASSERT_FATAL(ids.n >= 2 * MLA_PAGE + kSteps && ids.n < 3 * MLA_PAGE + kSteps);
    for (int place = 1; place <= kPlaces; place++) {
        int32_t a[kSteps], b[kSteps];
        int length = 0, same = 0;
        generate(dir, "bf16", ids.v, place * MLA_PAGE, a);
        generate(dir, "B", ids.v, place * MLA_PAGE, b);
        while (length < kSteps && (length == 0 || a[length - 1] != end))
            length++;
        while (same < length && a[same] == b[same])
            same++;
        changed += same < length;
        equal += same;
        whole += length;
    }
    for (int i = 0; i < got.n; i++) {
        const model_record *r = &got.row[i];
        CU_ASSERT_STRING_EQUAL(r->continuation, i % 2 ? "sampled" : "greedy");
        CU_ASSERT(r->places == kPlaces && r->steps == kSteps && r->survival.n == 6);
        for (size_t k = 1; k < r->survival.n; k++)
            CU_ASSERT(r->survival.at[k].share <= r->survival.at[k - 1].share);
    }
    for (int i = 0; i < 2; i++) /* a format against itself */
        CU_ASSERT(got.row[i].changed_pct == 0 && isnan(got.row[i].first_change) &&
                  got.row[i].survival.at[5].share == 1);
    CU_ASSERT_DOUBLE_EQUAL(got.row[0].equal_tokens, whole / kPlaces, 1e-9);
    CU_ASSERT(changed > 0); /* otherwise the next lines would test nothing */
    CU_ASSERT_DOUBLE_EQUAL(got.row[2].changed_pct, 100.0 * changed / kPlaces, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(got.row[2].equal_tokens, equal / kPlaces, 1e-9);
    CU_ASSERT_STRING_EQUAL(got.row[2].precision, "B");
    o.diverge = 200;
    snap_err err = {0};
    CU_ASSERT_EQUAL(model_fidelity_run(&o, rows, &n, &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "continuations of 200 tokens need at least 264"));
    tok_ids_release(&ids);
    tiny_remove(dir);
}

/* ---- layers ---- */

static snap_status keep_row(void *ctx, const model_record *row, snap_err *err) {
    (void)err;
    return js_push_new(ctx, record_write(&model_type, row)) ? SNAP_OK : SNAP_E_NOMEM;
}

static int count_kind(const js *rows, const char *kind) {
    int n = 0;
    for (size_t i = 0; i < js_len(rows); i++)
        n += strcmp(js_get_str(js_at(rows, i), "kind"), kind) == 0;
    return n;
}

/* Checks a row of a layer by its kind: errors are above 0 and small, effects are below their
 * bounds, and a run in the first format does not differ from itself. */
static void check_layer_row(const js *row) {
    const char *kind = js_get_str(row, "kind");
    if (strcmp(kind, "layer") == 0) {
        double error = js_get_num(row, "rel_l2", -1);
        bool plain = strcmp(js_get_str(row, "config"), "bf16") == 0;
        CU_ASSERT(error > 0 && error < (plain ? 0.01 : 0.2));
    } else if (strcmp(kind, "bound") == 0) {
        CU_ASSERT(js_get_num(row, "logit_error", -1) > 0);
        CU_ASSERT(js_get_num(row, "value_error", -1) > 0);
        CU_ASSERT(js_get_num(row, "logit_error", -1) < js_get_num(row, "logit_bound", -1));
        CU_ASSERT(js_get_num(row, "value_error", -1) < js_get_num(row, "value_bound", -1));
    } else if (strcmp(kind, "depth") == 0) {
        bool same = strcmp(js_get_str(row, "precision"), "bf16") == 0;
        double moved = js_get_num(row, "rel_l2", -1);
        CU_ASSERT(same ? moved == 0 : moved > 0 && moved < 0.5);
    } else {
        int64_t width = strcmp(js_get_str(row, "part"), "rope") == 0 ? 32 : 64;
        CU_ASSERT_EQUAL(js_get_int(row, "values", -1), js_get_int(row, "context", 0) * width);
        CU_ASSERT(js_get_num(row, "p50", -1) <= js_get_num(row, "p99", -1));
        CU_ASSERT(js_get_num(row, "p999", -1) <= js_get_num(row, "max", -1));
    }
}

static void test_layers(void) {
    char dir[64];
    model_fidelity_row rows[MODEL_FIDELITY_FORMATS];
    int n;
    tiny_folder(dir, "v3");
    for (int chunks = 0; chunks < 2; chunks++) {
        js *list = js_new_array();
        model_fidelity_options o = {.dir = dir,
                                    .text = kText,
                                    .formats = "bf16,bf16,fp8",
                                    .threads = 1,
                                    .chunks = chunks,
                                    .moments = {1000, 20},
                                    .n_moments = 2,
                                    .layers = true,
                                    .emit = keep_row,
                                    .ctx = list};
        CU_ASSERT_EQUAL_FATAL(model_fidelity_run(&o, rows, &n, NULL), SNAP_OK);
        for (size_t i = 0; i < js_len(list); i++)
            check_layer_row(js_at(list, i));
        /* two moments, three layers; formats D and E need 128 columns, which the model lacks */
        CU_ASSERT_EQUAL(count_kind(list, "layer"), 2 * 3 * (MODEL_LAYERS_FORMATS - 2));
        CU_ASSERT_EQUAL(count_kind(list, "values"), 2 * 3 * 2);
        CU_ASSERT_EQUAL(count_kind(list, "bound"), 2 * 3);
        CU_ASSERT_EQUAL(count_kind(list, "depth"), 2 * 3 * 2);
        CU_ASSERT_EQUAL(js_get_int(js_at(list, 0), "context", 0), 20);
        CU_ASSERT_EQUAL(model_fidelity_emit_rows(rows, n, keep_row, list, NULL), SNAP_OK);
        CU_ASSERT(count_kind(list, "predictions") >= 2 * 3);
        js_free(list);
    }
    tiny_remove(dir);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void test_values(void) {
    enum { ROWS = 50, STRIDE = 24, FIRST = 8, WIDTH = 16, N = ROWS * WIDTH };
    static layer_values v;
    uint16_t x[ROWS * STRIDE];
    double sorted[N], sum = 0, share = 0;
    rng r = rng_make(7, 0);
    for (int i = 0, n = 0; i < ROWS * STRIDE; i++) {
        x[i] = bf16_from_f32((float)(rng_normal(&r) * exp(3 * rng_normal(&r))));
        if (i % STRIDE >= FIRST)
            sorted[n++] = fabs((double)bf16_to_f32(x[i]));
    }
    memset(&v, 0, sizeof v);
    layer_values_count(&v, x, ROWS, STRIDE, FIRST, WIDTH);
    qsort(sorted, N, sizeof *sorted, by_size);
    CU_ASSERT_EQUAL(v.n, N);
    for (int part = 1; part <= 32; part++) /* binary fractions are exact */
        CU_ASSERT_EQUAL(layer_values_quantile(&v, part / 32.0), sorted[part * N / 32 - 1]);
    arena mem = {0};
    model_record values = model_record_new("values");
    CU_ASSERT_TRUE_FATAL(layer_values_fill(&v, &mem, &values));
    js *row = record_write(&model_type, &values);
    arena_release(&mem);
    for (int i = 0; i < N; i++)
        sum += sorted[i] * sorted[i];
    CU_ASSERT_DOUBLE_EQUAL(js_get_num(row, "rms", 0), sqrt(sum / N), 1e-9 * sqrt(sum / N));
    const js *bins = js_get_array(row, "histogram");
    for (size_t i = 0; i < js_len(bins); i++) {
        double low = ldexp(1, (int)js_int(js_at(js_at(bins, i), 0))), count = 0;
        for (int k = 0; k < N; k++)
            count += sorted[k] >= low && sorted[k] < 2 * low;
        CU_ASSERT_DOUBLE_EQUAL(js_num(js_at(js_at(bins, i), 1)), count / N, 1e-12);
        share += js_num(js_at(js_at(bins, i), 1));
    }
    CU_ASSERT_DOUBLE_EQUAL(share, 1, 1e-9);
    js_free(row);
}

/* A matrix with known singular values: 3, 2 and 1 between Hadamard bases. */
static void test_spectral_norm(void) {
    static const float left[3][4] = {{1, 1, 1, 1}, {1, -1, 1, -1}, {1, 1, -1, -1}};
    static const float right[3][8] = {
        {1, 1, 1, 1, 1, 1, 1, 1}, {1, -1, 1, -1, 1, -1, 1, -1}, {1, 1, -1, -1, 1, 1, -1, -1}};
    float w[4][8] = {{0}};
    double found = 0;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 8; j++)
                w[i][j] += (float)(k + 1) * left[k][i] * right[k][j] / sqrtf(32);
    tensor t = {.dtype = DTYPE_F32, .n_dims = 2, .shape = {4, 8}, .data = w, .bytes = sizeof w};
    mat m = {.w = &t, .rows = 4, .cols = 8};
    CU_ASSERT_EQUAL(spectral_norm(&found, &m, NULL), SNAP_OK);
    CU_ASSERT_DOUBLE_EQUAL(found, 3, 1e-5);
}

CU_TestInfo tests_model_fidelity[] = {
    {"free continuations", test_divergence},
    {"formats compared with the first", test_formats_against_the_first},
    {"values of layers, and their bound", test_layers},
    {"quantiles of magnitudes", test_values},
    {"the norm of a matrix", test_spectral_norm},
    {"formats by name and by path", test_described_formats},
    {"bad options are refused", test_refusals},
    CU_TEST_INFO_NULL,
};
