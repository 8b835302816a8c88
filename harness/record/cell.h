/* cell.h - a row of the section `bench` of a result file: the time of one arm for one shape, scope
 * and mode (only if it passed), and the check of its output. */
#ifndef SNAPMLA_HARNESS_RECORD_CELL_H
#define SNAPMLA_HARNESS_RECORD_CELL_H

#include "harness/record/field.h"

typedef struct {
    int64_t heads, s_q, batch, context; /* s_q and context count tokens of one sequence */
    int64_t d_c, d_r;                   /* width of a cached token: columns of content and of
                                           RoPE */
} cell_shape;

/* The lengths of sequences that --lengths or a challenge sets. It does not exist without them: then
 * all sequences have `context` tokens. */
typedef struct {
    bool exists;
    const char *distribution; /* "uniform:1000-8000" (bench/lengths.h) */
    int64_t tokens;           /* tokens of all sequences together */
    record_numbers each;      /* the length of each sequence; the longest is the shape's context */
} cell_lengths;

/* The challenge that a row belongs to (bench/challenge.h). It does not exist for other rows. */
typedef struct {
    bool exists;
    const char *seed;   /* the text of --challenge */
    int64_t tokens;     /* --challenge-tokens */
    int64_t cell;       /* 0 .. CHALLENGE_CELLS - 1 */
    const char *sha256; /* hash of the data: challenge_data_hash() */
} cell_challenge;

/* The cache format of a named arm (kernels/format). It does not exist where the cache is that of
 * the arm's precision. */
typedef struct {
    bool exists;
    const char *name;       /* "fp8_ds_mla" */
    const char *sha256;     /* hash of `descriptor` */
    double bytes_per_token; /* paged memory, padding and the page's shared values included */
    int64_t page_tokens;
    const char *descriptor; /* compact JSON (docs/formats.md) */
} cell_format;

/* The output compared with an FP64 reference. It does not exist where nothing was checked. */
typedef struct {
    bool exists;
    double error, tolerance;         /* relative error of the output over the checked rows, and its
                                        bound */
    double lse_error, lse_tolerance; /* error of the log-sum-exp, and its bound */
    double lse_error_exact;          /* error against exact sums; exists only where it exceeds the
                                        tolerance */
    int64_t rows_checked;            /* a row = one head of one query token */
} cell_correctness;

/* Rates that short probes reached: read_bandwidth in B/s, bf16_mma and fp8_mma in FLOP/s. */
typedef struct {
    double read_bandwidth, bf16_mma, fp8_mma;
} cell_rates;

/* Rates of the device, probed between the samples. They do not exist where no such probe ran. */
typedef struct {
    bool exists;
    unsigned parts; /* CELL_DERIVED, or 0 before cell_derive() */
    int64_t looks;  /* how often the rates were probed */
    cell_rates median, best;
    double roofline_pct; /* 100 * the floor at the median rates / the median time; NAN in a row with
                            the flag "shared" */
} cell_paired;

/* The part of the fields that cell_derive() computes after the measurement. */
enum { CELL_DERIVED = 1 };

/* Exists for rows that passed, and only for them. */
typedef struct {
    bool exists;
    unsigned parts;            /* CELL_DERIVED, or 0 before cell_derive() */
    record_numbers samples_ns; /* time of a step; in mode "sustained" the mean over the steps
                                  that fit into about 30 ms, at least one */
    double min_ns, q1_ns, median_ns, q3_ns, max_ns;
    double mean_ns, p99_ns;  /* p99_ns: only with at least STATS_P99_FEWEST samples (stats.h); older
                                rows have neither */
    int64_t count;           /* samples */
    const char *stop_reason; /* the reason to stop sampling (measure/stop.h) */
    double clock_mhz_before, clock_mhz_during;
    double power_w, energy_j;   /* power_w: mean over the loops of mode "sustained", else NAN;
                                 energy_j: of one step of median time */
    const char *energy_source;  /* mode "sustained": the sensors, such as "NVML"; NULL = none */
    const char *energy_missing; /* mode "sustained": why power_w is NAN */
    cell_paired paired;
    /* the part CELL_DERIVED */
    double tflops, gb_s, tok_s, tok_j; /* TFLOP/s, GB/s, tokens per second, tokens per joule */
    double floor_ns;                   /* the shortest time that the ceilings admit for this work */
    double roofline_pct;               /* 100 * floor_ns / median_ns */
    const char *bound;                 /* "bytes" or "flops": which of the two sets the floor */
} cell_performance;

/* A named arm compared with the first arm of its run on the same cell. It does not exist for the
 * first arm, and where one of the two did not pass. */
typedef struct {
    bool exists;
    const char *baseline; /* name of the first arm */
    double ratio;         /* the baseline's time / the arm's: above 1 the arm is faster
                             (paired_ratio.h) */
    double interval[2];   /* 95 % interval of the ratio; missing for few samples and in mode
                             "sustained" */
} cell_against;

typedef struct {
    const char *name;     /* name of a named arm, such as "mine"; "" = the arm has only its kind */
    const char *options;  /* options of a named arm, as --arm gave them:
                             "cpu,precision=fp8,threads=1" */
    const char *device;   /* for a named arm: the device of its backend */
    const char *ceilings; /* for a named arm: the `arm` of those rows of the section `ceilings` that
                             set this row's floor */
    cell_format format;
    const char *arm;         /* "bf16", "fp8"; "fp8-...": an arm of the ablation study. With a
                                format: the rate at which its products count */
    const char *backend;     /* name of the backend: "cuda" */
    const char *kernel;      /* name of the kernel that ran, or the backend's description of its
                                kernels; may be "" */
    const char *kernel_hash; /* SHA-256 of machine code, or of the file of a plugin or Python arm
                                (code_hash_of() in measure/code_hash.h); "" = unknown */
    const char *scope;       /* "kernel", "served" */
    const char *mode;        /* "burst" (single steps), "sustained" (loops); older rows have none */
    cell_shape shape;
    cell_lengths lengths;
    cell_challenge challenge;
    const char *distribution; /* name of the distribution of the random inputs: "mla" */
    const char *cold;         /* how the device's caches are made cold before a step: "rotate",
                                 "flush", "none" */
    const char *origin;       /* "measured", "reported" */
    const char *source;       /* who reported it; exists only where origin is "reported" */
    const char *status;       /* "passed", "failed", "skipped", "error" */
    const char *reason;       /* why the row did not pass; "" if it passed */
    cell_correctness correctness;
    cell_performance performance;
    cell_against against;
    record_texts flags; /* "noisy", "throttled", "power_capped", "shared", "below_floor",
                           "weak_baseline", "not_captured", "host_limited", "lse_not_checked" */
} cell_record;

extern const record_type cell_type;
extern const record_type cell_shape_type, cell_performance_type;

typedef struct {
    cell_record *at;
    size_t n;
} cell_list;

/* The first words of the reason of a row that a time limit left out. Such a row has the status
 * "skipped", although the device could run it. */
#define CELL_LEFT_OUT "left out: "
bool cell_is_left_out(const cell_record *c);

/* The name of a named arm, else the kind of the arm: "mine", "fp8". */
const char *cell_arm_name(const cell_record *c);

/* Whether two rows are of one shape, with the same lengths of sequences from a distribution of the
 * same name. */
bool cell_same_shape(const cell_record *a, const cell_record *b);

/* Whether the row has the flag @flag. */
bool cell_has_flag(const cell_record *c, const char *flag);

#endif
