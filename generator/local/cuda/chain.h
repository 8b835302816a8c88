/* chain.h - what the chain of a step of any rows and that of one row share. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_CHAIN_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_CHAIN_H

#include "generator/local/cuda/attend.h"
#include "generator/local/cuda/model.h"
#include "kernels/cuda/device.h"

namespace device {

/* Calls one launch after the other until one fails. */
struct chain {
    cuda_model *m;
    const step_shape &step;
    snap_err *err;
    snap_status st;

    bool ok() const {
        return st == SNAP_OK;
    }
    void run(cudaError_t e, const char *what) {
        if (ok())
            st = cuda_check(e, what, err);
    }
    void run(snap_status s) {
        if (ok())
            st = s;
    }

    void product(const gemm_args &a, const char *what) {
        if (ok())
            run(::product(m, a), what);
    }
};

/* What the kernels of a layer take. */
norm_to norm_of(const cuda_model *m, const float *weight);
norm_to last_norm(const cuda_model *m);
project_args project_of(const cuda_model *m, const block &b, int layer, int rows);
absorb_to absorb_of(const cuda_model *m, const block &b);
gemm_args values_of(const cuda_model *m, const block &b, int rows);
route_args route_of(const cuda_model *m, const block &b, int rows, int moe_layer);

/* Attention of queries that are there: b.o_mla. */
void attend_cache(chain *c, int layer);

/* A step of one row, of a model with m->single: from the embedding to b.packed. */
uint32_t *epoch_of(const cuda_model *m);
int64_t single_words(const model_shape &s); /* of b.told */
bool single_serves_all(const cuda_model *m);
void forward_single(chain *c);

} // namespace device

#endif
