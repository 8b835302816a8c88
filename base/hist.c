#include "base/hist.h"

#include <math.h>

enum { kSubBits = 6, kSub = 1 << kSubBits, kMaxBits = 42 };

/* The bucket of a value. Each value below 2^kSubBits has its own bucket. For other values, the
 * power of two and the kSubBits bits after the leading one choose the bucket. */
static int bucket_of(int64_t ns) {
    if (ns < kSub)
        return (int)ns;
    int shift = 63 - __builtin_clzll((unsigned long long)ns) - kSubBits;
    return shift * kSub + (int)(ns >> shift);
}

/* The value in the middle of a bucket; the value itself if the bucket has only one. */
static int64_t value_of(int bucket) {
    if (bucket < 2 * kSub)
        return bucket;
    int shift = bucket / kSub - 1;
    return ((int64_t)(bucket - shift * kSub) << shift) + (INT64_C(1) << (shift - 1));
}

void hist_add(hist *h, int64_t ns) {
    const int64_t top = (INT64_C(1) << kMaxBits) - 1;
    ns = ns < 0 ? 0 : ns > top ? top : ns;
    h->n++;
    h->sum_ns += ns;
    h->max_ns = ns > h->max_ns ? ns : h->max_ns;
    h->counts[bucket_of(ns)]++;
}

void hist_merge(hist *to, const hist *from) {
    to->n += from->n;
    to->sum_ns += from->sum_ns;
    to->max_ns = from->max_ns > to->max_ns ? from->max_ns : to->max_ns;
    for (int i = 0; i < HIST_BUCKETS; i++)
        to->counts[i] += from->counts[i];
}

int64_t hist_quantile_ns(const hist *h, double q) {
    /* the factor absorbs rounding: 7 / 100, for example, may be stored slightly above its true
     * value */
    int64_t rank = (int64_t)ceil(q * (double)h->n * (1 - 1e-12)), seen = 0;
    if (h->n && rank >= h->n)
        return h->max_ns;
    for (int i = 0; i < HIST_BUCKETS; i++) {
        seen += h->counts[i];
        if (seen && seen >= rank)
            return value_of(i) < h->max_ns ? value_of(i) : h->max_ns;
    }
    return -1;
}

int64_t hist_mean_ns(const hist *h) {
    return h->n ? h->sum_ns / h->n : -1;
}
