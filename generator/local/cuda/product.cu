/* Chooses the function that computes a product. */
#include "generator/local/cuda/codes.h"
#include "generator/local/cuda/model.h"

using namespace device;

namespace {

enum { kThreads = 256 };

/* Applies ends_gate (cuda_gemm.h): y [rows][n / 2] from sums [rows][n], in which eight columns of
 * the gate alternate with eight columns of the up projection. Each thread computes two columns. */
__global__ void __launch_bounds__(kThreads) gate(const float *sums, int n, bf16 *y) {
    let_next();
    wait_previous();
    const int64_t row = blockIdx.y;
    const int col = 2 * (blockIdx.x * kThreads + threadIdx.x);
    if (col >= n / 2)
        return;
    const float2 *from = reinterpret_cast<const float2 *>(sums + row * n + col / 8 * 16 + col % 8);
    const float2 g = from[0], up = from[4];
    *reinterpret_cast<__nv_bfloat162 *>(y + row * (n / 2) + col) = __floats2bfloat162_rn(
        g.x / (1.0f + __expf(-g.x)) * up.x, g.y / (1.0f + __expf(-g.y)) * up.y);
}

/* Computes a product with a gate by the library: first the sums, then gate() on them. */
bool gated(cuda_model *m, const gemm_args &a, cudaError_t *e) {
    if (a.rows > kGatedRows)
        return false;
    gemm_args sums = a;
    sums.y = m->b.gated;
    sums.y_row = a.n;
    sums.end = ends_f32;
    if (!cublaslt_gemm(m->library, m->s, sums))
        return false;
    const int blocks = (a.n / 4 + kThreads - 1) / kThreads;
    *e = launch(m->s, gate, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(a.rows)),
                kThreads, 0, m->b.gated, a.n, static_cast<bf16 *>(a.y));
    return true;
}

bool by_library(cuda_model *m, const gemm_args &a, cudaError_t *e) {
    *e = cudaSuccess;
    if (!m->library || a.listed)
        return false;
    return a.end == ends_gate ? gated(m, a, e) : cublaslt_gemm(m->library, m->s, a);
}

/* Computes a product of up to kFewRows rows with weights that stay e4m3. The activations become
 * FP16. Rows of experts are not gathered. */
cudaError_t few_coded_product(cuda_model *m, const gemm_args &a) {
    const bool has_pairs = a.listed && !a.experts.row; /* x has one row per pair */
    const int *count = has_pairs ? a.experts.first + m->experts : nullptr;
    const int rows = has_pairs ? static_cast<int>(a.x_rows) : a.rows;
    auto *half = reinterpret_cast<__half *>(m->b.code);
    gemm_args fp16 = a;
    fp16.x_fp16 = {half, m->b.code_scale};
    const cudaError_t e =
        rows_to_fp16(m->s, {a.x, a.x_row, count, rows, a.k, half, m->b.code_scale});
    return e == cudaSuccess ? gemm_few_codes(m->s, fp16) : e;
}

/* Converts the activations of a product to e4m3. Each row of experts is converted once and written
 * to the places of all its pairs. */
cudaError_t quantise(cuda_model *m, const gemm_args &a) {
    const bool has_pairs = a.listed && !a.experts.row; /* x has one row per pair */
    quantise_args q = {};
    q.x = a.x;
    q.x_row = a.x_row;
    q.count = has_pairs ? a.experts.first + m->experts : nullptr;
    q.x_rows = has_pairs ? static_cast<int>(a.x_rows) : a.rows;
    q.k = a.k;
    q.code = m->b.code;
    q.scale = m->b.code_scale;
    q.rows = a.x_rows;
    if (a.listed && !has_pairs) {
        q.place = m->b.place;
        q.places = m->slots;
    }
    return quantise_rows(m->s, q);
}

/* Computes a product with weights that stay e4m3. With more than kFewRows rows, the activations
 * become e4m3, too. */
cudaError_t coded_product(cuda_model *m, const gemm_args &a) {
    if (!takes_many(m, a.rows))
        return few_coded_product(m, a);
    gemm_args codes = a;
    const cudaError_t e = quantise(m, a);
    if (e != cudaSuccess)
        return e;
    codes.x_codes = {m->b.code, m->b.code_scale};
    codes.partial = m->b.partial;
    if (codes.listed)
        return gemm_expert_codes(m->s, codes);
    return suits_stream_k(codes) ? gemm_stream_k(m->s, codes) : gemm_many_codes(m->s, codes);
}

} // namespace

cudaError_t product(cuda_model *m, const gemm_args &a) {
    cudaError_t e;
    if (a.w_codes.code)
        return coded_product(m, a);
    if (!takes_many(m, a.rows))
        return gemm_few(m->s, a);
    if (by_library(m, a, &e))
        return e;
    return a.n % 2 ? gemm_few(m->s, a) : gemm_many(m->s, a);
}
