/* cell.h - a row of the section `bench`: the time of one arm for one shape and scope, and the check
 * of its output. */
#ifndef SNAPMLA_HARNESS_RECORD_CELL_H
#define SNAPMLA_HARNESS_RECORD_CELL_H

#include "harness/record/field.h"

typedef struct {
    int64_t heads, s_q, batch, context; /* s_q and context count tokens of one sequence */
    int64_t d_c, d_r;                   /* width of a cached token: columns of content and of
                                           RoPE */
} cell_shape;

/* The output compared with the FP64 oracle. It does not exist where nothing was checked. */
typedef struct {
    bool exists;
    double error, tolerance;         /* relative error of the output */
    double lse_error, lse_tolerance; /* of the log-sum-exp */
    double lse_error_exact;          /* exists only where the tolerance of lse_error was widened */
    int64_t rows_checked;            /* rows = query tokens x heads */
} cell_correctness;

/* Rates that short probes reached: read_bandwidth in B/s, bf16_mma and fp8_mma in FLOP/s. */
typedef struct {
    double read_bandwidth, bf16_mma, fp8_mma;
} cell_rates;

/* Rates of the device, probed between the samples. They do not exist where the backend has no
 * probes. */
typedef struct {
    bool exists;
    unsigned parts; /* CELL_DERIVED */
    int64_t looks;  /* how often the rates were probed */
    cell_rates median, best;
    double roofline_pct; /* 100 * the floor at the median rates / the median time */
} cell_paired;

/* Figures that follow from the shape, the median and the ceilings (cell_derive()). */
enum { CELL_DERIVED = 1 };

/* Exists only for rows that passed. */
typedef struct {
    bool exists;
    unsigned parts;            /* CELL_DERIVED */
    record_numbers samples_ns; /* time of each step */
    double min_ns, q1_ns, median_ns, q3_ns, max_ns;
    int64_t count;           /* samples */
    const char *stop_reason; /* why no more samples were taken */
    double clock_mhz_before, clock_mhz_during;
    double power_w, energy_j; /* energy of one step */
    cell_paired paired;
    /* CELL_DERIVED */
    double tflops, gb_s, tok_s, tok_j; /* TFLOP/s, GB/s, tokens per second, tokens per joule */
    double floor_ns;                   /* the shortest time that the ceilings admit */
    double roofline_pct;               /* 100 * floor_ns / median_ns */
    const char *bound;                 /* "bytes" or "flops": which of the two sets the floor */
} cell_performance;

typedef struct {
    const char *arm;         /* "bf16", "fp8"; "fp8-...": an arm of the ablation study */
    const char *backend;     /* "cuda" */
    const char *kernel;      /* name of the kernel that ran; may be "" */
    const char *kernel_hash; /* SHA-256 of the kernel's machine code */
    const char *scope;       /* "kernel", "served" */
    const char *mode;        /* "burst", "sustained"; older rows have none */
    cell_shape shape;
    const char *distribution; /* name of the distribution of the random inputs: "mla" */
    const char *cold;         /* how the cache is made cold before a step: "rotate", "flush",
                                 "none" */
    const char *origin;       /* "measured", "reported" */
    const char *source;       /* who reported it; exists only where origin is "reported" */
    const char *status;       /* "passed", "failed", "skipped", "error" */
    const char *reason;       /* why the row did not pass */
    cell_correctness correctness;
    cell_performance performance;
    record_texts flags; /* "noisy", "throttled", "shared", "below_floor", ... */
} cell_record;

extern const record_type cell_type;
extern const record_type cell_shape_type, cell_performance_type;

typedef struct {
    cell_record *at;
    size_t n;
} cell_list;

/* Whether the row has the flag @flag. */
bool cell_has_flag(const cell_record *c, const char *flag);

#endif
