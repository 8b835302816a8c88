/* isa.h - the functions that each instruction set implements for gemm.c, in a file of its own. */
#ifndef SNAPMLA_GENERATOR_LOCAL_GEMM_ISA_H
#define SNAPMLA_GENERATOR_LOCAL_GEMM_ISA_H

#include "generator/local/gemm/gemm.h"

typedef struct {
    const char *name;
    bool (*usable)(void); /* whether this machine supports it */
    void (*rows_bf16)(const gemm_tile *t);
    void (*rows_f32)(const gemm_tile *t);
    void (*cols_bf16)(const gemm_tile *t);
    void (*cols_f32)(const gemm_tile *t);
    void (*to_bf16)(uint16_t *out, const float *in, int64_t n);
    float (*exp2)(float *x, int64_t n, float largest);
} gemm_isa;

extern const gemm_isa gemm_portable;
#if defined __x86_64__
extern const gemm_isa gemm_avx2, gemm_avx512f, gemm_avx512bf16;
#endif

#endif
