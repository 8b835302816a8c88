#include "harness/bench/tokenizing.h"

#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "generator/local/tokenizer/tokenizer.h"
#include "harness/measure/stats.h"

enum { kPasses = 7 };

/* ---- random text ---- */

static void put_utf8(buf *out, uint32_t c) {
    char s[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n; i-- > 1; c >>= 6)
        s[i] = (char)(0x80 | (c & 0x3F));
    s[0] = (char)(lead[n] | c);
    (void)buf_append(out, s, n);
}

static void put_word(rng *r, buf *out) {
    static const struct {
        uint32_t first, count;
    } scripts[] = {{'a', 26},   {'a', 26},    {'A', 26},      {0x3B1, 17},
                   {0x430, 32}, {0x5D0, 27},  {0x627, 20},    {0x905, 50},
                   {0xE01, 46}, {0x3042, 60}, {0x4E00, 6000}, {0xAC00, 8000}};
    size_t i = rng_below(r, sizeof scripts / sizeof *scripts);
    for (uint32_t n = 1 + rng_below(r, 9); n > 0; n--)
        put_utf8(out, scripts[i].first + rng_below(r, scripts[i].count));
}

void tokenizing_text(uint64_t seed, size_t bytes, buf *out) {
    static const char *const between[] = {" ",  " ",    " ", " ",  ", ",  ". ",   "\n",  "\n\n",
                                          "\t", "    ", "(", ");", " = ", "->x[", "'s ", " {\n"};
    rng r = rng_make(seed, rng_stream_of("tokenizing"));
    size_t end = out->len + bytes;
    while (out->len < end && !out->failed) {
        uint32_t kind = rng_below(&r, 16);
        if (kind == 0)
            (void)buf_printf(out, "%u", rng_below(&r, 100000000));
        else if (kind == 1)
            put_utf8(out, 0x1F600 + rng_below(&r, 64));
        else
            put_word(&r, out);
        (void)buf_puts(out, between[rng_below(&r, sizeof between / sizeof *between)]);
    }
}

/* ---- measuring ---- */

typedef struct {
    const tokenizer *t;
    tok_encoder *e;
    const char *text;
    size_t n;
    tok_ids ids;
    buf back;
} run;

static snap_status encode(run *r, snap_err *err) {
    r->ids.n = 0;
    return tok_encode(r->e, r->text, r->n, 0, &r->ids, err);
}

static snap_status decode(run *r, snap_err *err) {
    buf_clear(&r->back);
    return tok_decode(r->t, r->ids.v, r->ids.n, false, &r->back, err);
}

/* Median time of one pass, in seconds. */
static snap_status measure(run *r, snap_status (*pass)(run *r, snap_err *err), double seconds,
                           double *out, snap_err *err) {
    double taken[kPasses];
    snap_status st = SNAP_OK;
    for (int i = 0; i < kPasses && st == SNAP_OK; i++) {
        int64_t start = clock_now_ns(), end = start;
        int passes = 0;
        while (st == SNAP_OK && (passes == 0 || (double)(end - start) < seconds * 1e9 / kPasses)) {
            st = pass(r, err);
            passes++;
            end = clock_now_ns();
        }
        stats_insert(taken, (size_t)i, (double)(end - start) / 1e9 / passes);
    }
    if (st == SNAP_OK)
        *out = stats_quantile(taken, kPasses, 0.5);
    return st;
}

snap_status tokenizing_bench(const char *dir, const char *text, size_t n, double seconds,
                             tokenizing_row *out, snap_err *err) {
    snap_status st;
    tokenizer *t = NULL;
    run r = {.text = text, .n = n};
    double encoding, decoding;
    TRY(tokenizer_open(&t, dir, err));
    r.t = t;
    TRY(tok_encoder_create(&r.e, t, err));
    TRY(encode(&r, err));
    TRY(decode(&r, err));
    if (r.back.len != n || memcmp(buf_str(&r.back), text, n) != 0)
        TRY(err_set(err, SNAP_E_WRONG, "%s: decoding the %zu tokens does not return the text", dir,
                    r.ids.n));
    TRY(measure(&r, encode, seconds, &encoding, err));
    TRY(measure(&r, decode, seconds, &decoding, err));
    *out = (tokenizing_row){.bytes = (int64_t)n,
                            .tokens = (int64_t)r.ids.n,
                            .encode_mb_s = (double)n / encoding / 1e6,
                            .encode_tok_s = (double)r.ids.n / encoding,
                            .decode_mb_s = (double)n / decoding / 1e6,
                            .decode_tok_s = (double)r.ids.n / decoding};
cleanup:
    tok_ids_release(&r.ids);
    buf_release(&r.back);
    tok_encoder_free(r.e);
    tokenizer_free(t);
    return st;
}
