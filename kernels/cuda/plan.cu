/* Plans: the choice of a kernel, the memory for metadata and partial results, and the launches of a
 * step. */
#include <algorithm>
#include <new>

#include "kernels/cuda/dataflow/prepare.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/portable/portable_launch.h"
#include "kernels/cuda/sm90_ablation/ablation.h"
#include "kernels/cuda/sm90_bf16/bf16_launch.h"
#include "kernels/cuda/sm90_fp8/fp8_launch.h"

namespace {

struct decode_kernel {
    const char *name;
    bool hopper; /* needs compute capability 9.0 */
    lab_ablation ablation;
    bool (*serves)(const mla_capacity &cap);
    decode_grid (*grid)(int sms, int heads, int s_q, const sched_room &room);
    size_t partial_bytes; /* bytes per row of partial_out (decode_workspace) */
    /* With at most few_rows rows per CTA, a whole partial result takes few_bytes. With more rows,
     * each row takes partial_bytes of partial_out. few_rows is 0 if the kernel always stores per
     * row. */
    int few_rows;
    size_t few_bytes;
    cudaError_t (*launch)(const decode_args &args, cudaStream_t stream);
};

struct cuda_plan {
    mla_plan base;
    const decode_kernel *kernel;
    decode_args args; /* arguments of the next launch; their workspace belongs to the plan */
    void *metadata;   /* the allocation behind args.work.metadata */
};

cuda_plan *of(mla_plan *plan) {
    return reinterpret_cast<cuda_plan *>(plan);
}

/* ---- the kernels ---------------------------------------------------------------------------- */

bool serves_fp8(const mla_capacity &cap) {
    return cap.precision == MLA_FP8 && cap.d_c == 512 && cap.d_r == 64;
}

bool serves_bf16(const mla_capacity &cap) {
    return cap.precision == MLA_BF16 && cap.d_c == 512 && cap.d_r == 64;
}

bool serves_portable(const mla_capacity &cap) {
    return portable_serves(cap.d_c, cap.d_r);
}

decode_grid bf16_grid(int sms, int heads, int s_q, const sched_room &) {
    return {bf16_tile(heads, s_q), bf16_decode_parts(sms, heads, s_q), 0};
}

decode_grid portable_grid(int sms, int heads, int s_q, const sched_room &) {
    return {PORTABLE_TILE_TOKENS, portable_parts(sms, heads, s_q), 0};
}

/* A plan takes the first kernel that the backend may use and that serves the plan's capacity and
 * ablation. */
const decode_kernel kKernels[] = {
    {"sm90_fp8", true, LAB_WHOLE, serves_fp8, fp8_grid, FP8_PARTIAL_BYTES, FP8_FEW_ROWS,
     FP8_FEW_BYTES, fp8_decode_launch},
    {"sm90_bf16", true, LAB_WHOLE, serves_bf16, bf16_grid, BF16_PARTIAL_BYTES, 0, 0,
     bf16_decode_launch},
    {"portable", false, LAB_WHOLE, serves_portable, portable_grid,
     PORTABLE_MAX_CONTENT * sizeof(float), 0, 0, portable_launch},
    {"widened_fp8", true, LAB_WIDENED, serves_fp8, bf16_grid, BF16_PARTIAL_BYTES, 0, 0,
     widened_decode_launch},
    {"in_place_fp8", true, LAB_IN_PLACE, serves_fp8, fp8_grid, FP8_PARTIAL_BYTES, FP8_FEW_ROWS,
     FP8_FEW_BYTES, in_place_decode_launch},
    {"shallow_fp8", true, LAB_SHALLOW, serves_fp8, fp8_grid, FP8_PARTIAL_BYTES, FP8_FEW_ROWS,
     FP8_FEW_BYTES, shallow_decode_launch},
    {"page_units_fp8", true, LAB_PAGE_UNITS, serves_fp8, fp8_grid, FP8_PARTIAL_BYTES, FP8_FEW_ROWS,
     FP8_FEW_BYTES, page_units_decode_launch},
    {"page_order_fp8", true, LAB_PAGE_ORDER, serves_fp8, fp8_grid, FP8_PARTIAL_BYTES, FP8_FEW_ROWS,
     FP8_FEW_BYTES, page_order_decode_launch},
};

const decode_kernel *kernel_for(const cuda_backend *be, const mla_capacity &cap,
                                lab_ablation ablation) {
    for (const decode_kernel &k : kKernels)
        if ((!be->portable || !k.hopper) && k.ablation == ablation && k.serves(cap))
            return &k;
    return nullptr;
}

/* ---- capacity ------------------------------------------------------------------------------- */

/* One sequence with more pages than any step has. The number is small enough that fp8_grid() can
 * estimate a time from it without overflow. */
constexpr sched_room kAnyRoom = {1, INT64_MAX / 1024};

decode_grid grid_of(cuda_plan *plan, int s_q, const sched_room &room) {
    return plan->kernel->grid(cuda_of(plan->base.be)->sms, plan->base.cap.heads, s_q, room);
}

/* The most items that a sequence is split into if the capacity fixes that number; 0 if the schedule
 * chooses it. More than one item for each SM or each tile would gain nothing. */
int cuts_of(cuda_plan *plan) {
    const mla_capacity &cap = plan->base.cap;
    const int64_t tile = grid_of(plan, 1, kAnyRoom).tile.tokens,
                  tiles = (cap.max_tokens + tile - 1) / tile;
    return static_cast<int>(std::min<int64_t>({cap.splits, tiles, cuda_of(plan->base.be)->sms}));
}

/* The most parts of a step with s_q query tokens. Steps of few pages may have fewer. */
int parts_of(cuda_plan *plan, int s_q) {
    return grid_of(plan, s_q, kAnyRoom).parts;
}

/* The number of slots that a step of s_q query tokens needs; 0 if no sequence is ever split. */
int64_t slots_of(cuda_plan *plan, int s_q) {
    const int cuts = cuts_of(plan);
    return cuts > 1    ? static_cast<int64_t>(plan->base.cap.batch) * cuts
           : cuts == 0 ? 2 * parts_of(plan, s_q)
                       : 0;
}

/* The most rows of partial results that are stored row by row, over all steps within the capacity;
 * at least 1. Numbers of query tokens with at most few_rows rows per sequence are left out:
 * few_slots() counts their slots. */
int64_t partial_rows(cuda_plan *plan) {
    const mla_capacity &cap = plan->base.cap;
    int64_t most = 1;
    for (int s_q = 1; s_q <= cap.s_q; s_q++)
        if (s_q * cap.heads > plan->kernel->few_rows)
            most = std::max<int64_t>(most, slots_of(plan, s_q) * s_q * cap.heads);
    return most;
}

/* The number of slots of few_bytes each, over all tiles of rows; 0 if none are needed. If the
 * number of splits is not fixed, steps with few pages may use such slots with any number of
 * heads. */
int64_t few_slots(cuda_plan *plan) {
    const bool any = cuts_of(plan) == 0 && plan->kernel->few_rows > 0;
    return any                                              ? 2 * cuda_of(plan->base.be)->sms
           : plan->base.cap.heads <= plan->kernel->few_rows ? slots_of(plan, 1)
                                                            : 0;
}

/* Allocates the arrays of the schedule with one call. */
cudaError_t alloc_metadata(cuda_plan *plan) {
    const int batch = plan->base.cap.batch, parts = parts_of(plan, 1);
    const size_t items = sched_max_items(batch, parts, cuts_of(plan));
    const size_t at_parts = items * sizeof(sched_item);
    const size_t at_cuts = at_parts + parts * sizeof(sched_part);
    const size_t at_count = at_cuts + batch * sizeof(sched_cut);
    cudaError_t e = cudaMalloc(&plan->metadata, at_count + sizeof(int));
    auto *base = static_cast<uint8_t *>(plan->metadata);
    plan->args.work.metadata = {
        reinterpret_cast<sched_item *>(base), reinterpret_cast<sched_part *>(base + at_parts),
        reinterpret_cast<sched_cut *>(base + at_cuts), reinterpret_cast<int *>(base + at_count)};
    return e;
}

/* Allocates the plan's workspace, and initialises counters and few_partials as decode.h says. */
cudaError_t alloc_workspace(cuda_plan *plan) {
    decode_workspace &work = plan->args.work;
    const cudaStream_t stream = cuda_of(plan->base.be)->stream;
    const size_t rows = static_cast<size_t>(partial_rows(plan));
    const size_t few_bytes = few_slots(plan) * plan->kernel->few_bytes;
    cudaError_t e = alloc_metadata(plan);
    if (e == cudaSuccess)
        e = cudaMalloc(&work.partial_out, rows * plan->kernel->partial_bytes);
    if (e == cudaSuccess)
        e = cudaMalloc(&work.partial_lse, rows * sizeof(float));
    if (e == cudaSuccess)
        e = cudaMalloc(&work.counters, rows * sizeof(int));
    if (e == cudaSuccess)
        e = cudaMemsetAsync(work.counters, 0, rows * sizeof(int), stream);
    if (e == cudaSuccess && few_bytes)
        e = cudaMalloc(&work.few_partials, few_bytes);
    if (e == cudaSuccess && few_bytes)
        e = cudaMemsetAsync(work.few_partials, 0xff, few_bytes, stream);
    return e;
}

int longest_of(const mla_plan *plan, const mla_step *step) {
    const int64_t room = static_cast<int64_t>(step->table_width) * MLA_PAGE;
    return static_cast<int>(std::min(room, plan->cap.max_tokens));
}

/* The grid of a given step. With a fixed number of splits, it must not depend on the size of the
 * step, so that the result of a row does not depend on the other sequences. */
decode_grid grid_for(cuda_plan *plan, const mla_step *step) {
    const int64_t longest = longest_of(&plan->base, step);
    const sched_room room = {step->batch, (longest + MLA_PAGE - 1) / MLA_PAGE};
    return grid_of(plan, step->s_q, cuts_of(plan) == 0 ? room : kAnyRoom);
}

cache_planes planes_of(const mla_plan *plan, const mla_cache *cache) {
    const bool fp8 = plan->cap.precision == MLA_FP8;
    return {cache->content,
            fp8 ? cache->rope : nullptr,
            fp8 ? cache->scale : nullptr,
            static_cast<int>(cache->pages),
            plan->cap.d_c,
            plan->cap.d_r,
            cuda_of(plan->be)->scale == MLA_SCALE_POW2};
}

step_pages pages_of(const mla_plan *plan, const mla_step *step) {
    return {step->seqlens, step->block_table, step->batch,
            step->s_q,     step->table_width, longest_of(plan, step)};
}

} // namespace

/* ---- creating and freeing ------------------------------------------------------------------- */

void cuda_plan_free(mla_plan *base) {
    cuda_plan *plan = of(base);
    const decode_workspace &work = plan->args.work;
    cudaFree(plan->metadata);
    cudaFree(work.partial_out);
    cudaFree(work.partial_lse);
    cudaFree(work.counters);
    cudaFree(work.few_partials);
    delete plan;
}

snap_status cuda_plan_create(mla_plan **out, mla_backend *be, const mla_capacity *cap,
                             snap_err *err) {
    return cuda_plan_create_lab(out, be, cap, LAB_WHOLE, err);
}

snap_status cuda_plan_create_lab(mla_plan **out, mla_backend *base, const mla_capacity *cap,
                                 lab_ablation ablation, snap_err *err) {
    const decode_kernel *kernel = kernel_for(cuda_of(base), *cap, ablation);
    if (!kernel)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "the cuda backend has no %skernel for %s at %d + %d on this device",
                       ablation != LAB_WHOLE ? "ablated " : "", mla_precision_name(cap->precision),
                       cap->d_c, cap->d_r);
    auto *plan = new (std::nothrow) cuda_plan{};
    if (!plan)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a plan");
    plan->base.be = base;
    plan->base.cap = *cap;
    plan->kernel = kernel;
    plan->args.precision = cap->precision;
    plan->args.heads = cap->heads;
    plan->args.d_c = cap->d_c;
    plan->args.d_r = cap->d_r;
    plan->args.may_cut = cuts_of(plan) != 1;
    const cudaError_t e = alloc_workspace(plan);
    if (e == cudaSuccess) {
        *out = &plan->base;
        return SNAP_OK;
    }
    cuda_plan_free(&plan->base);
    return cuda_check(e, "memory of a plan", err);
}

const char *cuda_plan_kernel(const mla_plan *plan) {
    return reinterpret_cast<const cuda_plan *>(plan)->kernel->name;
}

/* ---- step ----------------------------------------------------------------------------------- */

snap_status cuda_schedule(mla_plan *base, const mla_step *step, snap_err *err) {
    cuda_plan *plan = of(base);
    decode_args &args = plan->args;
    args.grid = grid_for(plan, step);
    args.follows_prepare = false;
    return cuda_check(sched_launch(args.work.metadata, step->seqlens, step->batch,
                                   longest_of(base, step), args.grid.tile, args.grid.parts,
                                   cuts_of(plan), cuda_of(base->be)->stream, step->block_table,
                                   step->table_width),
                      "schedule", err);
}

snap_status cuda_run(mla_plan *base, const mla_step *step, const mla_cache *cache,
                     const mla_attn *attn, snap_err *err) {
    cuda_plan *plan = of(base);
    decode_args &args = plan->args;
    args.step = *step;
    args.cache = *cache;
    args.attn = *attn;
    const cudaError_t e = plan->kernel->launch(args, cuda_of(base->be)->stream);
    args.follows_prepare = false;
    return cuda_check(e, "attention", err);
}

snap_status cuda_append_kv(mla_plan *base, const mla_step *step, const mla_cache *cache,
                           const void *kv, snap_err *err) {
    return cuda_check(append_launch(planes_of(base, cache), pages_of(base, step),
                                    static_cast<const __nv_bfloat16 *>(kv),
                                    cuda_of(base->be)->stream),
                      "append", err);
}

/* Prepares a step with separate launches for queries (if there are any), tokens and schedule. Used
 * if the step has more than PREPARE_MAX_PARTS parts. */
static snap_status prepare_apart(cuda_plan *plan, const mla_step *step, const mla_cache *cache,
                                 const mla_fresh *fresh, snap_err *err) {
    const mla_capacity &cap = plan->base.cap;
    const int64_t rows = static_cast<int64_t>(step->batch) * step->s_q * cap.heads;
    mla_backend *be = plan->base.be;
    snap_status st = SNAP_OK;
    if (fresh->q)
        st = be->ops->quant_q(be, rows, cap.d_c, cap.d_r, fresh->q, fresh->q8, fresh->q_rope,
                              fresh->q_scale, err);
    if (st == SNAP_OK)
        st = cuda_append_kv(&plan->base, step, cache, fresh->kv, err);
    return st == SNAP_OK ? cuda_schedule(&plan->base, step, err) : st;
}

snap_status cuda_prepare(mla_plan *base, const mla_step *step, const mla_cache *cache,
                         const mla_fresh *fresh, snap_err *err) {
    cuda_plan *plan = of(base);
    const int64_t rows = static_cast<int64_t>(step->batch) * step->s_q * base->cap.heads;
    const decode_grid grid = grid_for(plan, step);
    if (grid.parts > PREPARE_MAX_PARTS)
        return prepare_apart(plan, step, cache, fresh, err);
    plan->args.grid = grid;
    prepare_args a = {};
    a.plan = plan->args.work.metadata;
    a.tile = grid.tile;
    a.parts = grid.parts;
    a.splits = cuts_of(plan);
    a.cache = planes_of(base, cache);
    a.step = pages_of(base, step);
    a.kv = static_cast<const __nv_bfloat16 *>(fresh->kv);
    a.rows = fresh->q ? rows : 0;
    a.q = static_cast<const __nv_bfloat16 *>(fresh->q);
    a.q8 = static_cast<uint8_t *>(fresh->q8);
    a.q_rope = static_cast<__nv_bfloat16 *>(fresh->q_rope);
    a.q_scale = fresh->q_scale;
    plan->args.follows_prepare = true;
    return cuda_check(prepare_launch(a, cuda_of(base->be)->stream), "preparing a step", err);
}

snap_status cuda_fetch_kv(mla_plan *base, const mla_step *step, const mla_cache *cache, int seq,
                          int64_t first, int64_t count, void *kv, snap_err *err) {
    return cuda_check(fetch_launch(planes_of(base, cache), pages_of(base, step), seq, first, count,
                                   static_cast<__nv_bfloat16 *>(kv), cuda_of(base->be)->stream),
                      "fetch", err);
}
