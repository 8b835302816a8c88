#include <CUnit/CUnit.h>

#include <elf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/rng.h"
#include "harness/measure/ceilings.h"
#include "harness/measure/code_hash.h"
#include "harness/measure/env.h"
#include "harness/measure/gpu.h"
#include "harness/measure/paired_probes.h"
#include "harness/measure/stats.h"
#include "harness/measure/stop.h"
#include "harness/record/provenance.h"
#include "harness/record/results.h"

#define NEAR(a, b) CU_ASSERT_DOUBLE_EQUAL(a, b, 1e-12 * (1 + fabs((double)(b))))

/* ---- quantiles ---- */

/* Closed form: the p-quantile of 0, 1, ..., n - 1 is p * (n - 1), as defined in stats.h (type 7 of
 * Hyndman and Fan). */
static void test_quantile_ramp(void) {
    double x[101];
    for (size_t n = 1; n <= 101; n++) {
        for (size_t i = 0; i < n; i++)
            x[i] = (double)i;
        for (double p = 0; p <= 1; p += 0.0625)
            NEAR(stats_quantile(x, n, p), p * (double)(n - 1));
    }
}

/* What R's quantile(c(1, 2, 4, 8)) gives. */
static void test_quantile_known(void) {
    const double x[] = {1, 2, 4, 8};
    stats_summary s = stats_summarise(x, 4);
    NEAR(s.min, 1);
    NEAR(s.q1, 1.75);
    NEAR(s.median, 3);
    NEAR(s.q3, 5);
    NEAR(s.max, 8);
    NEAR(s.mean, 3.75);
    CU_ASSERT(isnan(s.p99));
}

/* One slow sample in 97 does not change the median; the mean and p99 show it. */
static void test_summary_of_rare_slow_samples(void) {
    double x[970];
    for (int i = 0; i < 970; i++)
        x[i] = i < 960 ? 1 : 98;
    stats_summary s = stats_summarise(x, 970);
    NEAR(s.median, 1);
    NEAR(s.q1, 1);
    NEAR(s.mean, 2);
    NEAR(s.p99, 1 + 97 * 0.31); /* between samples 959 and 960, at 0.99 * 969 = 959.31 */
    CU_ASSERT(isnan(stats_summarise(x, STATS_P99_FEWEST - 1).p99));
    CU_ASSERT(!isnan(stats_summarise(x, STATS_P99_FEWEST).p99));
}

static int compare_double(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void test_insert_sorts(void) {
    double sorted[300], all[300];
    rng r = rng_make(3, 0);
    for (size_t n = 0; n < 300; n++) {
        all[n] = rng_below(&r, 50); /* many ties */
        stats_insert(sorted, n, all[n]);
    }
    qsort(all, 300, sizeof *all, compare_double);
    CU_ASSERT(memcmp(all, sorted, sizeof all) == 0);
}

/* The interval from which stats_median_noise() takes its width must contain the true median in
 * about 95 of 100 experiments. Its half width is noise times median, and the true median of these
 * samples is 100. So coverage is counted directly. */
static void test_noise_coverage(void) {
    enum { kRuns = 4000, kN = 40 };
    int covered = 0;
    for (int run = 0; run < kRuns; run++) {
        rng r = rng_make(11, (uint64_t)run);
        double x[kN];
        for (size_t i = 0; i < kN; i++)
            stats_insert(x, i, 100 + rng_normal(&r));
        double median = stats_quantile(x, kN, 0.5);
        covered += fabs(median - 100) <= stats_median_noise(x, kN) * median;
    }
    /* the symmetric half width differs slightly from the two sides of the interval */
    CU_ASSERT(covered > 0.93 * kRuns);
    CU_ASSERT(covered < 0.99 * kRuns);
}

static void test_noise_needs_six(void) {
    const double x[] = {1, 1, 1, 1, 1, 1};
    CU_ASSERT(isinf(stats_median_noise(x, 5)));
    NEAR(stats_median_noise(x, 6), 0);
}

/* ---- the stop rule ---- */

typedef struct {
    stop_rule rule;
    double wall;
} feed;

static feed feed_start(stop_limits limits) {
    feed f = {.wall = 0};
    stop_init(&f.rule, &limits);
    return f;
}

/* Adds one sample of @ns and advances the wall clock by twice that time. */
static void feed_one(feed *f, double ns) {
    f->wall += 2 * ns / 1e9;
    CU_ASSERT(stop_add(&f->rule, ns, f->wall, NULL) == SNAP_OK);
}

/* A time that is not a positive, finite number is an error, and is not kept as a sample. */
static void test_stop_refuses(void) {
    static const double wrong[] = {0, -5, (double)NAN, (double)INFINITY};
    feed f = feed_start((stop_limits){.min_samples = 10, .max_samples = 1000, .timeout_s = 60});
    feed_one(&f, 1e6);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CU_ASSERT(stop_add(&f.rule, wrong[i], 1, NULL) == SNAP_E_DEVICE);
    CU_ASSERT(f.rule.n == 1);
    stop_release(&f.rule);
}

static void test_stop_on_quiet(void) {
    feed f = feed_start(
        (stop_limits){.noise = 0.005, .min_samples = 10, .max_samples = 1000, .timeout_s = 60});
    while (f.rule.reason == STOP_NOT_YET)
        feed_one(&f, 1e6);
    CU_ASSERT(f.rule.reason == STOP_NOISE);
    CU_ASSERT(f.rule.n == 10);
    CU_ASSERT_STRING_EQUAL(stop_reason_name(f.rule.reason), "noise");
    stop_release(&f.rule);
}

static void test_stop_waits_for_min_time(void) {
    feed f = feed_start((stop_limits){.noise = 0.005,
                                      .min_samples = 10,
                                      .max_samples = 1000,
                                      .min_time_s = 0.05,
                                      .timeout_s = 60});
    while (f.rule.reason == STOP_NOT_YET)
        feed_one(&f, 1e6);
    CU_ASSERT(f.rule.reason == STOP_NOISE);
    CU_ASSERT(f.rule.n == 50); /* samples of one millisecond each */
    stop_release(&f.rule);
}

/* Two distant modes in alternation: the interval of the median always spans both. */
static void test_stop_on_plateau(void) {
    feed f = feed_start(
        (stop_limits){.noise = 0.005, .min_samples = 10, .max_samples = 100000, .timeout_s = 1e9});
    for (int i = 0; f.rule.reason == STOP_NOT_YET; i++)
        feed_one(&f, i % 2 ? 1e6 : 2e6);
    CU_ASSERT(f.rule.reason == STOP_PLATEAU);
    CU_ASSERT(f.rule.n == 40); /* checks at 20 and 40 */
    stop_release(&f.rule);
}

/* Independent noise of 2 %: the rule must reach half a percent after about (1.25 * 1.96 * 2 /
 * 0.5)^2 = 96 samples (the standard error of the median is 1.25 sigma / sqrt n), unless it finds a
 * plateau before. */
static void test_stop_on_independent_noise(void) {
    int by_noise = 0;
    size_t samples = 0;
    for (uint64_t run = 0; run < 100; run++) {
        rng r = rng_make(5, run);
        feed f = feed_start((stop_limits){
            .noise = 0.005, .min_samples = 10, .max_samples = 5000, .timeout_s = 1e9});
        while (f.rule.reason == STOP_NOT_YET)
            feed_one(&f, 1e6 * (1 + 0.02 * rng_normal(&r)));
        by_noise += f.rule.reason == STOP_NOISE;
        samples += f.rule.n;
        stop_release(&f.rule);
    }
    CU_ASSERT(by_noise >= 60);
    CU_ASSERT(samples / 100 > 40);
    CU_ASSERT(samples / 100 < 200);
}

static void test_stop_on_samples_and_timeout(void) {
    rng r = rng_make(9, 0);
    feed f = feed_start(
        (stop_limits){.noise = 0, .min_samples = 16, .max_samples = 30, .timeout_s = 60});
    while (f.rule.reason == STOP_NOT_YET)
        feed_one(&f, 1e6 * (1 + rng_uniform(&r)));
    CU_ASSERT(f.rule.reason == STOP_SAMPLES);
    CU_ASSERT(f.rule.n == 30);
    stop_release(&f.rule);

    f = feed_start(
        (stop_limits){.noise = 0, .min_samples = 1000, .max_samples = 3000, .timeout_s = 0.5});
    while (f.rule.reason == STOP_NOT_YET)
        feed_one(&f, 100e6);
    CU_ASSERT(f.rule.reason == STOP_TIMEOUT);
    CU_ASSERT(f.rule.n == 3); /* 0.2, 0.4, 0.6 s */
    stop_release(&f.rule);
}

/* Samples after the reason was found are kept and do not change it. */
static void test_stop_verdict_stays(void) {
    feed f = feed_start(
        (stop_limits){.noise = 0.005, .min_samples = 6, .max_samples = 1000, .timeout_s = 60});
    for (int i = 0; i < 100; i++)
        feed_one(&f, i < 6 ? 1e6 : 1e6 + 1e5 * i);
    CU_ASSERT(f.rule.reason == STOP_NOISE);
    CU_ASSERT(f.rule.n == 100);
    NEAR(f.rule.samples[99], 1e6 + 99e5);
    NEAR(f.rule.sorted[0], 1e6);
    stop_release(&f.rule);
}

/* ---- the environment ---- */

static void test_env_parsers(void) {
    double busy, steal;
    NEAR(env_parse_mhz("cpu MHz\t\t: 2600.000\nbogomips : 5\ncpu MHz : 3000.5\n"), 2800.25);
    CU_ASSERT(isnan(env_parse_mhz("model name : none\n")));
    CU_ASSERT(isnan(env_parse_mhz("cpu MHz")));
    CU_ASSERT(env_parse_stat("cpu  10 20 30 400 50 6 7 8 0 0\ncpu0 1\n", &busy, &steal));
    NEAR(busy, 81);
    NEAR(steal, 8);
    CU_ASSERT(!env_parse_stat("cpu 1 2 3\n", &busy, &steal));
    CU_ASSERT(!env_parse_stat("", &busy, &steal));
}

static void test_env_flags(void) {
    env_state a = {.mhz = 3000, .throttles = 4, .busy_s = 100, .own_s = 10, .wall_s = 50};
    env_state b = a;
    b.wall_s += 10;
    b.busy_s += 20.5;
    b.own_s += 20;
    CU_ASSERT(!env_between(&a, &b).throttled && !env_between(&a, &b).shared);
    b.busy_s += 1; /* other processes: 1.5 s of 10 s */
    CU_ASSERT(env_between(&a, &b).shared);
    b.mhz = 2600;
    CU_ASSERT(env_between(&a, &b).throttled);
    b.mhz = a.mhz = (double)NAN; /* unknown values set no flag */
    b.busy_s = (double)NAN;
    CU_ASSERT(!env_between(&a, &b).throttled && !env_between(&a, &b).shared);
    b.throttles++;
    CU_ASSERT(env_between(&a, &b).throttled);
}

/* ---- hash of the code ---- */

static void test_code_hash(void) {
    char a[HASH_HEX], b[HASH_HEX];
    CU_ASSERT_FATAL(code_hash_self(a, NULL) == SNAP_OK);
    CU_ASSERT_FATAL(code_hash_self(b, NULL) == SNAP_OK);
    CU_ASSERT_STRING_EQUAL(a, b);
    CU_ASSERT(strlen(a) == 64);
}

/* The code of a plugin or a Python file is the file, whatever kernel it names on a device. */
static void test_code_of_a_file(void) {
    char file[HASH_HEX], a[HASH_HEX];
    CU_ASSERT_FATAL(hash_file("/proc/self/exe", file, NULL) == SNAP_OK);
    CU_ASSERT(code_is_file("plugin:/proc/self/exe") && code_is_file("python:mine.py"));
    CU_ASSERT(!code_is_file("cuda") && !code_is_file("cpu"));
    static const char *const kernels[] = {NULL, "mine", "sm90_fp8"};
    for (int i = 0; i < 3; i++) {
        CU_ASSERT(code_hash_of("plugin:/proc/self/exe", kernels[i], a, NULL) == SNAP_OK);
        CU_ASSERT_STRING_EQUAL(a, file);
        CU_ASSERT(code_hash_of("python:/proc/self/exe", kernels[i], a, NULL) == SNAP_OK);
        CU_ASSERT_STRING_EQUAL(a, file);
    }
    static const char *const backends[] = {"plugin:/proc/self/exe", "python:/proc/self/exe"};
    arena mem = {0};
    for (int i = 0; i < 2; i++) {
        plugin_record named = {0};
        CU_ASSERT(provenance_plugin(backends[i], &mem, &named, NULL) == SNAP_OK && named.exists);
        CU_ASSERT_STRING_EQUAL(named.file, "exe");
        CU_ASSERT_STRING_EQUAL(named.sha256, file);
    }
    arena_release(&mem);
    CU_ASSERT(code_hash_of("plugin:/nonexistent", "mine", a, NULL) == SNAP_E_IO);
    CU_ASSERT(code_hash_of("cuda", "no_such_kernel", a, NULL) == SNAP_E_UNSUPPORTED);
}

/* No truncated image and no flipped bit of its first 64 bytes may give a section outside the image.
 * ASan also finds reads outside the whole image. */
static void test_code_find_hostile(void) {
    buf image = {0};
    size_t offset, size;
    CU_ASSERT_FATAL(fs_read("/proc/self/exe", &image, NULL) == SNAP_OK);
    CU_ASSERT(code_find_text(image.data, image.len, &offset, &size, NULL) == SNAP_OK);
    CU_ASSERT(offset + size <= image.len);
    for (size_t n = 0; n < image.len; n = n < 256 ? n + 1 : n * 2)
        if (code_find_text(image.data, n, &offset, &size, NULL) == SNAP_OK)
            CU_ASSERT(offset <= n && size <= n - offset);
    for (size_t i = 0; i < 64; i++)
        for (int flip = 1; flip < 256; flip *= 2) {
            image.data[i] ^= (char)flip;
            if (code_find_text(image.data, image.len, &offset, &size, NULL) == SNAP_OK)
                CU_ASSERT(offset <= image.len && size <= image.len - offset);
            image.data[i] ^= (char)flip;
        }
    buf_release(&image);
}

/* ---- probes of the ceilings between samples ---- */

/* A second probe right after the first would take more than its share of the time, so it is left
 * out. */
static void test_paired_probes(void) {
    mla_backend *be;
    paired_probes g = {0};
    CU_ASSERT_FATAL(mla_backend_open(&be, "cpu", &(mla_backend_options){.threads = 1}, NULL) ==
                    SNAP_OK);
    CU_ASSERT(paired_probes_take(&g, be, NULL) == SNAP_OK &&
              paired_probes_take(&g, be, NULL) == SNAP_OK);
    CU_ASSERT_EQUAL(g.n, 1);
    g.ended_ns -= 2 * g.took_ns;
    CU_ASSERT(paired_probes_take(&g, be, NULL) == SNAP_OK);
    CU_ASSERT_EQUAL(g.n, 2);
    CU_ASSERT(g.read[0] <= g.read[1]);
    NEAR(paired_probes_median(&g).read.rate, (g.read[0] + g.read[1]) / 2);
    NEAR(paired_probes_median(&g).bf16.rate, (g.bf16[0] + g.bf16[1]) / 2);
    mla_backend_close(be);
}

/* ---- ceilings in a result file ---- */

/* Each ceiling is the largest of its samples, also after more repetitions than are kept. */
static void test_ceilings_have_their_sample(void) {
    ceilings c = {0};
    for (int i = 0; i < CEILINGS_MAX_ROUNDS + 9; i++) {
        double up = 1e9 * (i + 1), down = 1e9 * (100 - i);
        ceilings_add(&c, (mla_probe_rates){.read = up, .bf16 = down, .fp8 = i == 70 ? 1e12 : 1e9});
        ceilings_add(&c, (mla_probe_rates){0});
        CU_ASSERT_EQUAL(c.rounds, i + 1 < CEILINGS_MAX_ROUNDS ? i + 1 : CEILINGS_MAX_ROUNDS);
        double best[CEILINGS_KINDS] = {0};
        for (int k = 0; k < CEILINGS_KINDS; k++)
            for (int j = 0; j < c.rounds; j++)
                best[k] = fmax(best[k], c.samples[k][j]);
        CU_ASSERT_EQUAL(c.best.read.rate, best[0]);
        CU_ASSERT_EQUAL(c.best.bf16.rate, best[1]);
        CU_ASSERT_EQUAL(c.best.fp8.rate, best[2]);
    }
    CU_ASSERT_EQUAL(c.best.fp8.rate, 1e12);
}

static void test_ceilings_round_trip(void) {
    ceilings c = {.rounds = 2}, back;
    c.best.read = (mla_ceiling){.rate = 41.5e9, .how = "two streams"};
    c.best.bf16.rate = 4.5e11;
    c.best.fp8.rate = 4.25e11;
    for (int k = 0; k < CEILINGS_KINDS; k++)
        for (int i = 0; i < 2; i++)
            c.samples[k][i] = 1e9 * (k + i + 1);
    js *rows = ceilings_json(&c);
    CU_ASSERT_FATAL(ceilings_parse(&back, rows, "test", NULL) == SNAP_OK);
    NEAR(back.best.read.rate, 41.5e9);
    NEAR(back.best.bf16.rate, 4.5e11);
    NEAR(back.best.fp8.rate, 4.25e11);
    CU_ASSERT_STRING_EQUAL(back.best.read.how, "two streams");
    CU_ASSERT(back.rounds == 2);
    NEAR(back.samples[2][1], 4e9);
    js_set_num(js_at(rows, 1), "value", 0);
    snap_err err = {0};
    CU_ASSERT(ceilings_parse(&back, rows, "some.json", &err) == SNAP_E_INPUT);
    CU_ASSERT(strstr(err.text, "some.json") && strstr(err.text, "bf16_mma"));
    js_free(rows);
}

/* Limits are stored beside the ceilings, and the ceilings are read as before. */
static void test_limits_beside_ceilings(void) {
    mla_limits limits = {
        .timer_ns = 1280, .launch_ns = 2944, .cold_read_ns = 348, .bf16 = 8.8e14, .fp8 = 1.7e15};
    ceilings c = {.rounds = 1, .best = {{.rate = 4e12}, {.rate = 9e14}, {.rate = 1.8e15}}}, back;
    results *r = NULL;
    snap_err err = {0};
    for (int k = 0; k < CEILINGS_KINDS; k++)
        c.samples[k][0] = 1e12;
    CU_ASSERT_FATAL(results_new(&r, "roofline", NULL, 0, NULL) == SNAP_OK);
    CU_ASSERT(results_add_all(r, "ceilings", ceilings_json(&c), NULL) == SNAP_OK);
    CU_ASSERT(results_add_all(r, "ceilings", ceilings_limits_json(&limits), NULL) == SNAP_OK);
    const js *rows = results_section(r, "ceilings");
    CU_ASSERT(js_len(rows) == CEILINGS_KINDS + 5);
    CU_ASSERT(ceilings_parse(&back, rows, "test", NULL) == SNAP_OK);
    NEAR(back.best.fp8.rate, 1.8e15);
    results_free(r);
    mla_backend *be = NULL;
    CU_ASSERT_FATAL(mla_backend_open(&be, "cpu", NULL, NULL) == SNAP_OK);
    CU_ASSERT(mla_limits_measure(&limits, be, 1, &err) == SNAP_E_UNSUPPORTED);
    CU_ASSERT(mla_limits_measure(&limits, be, 0, NULL) == SNAP_E_USAGE);
    mla_backend_close(be);
}

/* A cubin with one kernel, in the layout of a linker, inside a larger file. */
static void test_device_code(void) {
    static const char names[] = "\0.shstrtab\0.text._ZN8sm90_fp86decodeE";
    enum { kAt = 100, kCode = 16 };
    unsigned char file[2048] = {0}, *image = file + kAt;
    Elf64_Ehdr head = {.e_machine = 190,
                       .e_shentsize = sizeof(Elf64_Shdr),
                       .e_shnum = 3,
                       .e_shstrndx = 1,
                       .e_shoff = 512};
    Elf64_Shdr sections[3] = {{0},
                              {.sh_name = 1, .sh_offset = 256, .sh_size = sizeof names},
                              {.sh_name = 11, .sh_offset = 400, .sh_size = kCode}};
    buf code = {0};
    memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    memcpy(image, &head, sizeof head);
    memcpy(image + 256, names, sizeof names);
    memset(image + 400, 0xab, kCode);
    memcpy(image + 512, sections, sizeof sections);
    code_find_device(file, sizeof file, "sm90_fp8", &code);
    CU_ASSERT(code.len == kCode && (unsigned char)code.data[0] == 0xab);
    buf_clear(&code);
    code_find_device(file, sizeof file, "sm90_bf16", &code);
    CU_ASSERT(code.len == 0);
    for (size_t n = 0; n < kAt + 512 + sizeof sections; n++) { /* cut anywhere: nothing is found */
        code_find_device(file, n, "sm90_fp8", &code);
        CU_ASSERT(code.len == 0);
    }
    buf_release(&code);
}

/* The bits are those of the NVML reference. */
static void test_gpu_reasons(void) {
    CU_ASSERT(!gpu_is_slowed(0) && !gpu_is_capped(0));
    CU_ASSERT(!gpu_is_slowed(0x1 | 0x2) && !gpu_is_capped(0x1 | 0x2)); /* idle; clocks set by the
                                                                          user */
    CU_ASSERT(gpu_is_capped(0x4) && !gpu_is_slowed(0x4));
    for (uint64_t bit = 0; bit < 4; bit++)
        CU_ASSERT(gpu_is_slowed((uint64_t[]){0x8, 0x20, 0x40, 0x80}[bit]));
}

static void test_no_gpu(void) {
    CU_ASSERT_PTR_NULL(gpu_open(""));
    CU_ASSERT_PTR_NULL(gpu_open("ffff:ff:1f.7"));
    gpu_state s = gpu_now(NULL);
    CU_ASSERT(isnan(s.sm_mhz) && isnan(s.energy_j) && s.reasons == 0);
    js *row = gpu_json(NULL);
    CU_ASSERT(js_is_null(row));
    js_free(row);
    gpu_close(NULL);
}

CU_TestInfo tests_measure[] = {
    {"device code in a program", test_device_code},
    {"reasons for a reduced GPU clock", test_gpu_reasons},
    {"without a GPU its state is unknown", test_no_gpu},
    {"quantiles of a ramp", test_quantile_ramp},
    {"quantiles, known values", test_quantile_known},
    {"rare slow samples", test_summary_of_rare_slow_samples},
    {"insertion sorts", test_insert_sorts},
    {"the interval of the median covers it in 95 %", test_noise_coverage},
    {"the noise of the median needs six samples", test_noise_needs_six},
    {"samples that are not positive numbers are refused", test_stop_refuses},
    {"stop: samples without noise", test_stop_on_quiet},
    {"stop: minimum time", test_stop_waits_for_min_time},
    {"stop: plateau", test_stop_on_plateau},
    {"stop: independent noise", test_stop_on_independent_noise},
    {"stop: samples, timeout", test_stop_on_samples_and_timeout},
    {"stop: the reason does not change", test_stop_verdict_stays},
    {"environment parsers", test_env_parsers},
    {"environment flags", test_env_flags},
    {"the hash of the program's code", test_code_hash},
    {"the code of a file", test_code_of_a_file},
    {"code hash of broken images", test_code_find_hostile},
    {"probes of the ceilings take at most a third of the time", test_paired_probes},
    {"a ceiling is one of its samples", test_ceilings_have_their_sample},
    {"ceilings are read back from JSON", test_ceilings_round_trip},
    {"limits beside ceilings", test_limits_beside_ceilings},
    CU_TEST_INFO_NULL,
};
