#include "kernels/cpu/probes.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/rng.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/machine.h"
#include "kernels/formats.h"

enum {
    kWindowNs = 4000000, /* one repetition of the arithmetic probe */
    kMinReadBytes = 256 << 20,
    kMostAhead = 8192,  /* bytes by which a loop may prefetch beyond its share */
    kCacheMultiple = 4, /* the read probe's working set, in last-level caches */
    kMinWindows = 3,
    kMaxIsas = 8,
};

typedef struct {
    const cpu_isa *isa;
    int threads;
    const char *memory;
    size_t share; /* bytes a thread reads */
    cpu_read_loop loop;
    uint16_t operands[CPU_OPERANDS];
    int64_t rounds;
    double *flop; /* [threads] */
} probe;

/* Runs @fn once a thread and gives the time in nanoseconds. */
static double window(parallel *pool, parallel_fn fn, probe *p) {
    int64_t start = clock_now_ns();
    parallel_for(pool, p->threads, fn, p);
    return (double)(clock_now_ns() - start);
}

static void note_window(mla_ceiling *c, double *slowest, double rate) {
    c->windows++;
    c->rate = rate > c->rate ? rate : c->rate;
    *slowest = *slowest == 0.0 || rate < *slowest ? rate : *slowest;
}

/* ---- reading -------------------------------------------------------------------------------- */

static const char *const kReadNames[CPU_READ_LOOPS] = {
    [CPU_READ_PLAIN] = "one stream a thread",
    [CPU_READ_NEAR] = "one stream a thread, prefetch 1 KB ahead",
    [CPU_READ_FAR] = "one stream a thread, prefetch 8 KB ahead",
    [CPU_READ_TWO] = "two streams a thread",
    [CPU_READ_FOUR] = "four streams a thread",
    [CPU_READ_FOUR_AHEAD] = "four streams a thread, prefetch 2 KB ahead",
};

static void read_share(void *ctx, int worker, int64_t i) {
    (void)worker;
    const probe *p = ctx;
    p->isa->read(p->memory + (size_t)i * p->share, p->share, p->loop);
}

static void fill_share(void *ctx, int worker, int64_t i) {
    (void)worker;
    const probe *p = ctx;
    uint32_t key[2] = {1, (uint32_t)i}, counter[4] = {0};
    char *to = (char *)(uintptr_t)p->memory + (size_t)i * p->share;
    for (size_t at = 0; at < p->share; at += 16, counter[0]++)
        rng_philox(key, counter, (uint32_t *)(void *)(to + at));
}

/* All loops in turn, so that a disturbance hits none of them alone. */
static void measure_read(mla_ceiling *best, parallel *pool, probe *p, double seconds) {
    mla_ceiling loops[CPU_READ_LOOPS] = {0};
    double slowest[CPU_READ_LOOPS] = {0};
    int64_t end = clock_now_ns() + (int64_t)(seconds * 1e9), windows = 0;
    double bytes = (double)p->share * p->threads;
    while (windows < kMinWindows * CPU_READ_LOOPS || clock_now_ns() < end) {
        p->loop = (cpu_read_loop)(windows++ % CPU_READ_LOOPS);
        note_window(&loops[p->loop], &slowest[p->loop], 1e9 * bytes / window(pool, read_share, p));
    }
    for (int i = 0; i < CPU_READ_LOOPS; i++)
        if (loops[i].rate > best->rate) {
            *best = loops[i];
            best->worst_window = slowest[i];
            (void)snprintf(best->how, sizeof best->how, "%s loads, %s", p->isa->kernel,
                           kReadNames[i]);
        }
    best->windows = windows;
}

static snap_status probe_read(mla_ceilings *out, parallel *pool, probe *p, double seconds,
                              snap_err *err) {
    size_t bytes = machine_cache_bytes() * kCacheMultiple, unit = (size_t)p->threads * 4096;
    bytes = bytes > kMinReadBytes ? bytes : kMinReadBytes;
    p->share = bytes / unit * 4096;
    out->read_bytes = p->share * (size_t)p->threads;
    void *memory = cpu_memory(out->read_bytes + kMostAhead);
    if (!memory)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a read probe of %zu bytes",
                       out->read_bytes);
    p->memory = memory;
    (void)window(pool, fill_share, p);
    measure_read(&out->read, pool, p, seconds);
    free(memory);
    return SNAP_OK;
}

/* ---- multiplying ---------------------------------------------------------------------------- */

static void multiply_share(void *ctx, int worker, int64_t i) {
    (void)worker;
    probe *p = ctx;
    p->flop[i] = p->isa->multiply(p->operands, p->rounds);
}

static double multiply_rate(parallel *pool, probe *p) {
    double ns = window(pool, multiply_share, p), flop = 0.0;
    for (int i = 0; i < p->threads; i++)
        flop += p->flop[i];
    return 1e9 * flop / ns;
}

/* Rounds that fill a window. */
static int64_t rounds_of(parallel *pool, probe *p) {
    for (p->rounds = 1000; window(pool, multiply_share, p) < (double)kWindowNs;)
        p->rounds *= 2;
    return p->rounds;
}

/* All usable instruction sets in turn, like the read loops; the fastest is the ceiling. */
static void probe_multiply(mla_ceilings *out, parallel *pool, probe *p, double seconds) {
    const cpu_isa *isa[kMaxIsas] = {0};
    int64_t rounds[kMaxIsas] = {0}, windows = 0;
    mla_ceiling rates[kMaxIsas] = {0};
    int n = 0;
    for (const cpu_isa *const *all = machine_isas(); *all && n < kMaxIsas; all++)
        if ((*all)->usable()) {
            p->isa = isa[n] = *all;
            rounds[n++] = rounds_of(pool, p);
        }
    int64_t end = clock_now_ns() + (int64_t)(seconds * 1e9);
    while (n > 0 && (windows < kMinWindows * n || clock_now_ns() < end)) {
        int i = (int)(windows++ % n);
        p->isa = isa[i];
        p->rounds = rounds[i];
        note_window(&rates[i], &rates[i].worst_window, multiply_rate(pool, p));
    }
    for (int i = 0; i < n; i++)
        if (rates[i].rate > out->bf16.rate) {
            out->bf16 = rates[i];
            (void)snprintf(out->bf16.how, sizeof out->bf16.how, "%s", isa[i]->multiply_how);
        }
    out->bf16.windows = windows;
    out->fp8 = out->bf16; /* e4m3 becomes bf16 exactly, and no processor multiplies it faster */
}

snap_status cpu_probe(mla_ceilings *out, parallel *pool, double seconds, snap_err *err) {
    probe p = {.threads = parallel_threads(pool)};
    p.flop = calloc((size_t)p.threads, sizeof *p.flop);
    if (!p.flop)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a probe of %d threads", p.threads);
    rng r = rng_make(1, rng_stream_of("probe operands"));
    for (int i = 0; i < CPU_OPERANDS; i++)
        p.operands[i] = bf16_from_f64(rng_normal(&r));
    for (const cpu_isa *const *isa = machine_isas(); *isa && !p.isa; isa++)
        p.isa = (*isa)->usable() ? *isa : NULL;
    snap_status st = probe_read(out, pool, &p, seconds, err);
    if (st == SNAP_OK)
        probe_multiply(out, pool, &p, seconds);
    free(p.flop);
    return st;
}
