/* test_challenge.c - challenges: what follows from a seed, and rows that verify-run refuses. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "harness/audit/audit.h"
#include "harness/bench/challenge.h"
#include "harness/test/report_fixture.h"

enum { TOKENS = 4096 };

/* The numbers are those of hashlib in Python:
 * int.from_bytes(sha256(b"snapmla challenge 1\n" + SEED + b"\n").digest()[:8], "big") % 10**15 */
static void test_number(void) {
    challenge c;
    CU_ASSERT_FATAL(challenge_derive(&c, "beacon-4711", TOKENS, 512, 64, NULL) == SNAP_OK);
    CU_ASSERT(c.seed == 598947769313198);
    CU_ASSERT_FATAL(challenge_derive(&c, "x", TOKENS, 512, 64, NULL) == SNAP_OK);
    CU_ASSERT(c.seed == 270147775423705);
}

static bool is_power_of_two(int n) {
    return n > 0 && (n & (n - 1)) == 0;
}

/* Over many seeds: all shapes are within their limits, the sum of the lengths exceeds the option by
 * at most 64 tokens for each sequence, and each number of heads and each kind of lengths occurs. */
static void test_cells(void) {
    static challenge c;
    unsigned heads = 0, kinds = 0, distributions = 0;
    for (int seed = 0; seed < 100; seed++) {
        char text[16];
        (void)snprintf(text, sizeof text, "seed%d", seed);
        CU_ASSERT_FATAL(challenge_derive(&c, text, 1 << 16, 512, 64, NULL) == SNAP_OK);
        distributions |= 1u << c.distribution;
        for (int i = 0; i < CHALLENGE_CELLS; i++) {
            const bench_shape *s = &c.cell[i].shape;
            int64_t longest = 0;
            CU_ASSERT(is_power_of_two(s->heads) && s->heads <= 128);
            CU_ASSERT(s->s_q >= 1 && s->s_q <= 4 && s->batch >= 1 && s->batch <= CHALLENGE_BATCH);
            CU_ASSERT(bench_shape_tokens(s) <= (1 << 16) + 64 * s->batch);
            for (int b = 0; b < s->batch; b++) {
                CU_ASSERT(s->lengths[b] >= 64);
                longest = s->lengths[b] > longest ? s->lengths[b] : longest;
            }
            CU_ASSERT(longest == s->context);
            heads |= (unsigned)s->heads;
            kinds |= 1u << (strchr("ulb", c.cell[i].distribution[0]) - "ulb");
        }
    }
    CU_ASSERT(heads == 255 && kinds == 7 && distributions == (1u << NUMBERS_KINDS) - 1);
}

static void test_refused(void) {
    char longer[CHALLENGE_SEED + 2];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    const char *const bad[] = {"", "a b", "a\n", "\xc3\xa4", longer};
    challenge c;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT(challenge_derive(&c, bad[i], TOKENS, 512, 64, NULL) == SNAP_E_USAGE);
    CU_ASSERT(challenge_derive(&c, "a", TOKENS - 1, 512, 64, NULL) == SNAP_E_USAGE);
    CU_ASSERT(challenge_derive(&c, "a", (1 << 24) + 1, 512, 64, NULL) == SNAP_E_USAGE);
}

/* ---- verify-run ---- */

static void set_row(js *row, const challenge *c, int cell, const char *hash) {
    const bench_shape *s = &c->cell[cell].shape;
    js *shape = js_get_object(row, "shape"), *lengths = js_new_object(), *each = js_new_array();
    js *of = js_new_object();
    CU_ASSERT(js_set_int(shape, "heads", s->heads) && js_set_int(shape, "s_q", s->s_q) &&
              js_set_int(shape, "batch", s->batch) && js_set_int(shape, "context", s->context) &&
              js_set_int(shape, "d_c", 512) && js_set_int(shape, "d_r", 64));
    for (int b = 0; b < s->batch; b++)
        CU_ASSERT(js_push_new(each, js_new_num(s->lengths[b])));
    CU_ASSERT(js_set_str(lengths, "distribution", c->cell[cell].distribution) &&
              js_set_int(lengths, "tokens", bench_shape_tokens(s)) &&
              js_set_new(lengths, "each", each) && js_set_new(row, "lengths", lengths));
    CU_ASSERT(js_set_str(of, "seed", c->text) && js_set_int(of, "tokens", c->tokens) &&
              js_set_int(of, "cell", cell) && js_set_str(of, "sha256", hash) &&
              js_set_new(row, "challenge", of));
    CU_ASSERT(js_set_str(row, "distribution", numbers_kind_name(c->distribution)));
}

/* The rows of one arm in all cells of a challenge. */
static results *make_run(void) {
    static challenge c;
    char hash[HASH_HEX];
    results *r, *fixture = fixture_load();
    CU_ASSERT_FATAL(challenge_derive(&c, "court", TOKENS, 512, 64, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(challenge_data_hash(&c, 512, 64, hash, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(results_new(&r, "bench", NULL, 0, NULL) == SNAP_OK);
    for (int i = 0; i < CHALLENGE_CELLS; i++) {
        js *row = js_copy(js_at(results_section(fixture, "bench"), 0));
        snap_err err = {0};
        set_row(row, &c, i, hash);
        CU_ASSERT_FATAL(results_add(r, "bench", row, &err) == SNAP_OK);
    }
    results_free(fixture);
    return r;
}

static size_t findings(const results *r, const char *says) {
    arena mem = {0};
    run_record run;
    verify_findings f = {0};
    size_t n = 0;
    CU_ASSERT_FATAL(run_read(&run, r, &mem, NULL) == SNAP_OK);
    verify_challenge(&run, &f);
    CU_ASSERT(!f.failed);
    for (size_t i = 0; i < js_len(f.rows); i++)
        n += strstr(js_get_str(js_at(f.rows, i), "what"), says) != NULL;
    verify_release(&f);
    arena_release(&mem);
    return n;
}

static js *row_of(const results *r, size_t i) {
    return js_at(results_section(r, "bench"), i);
}

static void test_verify(void) {
    results *r = make_run();
    CU_ASSERT(findings(r, "") == 0);
    results_free(r);

    r = make_run();
    CU_ASSERT(js_set_int(js_get_object(row_of(r, 1), "shape"), "heads", 3));
    CU_ASSERT(js_set_str(row_of(r, 2), "distribution", "none of them"));
    CU_ASSERT(js_set_str(js_get_object(row_of(r, 3), "challenge"), "sha256", "ab"));
    CU_ASSERT(js_set_str(js_get_object(row_of(r, 4), "lengths"), "distribution", "uniform:1-2"));
    CU_ASSERT(js_delete(row_of(r, 5), "challenge"));
    CU_ASSERT(js_set_str(js_get_object(row_of(r, 6), "challenge"), "seed", "another"));
    CU_ASSERT(findings(r, "its shape is not") == 1);
    CU_ASSERT(findings(r, "its distribution of the data is not") == 1);
    CU_ASSERT(findings(r, "its hash of the data is not") == 1);
    CU_ASSERT(findings(r, "its list of lengths is not") == 1);
    CU_ASSERT(findings(r, "its challenge is not") == 2);
    CU_ASSERT(findings(r, "have cell 5 of the challenge 0 times") == CHALLENGE_CELLS);
    results_free(r);

    r = make_run();
    CU_ASSERT(js_set_int(js_get_object(row_of(r, 0), "challenge"), "tokens", 5));
    CU_ASSERT(findings(r, "no challenge can be derived") == 1);
    results_free(r);
}

CU_TestInfo tests_challenge[] = {
    {"the number of a seed", test_number},
    {"the cells of many seeds", test_cells},
    {"seeds that are refused", test_refused},
    {"verify-run refuses other rows", test_verify},
    CU_TEST_INFO_NULL,
};
