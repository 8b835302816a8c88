#include "generator/local/cuda/cublaslt.h"

#if __has_include(<cublasLt.h>)

#include <array>
#include <map>
#include <new>

#include "generator/local/cuda/cublaslt_entry.h"

namespace device {
namespace {

const size_t kWorkspace = size_t(32) << 20; /* bytes, for partial sums when k is split */
const size_t kMostKnown = 4096;             /* shapes to remember */
const uint64_t kAlignment = 16;             /* bytes; the address of every matrix is a multiple of
                                               it */

/* The numbers by which a prepared product is found again. */
using shape_key = std::array<int64_t, 9>;

shape_key key_of(const gemm_args &a) {
    return {a.end, a.groups, a.rows, a.n, a.k, a.x_row, a.y_row, a.w_group, a.x_group};
}

/* A product as the library describes it. Its matrices are column-major, so y and x are
 * transposed. */
struct prepared {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t w, x, y;
    cublasLtMatmulAlgo_t algorithm;
    bool usable;
};

} // namespace

struct cublaslt {
    void *library;
    cublaslt_entry api;
    cublasLtHandle_t handle;
    cublasLtMatmulPreference_t preference;
    void *workspace;
    std::map<shape_key, prepared> known;
};

namespace {

cublasLtMatrixLayout_t layout(const cublaslt *lt, cudaDataType_t type, int64_t rows, int64_t cols,
                              int64_t pitch, int32_t groups, int64_t group) {
    cublasLtMatrixLayout_t l = nullptr;
    const cublaslt_entry &f = lt->api;
    if (f.layout_create(&l, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(cols),
                        pitch) != CUBLAS_STATUS_SUCCESS)
        return nullptr;
    if (groups > 1) {
        (void)f.layout_set(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &groups, sizeof groups);
        (void)f.layout_set(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &group, sizeof group);
    }
    return l;
}

prepared prepare(const cublaslt *lt, const gemm_args &a) {
    const cublaslt_entry &f = lt->api;
    const cublasOperation_t turned = CUBLAS_OP_T;
    cublasLtMatmulHeuristicResult_t best = {};
    int found = 0;
    prepared p = {};
    p.w = layout(lt, CUDA_R_16BF, a.k, a.n, a.k, a.groups, a.w_group);
    p.x = layout(lt, CUDA_R_16BF, a.k, a.rows, a.x_row, a.groups, a.x_group);
    p.y = layout(lt, a.end == ends_bf16 ? CUDA_R_16BF : CUDA_R_32F, a.n, a.rows, a.y_row, a.groups,
                 a.y_group);
    p.usable =
        p.w && p.x && p.y &&
        f.product_create(&p.product, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
        f.product_set(p.product, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned) ==
            CUBLAS_STATUS_SUCCESS &&
        f.propose(lt->handle, p.product, p.w, p.x, p.y, p.y, lt->preference, 1, &best, &found) ==
            CUBLAS_STATUS_SUCCESS &&
        found == 1 && best.state == CUBLAS_STATUS_SUCCESS;
    p.algorithm = best.algo;
    return p;
}

/* Drops all prepared shapes: at the end, and when there are kMostKnown of them, because prompts of
 * new lengths keep adding shapes. Steps that were recorded as CUDA graphs contain the kernels, so
 * they do not need the prepared shapes. */
void forget(cublaslt *lt) {
    const cublaslt_entry &f = lt->api;
    for (auto &[key, p] : lt->known) {
        f.product_destroy(p.product);
        f.layout_destroy(p.w);
        f.layout_destroy(p.x);
        f.layout_destroy(p.y);
    }
    lt->known.clear();
}

bool prefer(const cublaslt *lt, cublasLtMatmulPreferenceAttributes_t what, uint64_t value,
            size_t size) {
    return lt->api.preference_set(lt->preference, what, &value, size) == CUBLAS_STATUS_SUCCESS;
}

bool start(cublaslt *lt) {
    const cublaslt_entry &f = lt->api;
    return f.create(&lt->handle) == CUBLAS_STATUS_SUCCESS &&
           f.preference_create(&lt->preference) == CUBLAS_STATUS_SUCCESS &&
           prefer(lt, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace, 8) &&
           prefer(lt, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, kAlignment, 4) &&
           prefer(lt, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, kAlignment, 4) &&
           prefer(lt, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, kAlignment, 4) &&
           prefer(lt, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, kAlignment, 4) &&
           cudaMalloc(&lt->workspace, kWorkspace) == cudaSuccess;
}

} // namespace

cublaslt *cublaslt_open() {
    void *library = open_cublaslt();
    auto *lt = library ? new (std::nothrow) cublaslt{} : nullptr;
    if (!lt)
        return nullptr;
    lt->library = library;
    if (lt->api.load(library) && start(lt))
        return lt;
    cublaslt_close(lt);
    (void)cudaGetLastError(); /* This clears the error: a later check of a launch must not see it */
    return nullptr;
}

/* The library stays loaded, because unloading does not undo what it started in the driver. */
void cublaslt_close(cublaslt *lt) {
    if (!lt)
        return;
    const cublaslt_entry &f = lt->api;
    forget(lt);
    if (lt->preference)
        f.preference_destroy(lt->preference);
    if (lt->handle)
        f.destroy(lt->handle);
    cudaFree(lt->workspace);
    delete lt;
}

size_t cublaslt_version(const cublaslt *lt) {
    return lt->api.version();
}

bool cublaslt_gemm(cublaslt *lt, const stream_of &s, const gemm_args &a) {
    const shape_key key = key_of(a);
    auto at = lt->known.find(key);
    if (at == lt->known.end() && lt->known.size() == kMostKnown)
        forget(lt);
    if (at == lt->known.end())
        at = lt->known.emplace(key, prepare(lt, a)).first;
    const prepared &p = at->second;
    const bool adds = a.end == ends_add_f32;
    const float alpha = adds ? a.factor : 1.0f, beta = adds ? 1.0f : 0.0f;
    return p.usable && lt->api.multiply(lt->handle, p.product, &alpha, a.w, p.w, a.x, p.x, &beta,
                                        a.y, p.y, a.y, p.y, &p.algorithm, lt->workspace, kWorkspace,
                                        s.stream) == CUBLAS_STATUS_SUCCESS;
}

} // namespace device

#else

namespace device {

cublaslt *cublaslt_open() {
    return nullptr;
}

void cublaslt_close(cublaslt *) {
}

size_t cublaslt_version(const cublaslt *) {
    return 0;
}

bool cublaslt_gemm(cublaslt *, const stream_of &, const gemm_args &) {
    return false;
}

} // namespace device

#endif
