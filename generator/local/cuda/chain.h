/* chain.h - what the general step (forward.cu) and the step of a single row (single.cu) share, and
 * what model.cu needs of the latter. */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_CHAIN_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_CHAIN_H

#include "generator/local/cuda/attend.h"
#include "generator/local/cuda/model.h"
#include "kernels/cuda/device.h"

namespace device {

/* Runs one launch after another until one fails. */
struct chain {
    cuda_model *m;
    const step_shape &step;
    snap_err *err;
    snap_status st;
    bool normed = false; /* the last exchange has also written the next norm to m->b.packed */

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

    /* The work after this call belongs to @p. */
    void part(step_part p) {
        if (ok() && m->marks)
            run(m->marks->add(p, m->s.stream), "an event of a step");
    }

    void product(const gemm_args &a, const char *what) {
        if (ok())
            run(::product(m, a), what);
    }
};

/* A product of @rows rows of x [rows][k] with w [n][k]. */
gemm_args linear(const bf16 *w, int n, int k, const bf16 *x, int rows, void *y, gemm_end end);
gemm_args linear(const weight_matrix &w, int n, int k, const bf16 *x, int rows, void *y,
                 gemm_end end);

/* The arguments of a layer's kernels, and of the last norm of a step. */
norm_to norm_of(const cuda_model *m, const float *weight);
norm_to last_norm(const cuda_model *m);
project_args project_of(const cuda_model *m, const block &b, int layer, int rows);
absorb_to absorb_of(const cuda_model *m, const block &b);
gemm_args values_of(const cuda_model *m, const block &b, int rows);
route_args route_of(const cuda_model *m, const block &b, int rows, int moe_layer);

/* Attention of the decode queries in q_mla or q8 of m->b over the cache. The result is in
 * m->b.o_mla. */
void attend_cache(chain *c, int layer);

/* Adds b.part to the residual stream, summed over the ranks of a split model. @after: the norm of
 * all rows that follows; NULL if another kernel follows. Sets c->normed if that norm is done. */
void add_part(chain *c, float factor, const norm_to *after);

/* Computes the experts of a layer (experts.cu). Also normalises the rows into b.packed. The outputs
 * of the experts stay in b.down until a kernel joins them by experts_join(), or add_experts() adds
 * them to the rows. With EP, the shared experts are not in b.down. */
void experts(chain *c, const block &b, int moe_layer);
join_from experts_join(const cuda_model *m, int rows);

/* Adds the outputs of experts to the residual stream, if ranks split the model or divide the
 * experts. @b: the block after which they are added. @after: as in add_part(). */
void add_experts(chain *c, const block &b, const norm_to *after);

/* The step of one row (single.cu). single_supports_all() decides whether a model uses it
 * (m->single). forward_single() runs its layers, from the embedded row in m->b.x to
 * m->b.packed. epoch_of() is the counter of such steps, on the device. */
uint32_t *epoch_of(const cuda_model *m);
int64_t single_exchange_words(const model_shape &s); /* size of b.exchange, in 64-bit words */
bool single_supports_all(const cuda_model *m);
void forward_single(chain *c);

} // namespace device

#endif
