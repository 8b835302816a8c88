/* absent.c - the functions of cuda_model.h, exchange.h and sums.h in builds without CUDA. */
#include "generator/local/cuda/cuda_model.h"
#include "generator/local/cuda/exchange.h"
#include "generator/local/cuda/sums.h"

#ifndef SNAPMLA_CUDA

snap_status cuda_model_create(cuda_model **out, mla_backend *be, const model_weights *w,
                              kv_cache *cache, const runner_options *opt, snap_err *err) {
    (void)be;
    (void)w;
    (void)cache;
    (void)opt;
    *out = NULL;
    return err_set(err, SNAP_E_UNSUPPORTED, "this build has no CUDA");
}

int cuda_model_cublaslt(const cuda_model *m) {
    (void)m;
    return 0;
}

bool cuda_model_holds_e4m3(const cuda_model *m) {
    (void)m;
    return false;
}

void cuda_model_free(cuda_model *m) {
    (void)m;
}

snap_status cuda_model_use(const cuda_model *m, snap_err *err) {
    (void)m;
    return err_set(err, SNAP_E_UNSUPPORTED, "this build has no CUDA");
}

snap_status cuda_model_step(cuda_model *m, const model_piece *pieces, int count,
                            const cuda_model_results *out, snap_err *err) {
    (void)m;
    (void)pieces;
    (void)count;
    (void)out;
    return err_set(err, SNAP_E_UNSUPPORTED, "this build has no CUDA");
}

snap_status cuda_model_time_parts(cuda_model *m, const model_piece *pieces, int count, int steps,
                                  double *ns, double *waiting_ns, snap_err *err) {
    (void)m;
    (void)pieces;
    (void)count;
    (void)steps;
    (void)ns;
    (void)waiting_ns;
    return err_set(err, SNAP_E_UNSUPPORTED, "this build has no CUDA");
}

snap_status cuda_model_copy_page(cuda_model *m, int32_t from, int32_t to, snap_err *err) {
    (void)m;
    (void)from;
    (void)to;
    return err_set(err, SNAP_E_UNSUPPORTED, "this build has no CUDA");
}

snap_status cuda_model_fill_cache(cuda_model *m, uint64_t seed, snap_err *err) {
    (void)m;
    (void)seed;
    return err_set(err, SNAP_E_UNSUPPORTED, "this build has no CUDA");
}

snap_status exchange_cuda_open(exchange **out, const exchange_options *opt, snap_err *err) {
    (void)opt;
    *out = NULL;
    return err_set(err, SNAP_E_UNSUPPORTED, "this build has no CUDA");
}

snap_status sums_cuda_open(comm **out, const sums_options *opt, snap_err *err) {
    (void)opt;
    *out = NULL;
    return err_set(err, SNAP_E_UNSUPPORTED, "this build has no CUDA");
}

void sums_cuda_close(comm *c) {
    (void)c;
}

int64_t sums_cuda_one_shot(const comm *c, const char **why_not) {
    (void)c;
    *why_not = "";
    return 0;
}

int sums_cuda_nccl(const comm *c) {
    (void)c;
    return 0;
}

#endif
