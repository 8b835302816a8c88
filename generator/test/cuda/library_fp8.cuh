/* library_fp8.cuh - cuBLASLt's products of e4m3 codes, with which check_codes compares our times.
 *
 * The library's products have no scales: y [rows][n] in BF16 = x [rows][k] times w [n][k]. With
 * fast accumulation, the tensor cores add up all of k. Without it, the sums are promoted to FP32
 * after some products, as ours are. */
#pragma once
#include "generator/test/cuda/code_case.cuh"

namespace codes {

struct fp8_operands {
    const uint8_t *w, *x;
    void *y;
    int n, k, rows; /* multiples of 16 */
};

} // namespace codes

#if __has_include(<cublasLt.h>)

#include "generator/local/cuda/cublaslt_entry.h"

namespace codes {

/* The opened library. It is not closed: the program is short. */
struct library_fp8 {
    static constexpr size_t WORKSPACE = size_t(32) << 20; /* bytes */
    device::cublaslt_entry f;
    cublasLtHandle_t handle;
    cublasLtMatmulPreference_t preference;
    void *workspace;
    bool usable; /* false if the library is missing or fails */

    library_fp8() : f{}, handle(nullptr), preference(nullptr), workspace(nullptr), usable(false) {
        const size_t bytes = WORKSPACE;
        void *library = device::open_cublaslt();
        usable = library && f.load(library) && f.create(&handle) == CUBLAS_STATUS_SUCCESS &&
                 f.preference_create(&preference) == CUBLAS_STATUS_SUCCESS &&
                 f.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
                                  sizeof bytes) == CUBLAS_STATUS_SUCCESS;
        if (usable)
            workspace = allocate<uint8_t>(bytes);
    }
    size_t version() const {
        return usable ? f.version() : 0;
    }
};

/* A product, and the algorithms that the library proposes for it. */
class fp8_product {
  public:
    fp8_product(const library_fp8 &l, const fp8_operands &o, bool fast)
        : l(l), o(o), product(nullptr), w(nullptr), x(nullptr), y(nullptr), proposals(0), used(0) {
        if (!l.usable || !describe(fast) ||
            l.f.propose(l.handle, product, w, x, y, y, l.preference, MOST, results, &proposals) !=
                CUBLAS_STATUS_SUCCESS)
            proposals = 0;
    }
    ~fp8_product() {
        if (product)
            l.f.product_destroy(product);
        for (cublasLtMatrixLayout_t matrix : {w, x, y})
            if (matrix)
                l.f.layout_destroy(matrix);
    }
    fp8_product(const fp8_product &) = delete;
    fp8_product &operator=(const fp8_product &) = delete;

    /* Number of algorithms, 0 if the library can't compute the product. */
    int count() const {
        return proposals;
    }
    void use(int algorithm) {
        used = algorithm;
    }
    cudaError_t run(const device::stream_of &s) const {
        const float one = 1, zero = 0;
        return l.f.multiply(l.handle, product, &one, o.w, w, o.x, x, &zero, o.y, y, o.y, y,
                            &results[used].algo, l.workspace, library_fp8::WORKSPACE,
                            s.stream) == CUBLAS_STATUS_SUCCESS
                   ? cudaSuccess
                   : cudaErrorNotSupported;
    }

  private:
    enum { MOST = 8 }; /* algorithms */
    const library_fp8 &l;
    const fp8_operands o;
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t w, x, y;
    cublasLtMatmulHeuristicResult_t results[MOST];
    int proposals, used;

    template <typename T>
    bool set(cublasLtMatmulDescAttributes_t what, T value) {
        return l.f.product_set(product, what, &value, sizeof value) == CUBLAS_STATUS_SUCCESS;
    }
    bool layout(cublasLtMatrixLayout_t *to, cudaDataType_t type, int rows, int cols) {
        return l.f.layout_create(to, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(cols),
                                 rows) == CUBLAS_STATUS_SUCCESS;
    }

    /* The library's matrices are column-major, so y and x are transposed. */
    bool describe(bool fast) {
        return l.f.product_create(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F) ==
                   CUBLAS_STATUS_SUCCESS &&
               set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T) &&
               set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N) &&
               set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<int8_t>(fast)) &&
               layout(&w, CUDA_R_8F_E4M3, o.k, o.n) && layout(&x, CUDA_R_8F_E4M3, o.k, o.rows) &&
               layout(&y, CUDA_R_16BF, o.n, o.rows);
    }
};

} // namespace codes

#else

namespace codes {

struct library_fp8 {
    bool usable = false;
    size_t version() const {
        return 0;
    }
};

class fp8_product {
  public:
    fp8_product(const library_fp8 &, const fp8_operands &, bool) {
    }
    int count() const {
        return 0;
    }
    void use(int) {
    }
    cudaError_t run(const device::stream_of &) const {
        return cudaErrorNotSupported;
    }
};

} // namespace codes

#endif

namespace codes {

/* Compares some numbers of the library's y with sums of FP64. The tolerance is wide enough for fast
 * accumulation, and narrow enough to find wrong rows, columns or layouts. */
inline bool library_agrees(const fp8_operands &o) {
    enum { SAMPLES = 16 };
    const auto k = static_cast<size_t>(o.k);
    bool ok = true;
    for (int i = 0; i < SAMPLES; i++) {
        const size_t row = mix(2 * i) % static_cast<size_t>(o.rows),
                     col = mix(2 * i + 1) % static_cast<size_t>(o.n);
        const auto a = download(o.x + row * k, k), b = download(o.w + col * k, k);
        const device::bf16 *y = static_cast<const device::bf16 *>(o.y) + row * o.n + col;
        exact e = {};
        for (size_t j = 0; j < k; j++) {
            const double p = static_cast<double>(decoded(a[j])) * decoded(b[j]);
            e.sum += p;
            e.magnitude += fabs(p);
        }
        const double error = fabs(__bfloat162float(download(y, 1)[0]) - e.sum);
        ok = ok && error <= 0x1p-8 * fabs(e.sum) + 0x1p-9 * e.magnitude;
    }
    return ok;
}

} // namespace codes
