/* Pages of the cache: copies a page when the last page of a prompt is shared, and fills pages for
 * timing. */
#include "generator/local/cuda/model.h"
#include "kernels/cuda/device.h"

using namespace device;

namespace {

cudaError_t copy_within(const cuda_model *m, void *plane, size_t bytes, int64_t from, int64_t to) {
    char *at = static_cast<char *>(plane);
    return bytes ? cudaMemcpyAsync(at + static_cast<size_t>(to) * bytes,
                                   at + static_cast<size_t>(from) * bytes, bytes,
                                   cudaMemcpyDeviceToDevice, m->s.stream)
                 : cudaSuccess;
}

} // namespace

extern "C" snap_status cuda_model_copy_page(cuda_model *m, int32_t from, int32_t to,
                                            snap_err *err) {
    const mla_page_bytes page = mla_cache_page_bytes(
        cache_precision(m->opt.format), m->shape.kv_lora_rank, m->shape.qk_rope_head_dim);
    cudaError_t e = cudaSuccess;
    for (size_t i = 0; i < m->w.blocks.size() && e == cudaSuccess; i++) {
        const mla_cache *c = kv_cache_layer(m->cache, static_cast<int>(i));
        e = copy_within(m, c->content, page.content, from, to);
        if (e == cudaSuccess)
            e = copy_within(m, c->rope, page.rope, from, to);
        if (e == cudaSuccess)
            e = copy_within(m, c->scale, page.scale, from, to);
    }
    return cuda_check(e, "copying a page", err);
}

extern "C" snap_status cuda_model_fill_cache(cuda_model *m, uint64_t seed, snap_err *err) {
    const mla_page_bytes page = mla_cache_page_bytes(
        cache_precision(m->opt.format), m->shape.kv_lora_rank, m->shape.qk_rope_head_dim);
    cudaError_t e = cudaSuccess;
    for (size_t i = 0; i < m->w.blocks.size() && e == cudaSuccess; i++) {
        const mla_cache *c = kv_cache_layer(m->cache, static_cast<int>(i));
        const int64_t pages = c->pages;
        seed += 1ull << 40;
        if (!c->scale) {
            e = fill_bf16(m->s, static_cast<bf16 *>(c->content),
                          pages * static_cast<int64_t>(page.content / sizeof(bf16)), 1.7f, seed);
            continue;
        }
        e = fill_e4m3(m->s, static_cast<uint8_t *>(c->content),
                      pages * static_cast<int64_t>(page.content), seed);
        if (e == cudaSuccess)
            e = fill_bf16(m->s, static_cast<bf16 *>(c->rope),
                          pages * static_cast<int64_t>(page.rope / sizeof(bf16)), 256.0f, ~seed);
        if (e == cudaSuccess)
            e = fill_f32(m->s, c->scale, pages * static_cast<int64_t>(page.scale / sizeof(float)),
                         0.0066f, 0.001f, seed + 1);
    }
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(m->s.stream);
    return cuda_check(e, "filling the cache", err);
}
