/* isa.h - the functions that each instruction set supplies to the CPU backend.
 *
 * step.c splits a step into parts (a range of one sequence's tokens x a group of its query rows),
 * distributes them over threads and merges the results. An instruction set computes one part; it
 * also supplies the conversion of rows, the sum of partial outputs and the probe loops. Each
 * instruction set has its own file, whose functions are called only if the machine supports the
 * set. A pragma compiles the file for that set (portable.c needs none). */
#ifndef SNAPMLA_KERNELS_CPU_ISA_H
#define SNAPMLA_KERNELS_CPU_ISA_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/mla.h"

enum {
    CPU_MAX_ROWS = 128, /* most query rows of a part: their output sums should fit into a core's
                           L2 */
    CPU_OPERANDS = 128,
};

typedef enum {
    CPU_READ_PLAIN,      /* one stream per thread */
    CPU_READ_NEAR,       /* one stream per thread, prefetching 1 KB ahead */
    CPU_READ_FAR,        /* one stream per thread, prefetching 8 KB ahead */
    CPU_READ_TWO,        /* two streams per thread */
    CPU_READ_FOUR,       /* four streams per thread */
    CPU_READ_FOUR_AHEAD, /* four streams per thread, prefetching 2 KB ahead */
    CPU_READ_LOOPS
} cpu_read_loop;

typedef struct {
    mla_precision precision;
    int d_c, d_r;
    mla_cache cache;
    const int32_t *table; /* the sequence's row of the block table */
    int64_t length;       /* tokens of the sequence */
    int64_t first, end;   /* tokens of this part; first is a multiple of MLA_PAGE, end <= length */
    int s_q, heads;
    int row0, rows;         /* the part's rows: row0 .. row0 + rows - 1 of the sequence's s_q *
                               heads rows */
    const void *q, *q_rope; /* query planes, as in mla_attn, from the sequence's row 0 on */
    const float *q_scale;
    float softmax_scale;
} cpu_part;

/* Number of tokens of the sequence that row @i of the part sees. May be negative. */
static inline int64_t cpu_part_visible(const cpu_part *part, int i) {
    return part->length - (part->s_q - 1 - (part->row0 + i) / part->heads);
}

typedef struct {
    const char *name;   /* value of mla_backend_options.isa */
    const char *kernel; /* value of mla_backend_info.kernel */
    /* Returns NULL if this process can use the instruction set here. Otherwise returns what is
     * missing, as a phrase. */
    const char *(*lacks)(void);
    bool emulated;        /* for tests: "auto" and the probes leave it out */
    int large_parts_from; /* From so many rows on, a part costs several pages' time besides its
                             tokens, so step.c makes large parts. 0: never */
    size_t (*scratch_bytes)(int rows, int d_c, int d_r);

    /* Computes, for each row, over the tokens of the part that the row sees:
     *   o [rows][d_c] = sum_j P_j c_j, l = sum_j P_j, with P_j = 2^(logit_j - m)
     *   m = the maximum of the logits, which are in base 2
     * Without a visible token, o = 0, l = 0 and m = -inf. In the sum o, MLA_FP8 rounds P
     * as softmax.h says. Both precisions may round it to bf16 (after that). @scratch is aligned to
     * MLA_ALIGN, and o to 64 bytes. */
    void (*attend)(const cpu_part *part, void *scratch, float *o, float *m, float *l);

    /* out [d_c] = bf16(sum_i weight[i] * o[i * stride + ..]) */
    void (*combine)(uint16_t *out, const float *o, int64_t stride, const float *weight, int parts,
                    int d_c);

    /* quant_row() and dequant_row() of formats.h, bit for bit, apart from the bits of a NaN */
    float (*quant)(const uint16_t *row, int d_c, int d_r, mla_scale rule, uint8_t *c8,
                   uint16_t *rope);
    void (*dequant)(const uint8_t *c8, const uint16_t *rope, float a, int d_c, int d_r,
                    uint16_t *row);

    /* Probes. read() reads every byte once. multiply() runs @rounds rounds of multiply-accumulates
     * on numbers from @operands, which has CPU_OPERANDS random normal numbers in bf16. It returns
     * the number of FLOP. */
    void (*read)(const void *from, size_t bytes, cpu_read_loop loop);
    double (*multiply)(const uint16_t *operands, int64_t rounds);
    const char *multiply_how;
} cpu_isa;

extern const cpu_isa cpu_portable;
#if defined __x86_64__
extern const cpu_isa cpu_avx2, cpu_avx512f, cpu_avx512, cpu_amx, cpu_amx_emulated;
#endif

#endif
