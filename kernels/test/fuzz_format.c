/* Reads arbitrary bytes as the descriptor of a cache format. It must be refused with a message, or
 * a few tokens are packed, unpacked and attended to. */
#include <stdint.h>
#include <stdlib.h>

#include "base/test/fuzz_tree.h"
#include "kernels/format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { kC = 64, kR = 32, kTokens = 5 };

/* Larger caches would only test the allocator. */
static const int64_t kMostBytes = 1 << 20;

static bool is_small(const cache_format *f) {
    int64_t bytes = 0;
    for (int i = 0; i < f->pools; i++) {
        int64_t pool = cache_format_pool_bytes(f, i, kTokens);
        if (pool < 0 || pool > kMostBytes)
            return false;
        bytes += pool;
    }
    return bytes <= kMostBytes;
}

static void use(const cache_format *f) {
    static float x[kTokens * (kC + kR)], y[kTokens * (kC + kR)];
    double out[kC], lse;
    cache_bytes b;
    cache_oracle o;
    if (cache_format_token_bytes(f) <= 0 || cache_format_read_bytes(f, kTokens) <= 0)
        abort();
    for (int k = 0; k < CACHE_INPUTS; k++) {
        cache_format_input(x, f, (cache_input)k, kTokens, 1);
        if (cache_format_pack(&b, f, x, kTokens, NULL) != SNAP_OK)
            abort();
        cache_format_unpack(y, f, &b, NULL, 0, kTokens);
        if (cache_oracle_init(&o, f, x, 1, &b, NULL, kTokens, NULL) != SNAP_OK)
            abort();
        cache_oracle_attend(&o, 0, kTokens, 0.1, f->pv, out, &lse);
        cache_oracle_release(&o);
        cache_bytes_release(&b);
    }
    if (!(cache_part_rounding(f, &f->content) > 0) || !(cache_format_bound(f).out_rel > 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cache_format f;
    snap_err err = {0};
    js *doc = js_parse((const char *)data, size, "x", NULL);
    if (!doc)
        return 0;
    snap_status st = cache_format_read(&f, doc, "x", kC, kR, &err);
    js_free(doc);
    if ((st == SNAP_OK) != (err.code == SNAP_OK) || (st != SNAP_OK && !err.text[0]))
        abort();
    if (st == SNAP_OK && cache_format_check(&f, NULL) != SNAP_OK)
        abort();
    if (st == SNAP_OK && is_small(&f))
        use(&f);
    return 0;
}
