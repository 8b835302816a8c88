#include "kernels/cpu/cpu_probes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/machine.h"
#include "kernels/formats.h"

enum {
    kWindowNs = 4000000, /* least time of one repetition of the arithmetic probe */
    kMinReadBytes = 256 << 20,
    kPattern = 1 << 20,
    kMostAhead = 8192,  /* most bytes that a loop may prefetch beyond its share */
    kCacheMultiple = 4, /* size of the read probe's memory, in last-level caches, but at least
                           kMinReadBytes */
    kMinWindows = 3,
    kMaxIsas = 8,
};

typedef struct {
    const cpu_isa *isa;
    int64_t rounds; /* enough to fill a window */
} multiplier;

struct cpu_probe {
    int threads;
    const char *memory;
    size_t share; /* bytes that a thread reads */
    double *flop; /* [threads] */
    uint16_t operands[CPU_OPERANDS];
    int n;                    /* number of usable instruction sets */
    multiplier isa[kMaxIsas]; /* in the order of machine_isas() */
    cpu_read_loop best_loop;  /* fastest of the last measurement */
    int best_isa;
    cpu_read_loop loop; /* the loop of the current window */
    const multiplier *with;
};
typedef struct cpu_probe probe;

/* Runs @fn for the indices 0 .. threads - 1 in parallel and returns the time in nanoseconds. */
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
    [CPU_READ_PLAIN] = "one stream per thread",
    [CPU_READ_NEAR] = "one stream per thread, prefetch 1 KB ahead",
    [CPU_READ_FAR] = "one stream per thread, prefetch 8 KB ahead",
    [CPU_READ_TWO] = "two streams per thread",
    [CPU_READ_FOUR] = "four streams per thread",
    [CPU_READ_FOUR_AHEAD] = "four streams per thread, prefetch 2 KB ahead",
};

static void read_share(void *ctx, int worker, int64_t i) {
    (void)worker;
    const probe *p = ctx;
    p->isa[0].isa->read(p->memory + (size_t)i * p->share, p->share, p->loop);
}

/* Random numbers, repeated after kPattern bytes. */
static void fill_share(void *ctx, int worker, int64_t i) {
    (void)worker;
    const probe *p = ctx;
    uint32_t key[2] = {1, (uint32_t)i}, counter[4] = {0};
    char *to = (char *)(uintptr_t)p->memory + (size_t)i * p->share;
    size_t drawn = p->share < kPattern ? p->share : kPattern;
    for (size_t at = 0; at < drawn; at += 16, counter[0]++)
        rng_philox(key, counter, (uint32_t *)(void *)(to + at));
    for (size_t at = drawn; at < p->share; at += drawn)
        memcpy(to + at, to, p->share - at < drawn ? p->share - at : drawn);
}

static double read_rate(parallel *pool, probe *p, cpu_read_loop loop) {
    p->loop = loop;
    return 1e9 * (double)p->share * p->threads / window(pool, read_share, p);
}

/* Runs all loops in turn, so that a disturbance affects all of them. */
static void measure_read(mla_ceiling *best, parallel *pool, probe *p, double seconds) {
    mla_ceiling loops[CPU_READ_LOOPS] = {0};
    double slowest[CPU_READ_LOOPS] = {0};
    int64_t end = clock_now_ns() + (int64_t)(seconds * 1e9), windows = 0;
    while (windows < kMinWindows * CPU_READ_LOOPS || clock_now_ns() < end) {
        cpu_read_loop loop = (cpu_read_loop)(windows++ % CPU_READ_LOOPS);
        note_window(&loops[loop], &slowest[loop], read_rate(pool, p, loop));
    }
    for (int i = 0; i < CPU_READ_LOOPS; i++)
        if (loops[i].rate > best->rate) {
            *best = loops[i];
            best->worst_window = slowest[i];
            p->best_loop = (cpu_read_loop)i;
            (void)snprintf(best->how, sizeof best->how, "%s loads, %s", p->isa[0].isa->kernel,
                           kReadNames[i]);
        }
    best->windows = windows;
}

/* ---- multiplying ---------------------------------------------------------------------------- */

static void multiply_share(void *ctx, int worker, int64_t i) {
    (void)worker;
    probe *p = ctx;
    p->flop[i] = p->with->isa->multiply(p->operands, p->with->rounds);
}

static double multiply_rate(parallel *pool, probe *p, const multiplier *with) {
    p->with = with;
    double ns = window(pool, multiply_share, p), flop = 0.0;
    for (int i = 0; i < p->threads; i++)
        flop += p->flop[i];
    return 1e9 * flop / ns;
}

/* Measures twice, because one window may be long only because it was interrupted. */
static bool fills_window(parallel *pool, probe *p) {
    return window(pool, multiply_share, p) >= (double)kWindowNs &&
           window(pool, multiply_share, p) >= (double)kWindowNs;
}

static void fill_window(parallel *pool, probe *p, multiplier *m) {
    p->with = m;
    for (m->rounds = 1000; !fills_window(pool, p);)
        m->rounds *= 2;
}

/* Runs all usable instruction sets in turn, like the read loops. The fastest is the ceiling. */
static void measure_multiply(mla_ceiling *best, parallel *pool, probe *p, double seconds) {
    mla_ceiling rates[kMaxIsas] = {0};
    int64_t end = clock_now_ns() + (int64_t)(seconds * 1e9), windows = 0;
    while (windows < kMinWindows * p->n || clock_now_ns() < end) {
        int i = (int)(windows++ % p->n);
        note_window(&rates[i], &rates[i].worst_window, multiply_rate(pool, p, &p->isa[i]));
    }
    for (int i = 0; i < p->n; i++)
        if (rates[i].rate > best->rate) {
            *best = rates[i];
            p->best_isa = i;
            (void)snprintf(best->how, sizeof best->how, "%s", p->isa[i].isa->multiply_how);
        }
    best->windows = windows;
}

/* ---- both probes ---------------------------------------------------------------------------- */

void cpu_probe_free(cpu_probe *p) {
    if (!p)
        return;
    free((void *)(uintptr_t)p->memory);
    free(p->flop);
    free(p);
}

static void find_isas(probe *p, parallel *pool) {
    for (const cpu_isa *const *isa = machine_isas(); *isa && p->n < kMaxIsas; isa++)
        if (!(*isa)->emulated && !(*isa)->lacks()) {
            p->isa[p->n].isa = *isa;
            fill_window(pool, p, &p->isa[p->n++]);
        }
}

snap_status cpu_probe_create(cpu_probe **out, parallel *pool, snap_err *err) {
    probe *p = calloc(1, sizeof *p);
    if (!p)
        return err_set(err, SNAP_E_NOMEM, "out of memory for the probes");
    p->threads = parallel_threads(pool);
    size_t bytes = machine_cache_bytes() * kCacheMultiple, unit = (size_t)p->threads * 4096;
    bytes = bytes > kMinReadBytes ? bytes : kMinReadBytes;
    p->share = bytes / unit * 4096;
    p->flop = calloc((size_t)p->threads, sizeof *p->flop);
    p->memory = cpu_memory(p->share * (size_t)p->threads + kMostAhead);
    if (!p->flop || !p->memory) {
        cpu_probe_free(p);
        return err_set(err, SNAP_E_NOMEM, "out of memory for a read probe of %zu bytes", bytes);
    }
    rng r = rng_make(1, rng_stream_of("probe operands"));
    for (int i = 0; i < CPU_OPERANDS; i++)
        p->operands[i] = bf16_from_f64(rng_normal(&r));
    (void)window(pool, fill_share, p);
    find_isas(p, pool);
    *out = p;
    return SNAP_OK;
}

void cpu_probe_measure(cpu_probe *p, mla_ceilings *out, parallel *pool, double seconds) {
    out->read_bytes = p->share * (size_t)p->threads;
    measure_read(&out->read, pool, p, seconds);
    measure_multiply(&out->bf16, pool, p, seconds);
    out->fp8 = out->bf16; /* e4m3 is converted to bf16 exactly; none of the instruction sets
                             multiplies e4m3 */
}

void cpu_probe_probe_once(cpu_probe *p, mla_probe_rates *out, parallel *pool) {
    out->read = read_rate(pool, p, p->best_loop);
    out->bf16 = out->fp8 = multiply_rate(pool, p, &p->isa[p->best_isa]);
}
