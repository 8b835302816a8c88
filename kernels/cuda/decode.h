/* decode.h - decode_args, the arguments of one decode launch: one struct, the same for each decode
 * kernel. Also the structs that it consists of, and what several kernels derive from it.
 *
 * A plan (plan.cu) holds one decode_args. When the plan is created, the members that depend on its
 * capacity are set. Scheduling or preparing a step sets grid and follows_prepare. Running the step
 * copies the caller's structs (mla.h) into it and, after the launch, clears follows_prepare. The
 * launch function of a kernel takes the struct unchanged and derives the parameters of its kernel
 * from it. */
#ifndef SNAPMLA_KERNELS_CUDA_DECODE_H
#define SNAPMLA_KERNELS_CUDA_DECODE_H

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include "kernels/cuda/c_contract.h"
#include "kernels/cuda/sched/sched.h"

/* Device memory that a plan owns and its launches use. A slot holds the partial result of one item.
 * The launch header of each kernel gives the format and the size of its partial results, and says
 * which members it uses. */
struct decode_workspace {
    sched_plan metadata; /* the schedule of the current step */
    void *partial_out;   /* [slots][rows] partial outputs */
    float *partial_lse;  /* [slots][rows] the log-sum-exp of these, base 2 */
    int *counters;       /* [slots][row tiles], zero between launches. Only the elements of a split
                            sequence's first slot are used and, by fp8_merge.cuh, those of its
                            second (counter_of() in merge/cut_sequence.cuh) */
    void *few_partials;  /* partial results of the FP8 kernels with at most 32 rows per CTA:
                            [row tiles][slots], all bits set between launches; may be null */
};

struct decode_args {
    mla_precision precision;
    int heads, d_c, d_r;
    decode_workspace work;
    decode_grid grid; /* the grid of the current step */
    mla_step step;    /* this and the next two members are the arguments of mla_run() */
    mla_cache cache;
    mla_attn attn;
    bool may_cut;         /* a sequence may be split; portable kernels then launch combine, too */
    bool follows_prepare; /* prepare_launch() is the launch before this one (hopper.h) */
};

/* The part of the arguments that every decode kernel takes unchanged. Each of them embeds it in its
 * own parameters. */
struct decode_io {
    const int *block_table; /* [batch][table_width] */
    int table_width, pages; /* pages: of the pool */
    const sched_item *items;
    const sched_part *parts;
    __nv_bfloat16 *out; /* [batch][rows][d_c] */
    float *lse;         /* [batch][rows] natural logarithm; may be null */
};

inline decode_io decode_io_of(const decode_args &a) {
    return {a.step.block_table,
            a.step.table_width,
            static_cast<int>(a.cache.pages),
            a.work.metadata.items,
            a.work.metadata.parts,
            static_cast<__nv_bfloat16 *>(a.attn.out),
            a.attn.lse};
}

/* Rows of one sequence: one for each query token and head. */
inline int decode_rows(const decode_args &a) {
    return a.heads * a.step.s_q;
}

/* The factor of the scores, scale x log2(e), since the kernels use powers of 2. */
inline float decode_scale_log2(const decode_args &a) {
    return a.attn.softmax_scale * 1.44269504f;
}

#endif
