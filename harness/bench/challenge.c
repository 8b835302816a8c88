#include "harness/bench/challenge.h"

#include <stdio.h>
#include <string.h>

#include "base/rng.h"

enum { kFewestTokens = 1 << 12, kMostTokens = 1 << 24, kShortest = 64 };
static const uint64_t kSeeds = 1000000000000000; /* 10^15 */

/* ---- the seed ---- */

static snap_status check_text(const char *text, int64_t tokens, snap_err *err) {
    size_t n = strlen(text);
    bool ok = n >= 1 && n <= CHALLENGE_SEED;
    for (size_t i = 0; i < n && ok; i++)
        ok = text[i] > ' ' && text[i] <= '~';
    if (!ok)
        return err_set(err, SNAP_E_USAGE,
                       "--challenge must be a text of 1..%d printable ASCII characters without "
                       "spaces, got '%.80s'",
                       CHALLENGE_SEED, text);
    if (tokens < kFewestTokens || tokens > kMostTokens)
        return err_set(err, SNAP_E_USAGE, "--challenge-tokens must be within %d..%d, got %lld",
                       kFewestTokens, kMostTokens, (long long)tokens);
    return SNAP_OK;
}

static int hex_digit(char c) {
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static snap_status number_of(const char *text, uint64_t *out, snap_err *err) {
    char line[CHALLENGE_SEED + 32], hex[HASH_HEX];
    (void)snprintf(line, sizeof line, "snapmla challenge 1\n%s\n", text);
    snap_status st = hash_bytes(line, strlen(line), hex, err);
    uint64_t v = 0;
    for (int i = 0; i < 16 && st == SNAP_OK; i++)
        v = v << 4 | (uint64_t)hex_digit(hex[i]);
    *out = v % kSeeds;
    return st;
}

/* ---- cells of a challenge ---- */

static int64_t ceil_of(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static int64_t at_least(int64_t x, int64_t low) {
    return x < low ? low : x;
}

static void draw_distribution(challenge_cell *c, int64_t mean, rng *r) {
    int64_t high = 2 * mean < MLA_MAX_CONTEXT ? at_least(2 * mean, kShortest) : MLA_MAX_CONTEXT;
    mean = mean < MLA_MAX_CONTEXT ? mean : MLA_MAX_CONTEXT;
    switch (rng_below(r, 3)) {
    case 0:
        (void)snprintf(c->distribution, LENGTHS_TEXT, "uniform:%d-%lld", kShortest,
                       (long long)high);
        break;
    case 1:
        (void)snprintf(c->distribution, LENGTHS_TEXT, "lognormal:%lld,%.2f", (long long)mean,
                       (1 + rng_below(r, 6)) / 4.0);
        break;
    default:
        (void)snprintf(c->distribution, LENGTHS_TEXT, "bimodal:%lld,%lld,%.3f",
                       (long long)at_least(ceil_of(mean, 8), kShortest), (long long)high,
                       (1 + rng_below(r, 7)) / 8.0);
        break;
    }
}

/* If the sum of the lengths is above @tokens, lowers them so that it is about @tokens. Finds the
 * longest. */
static void cut_lengths(challenge_cell *c, int64_t tokens) {
    bench_shape *s = &c->shape;
    int64_t sum = bench_shape_tokens(s);
    s->context = 0;
    for (int b = 0; b < s->batch; b++) {
        int64_t n = sum > tokens ? c->lengths[b] * tokens / sum : c->lengths[b];
        c->lengths[b] = (int32_t)at_least(n, kShortest);
        s->context = c->lengths[b] > s->context ? c->lengths[b] : s->context;
    }
}

static snap_status derive_cell(challenge_cell *c, const challenge *of, int cell, rng *r,
                               snap_err *err) {
    lengths_spec spec;
    bench_shape *s = &c->shape;
    s->heads = 1 << rng_below(r, 8);
    s->s_q = 1 + (int)rng_below(r, 4);
    s->batch = 1 << rng_below(r, 6);
    s->batch += (int)rng_below(r, (uint32_t)s->batch);
    int64_t mean = ceil_of(of->tokens, (int64_t)s->batch << rng_below(r, 4));
    draw_distribution(c, mean, r);
    snap_status st = lengths_parse(&spec, c->distribution, err);
    if (st == SNAP_OK)
        (void)lengths_draw(&spec, of->seed + (uint64_t)cell, s->batch, c->lengths);
    lengths_release(&spec);
    s->lengths = c->lengths;
    if (st == SNAP_OK)
        cut_lengths(c, of->tokens);
    return st;
}

snap_status challenge_derive(challenge *out, const char *text, int64_t tokens, int d_c, int d_r,
                             snap_err *err) {
    snap_status st = SNAP_OK;
    *out = (challenge){.tokens = tokens};
    TRY(check_text(text, tokens, err));
    (void)snprintf(out->text, sizeof out->text, "%s", text);
    TRY(number_of(text, &out->seed, err));
    rng r = rng_make(out->seed, rng_stream_of("challenge"));
    out->distribution = (numbers_kind)rng_below(&r, NUMBERS_KINDS);
    for (int i = 0; i < CHALLENGE_CELLS; i++) {
        out->cell[i].shape = (bench_shape){.d_c = d_c, .d_r = d_r};
        TRY(derive_cell(&out->cell[i], out, i, &r, err));
    }
cleanup:
    return st;
}

snap_status challenge_data_hash(const challenge *c, int d_c, int d_r, char out[HASH_HEX],
                                snap_err *err) {
    numbers n;
    buf pools = {0};
    size_t bytes = sizeof(uint16_t) * DRAW_POOL * ((size_t)d_c + (size_t)d_r);
    snap_status st = numbers_create(&n, c->distribution, d_c, d_r, c->seed, err);
    if (st != SNAP_OK)
        return st;
    (void)buf_append(&pools, (const char *)n.tokens, bytes);
    (void)buf_append(&pools, (const char *)n.queries, bytes);
    TRY(buf_check(&pools, "the data of a challenge", err));
    TRY(hash_bytes(pools.data, pools.len, out, err));
cleanup:
    buf_release(&pools);
    numbers_release(&n);
    return st;
}
