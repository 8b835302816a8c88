#include "generator/local/model/runner.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "generator/local/model/model_parts.h"
#include "kernels/staged.h"

enum {
    kDecodeSplits = 8
}; /* fixed, so that a sequence's sums are split in the same way in any batch */

static snap_status create_plans(runner *r, snap_err *err) {
    snap_status st;
    const model_shape *s = r->s;
    mla_capacity cap = {.precision = cache_precision(r->opt.format),
                        .heads = s->num_attention_heads,
                        .d_c = s->kv_lora_rank,
                        .d_r = s->qk_rope_head_dim,
                        .batch = r->opt.max_rows,
                        .s_q = 1,
                        /* in whole pages, because chunk.c reads past the end of a sequence */
                        .max_tokens = (r->opt.context - 1) / MLA_PAGE * MLA_PAGE + MLA_PAGE,
                        .splits = 1};
    TRY(mla_plan_create(&r->append_plan, r->be, &cap, err));
    cap.batch = r->opt.max_decode;
    cap.splits = kDecodeSplits;
    TRY(mla_plan_create(&r->decode_plan, r->be, &cap, err));
cleanup:
    return st;
}

static snap_status create_cache(runner *r, snap_err *err) {
    snap_status st =
        kv_cache_create(&r->cache, r->be, r->opt.format, r->opt.precision, r->w->blocks,
                        r->opt.pages, r->s->kv_lora_rank, r->s->qk_rope_head_dim, err);
    if (st == SNAP_OK)
        r->opt.precision = kv_cache_precision(r->cache);
    return st;
}

/* Opens the backend. The CPU backend uses the threads of the model. Any other backend runs only
 * attention and the cache. */
static snap_status open_backend(runner *r, snap_err *err) {
    const char *device = r->opt.device;
    /* the kernels call the set "avx512" that gemm.h calls "avx512bf16" */
    const char *isa = r->opt.isa && strcmp(r->opt.isa, "avx512bf16") == 0 ? "avx512" : r->opt.isa;
    mla_backend_options cpu = {.isa = isa, .pool = r->pool};
    mla_backend *be = NULL;
    if (!device || strcmp(device, "cpu") == 0)
        return mla_backend_open(&r->be, "cpu", &cpu, err);
    snap_status st = mla_backend_open(&be, device, NULL, err);
    if (st != SNAP_OK)
        return st;
    mla_backend_info info;
    mla_backend_describe(be, &info);
    if (!info.host_memory && r->opt.format != CACHE_BF16 && r->opt.format != CACHE_FP8) {
        mla_backend_close(be);
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "precision '%s' needs the cache in host memory, but '%s' has its own memory",
                       r->opt.precision ? r->opt.precision : kv_format_name(r->opt.format),
                       info.name);
    }
    return staged_open(&r->be, be, err);
}

static snap_status open_parts(runner *r, snap_err *err) {
    snap_status st;
    bool f32 = r->opt.format == CACHE_F32;
    TRY(parallel_create(&r->pool, r->opt.threads, err));
    TRY(gemm_create(&r->g, r->pool, f32 ? GEMM_F32 : GEMM_BF16, r->opt.isa, err));
    TRY(gemm_create(&r->g32, r->pool, GEMM_F32, r->opt.isa, err));
    TRY(open_backend(r, err));
    TRY(create_plans(r, err));
    TRY(create_cache(r, err));
cleanup:
    return st;
}

/* The communicators must fit the share of the weights. */
static snap_status check_experts(const runner_options *o, const model_weights *w, snap_err *err) {
    static const comm alone = {.size = 1};
    const comm *part = comm_splits(o->comm) ? o->comm : &alone,
               *replica = comm_splits(o->experts) ? o->experts : &alone;
    int rank = replica->rank * part->size + part->rank, ranks = replica->size * part->size;
    bool divided = weights_divide_experts(w);
    if (divided ? w->share.expert_ranks == ranks && w->share.expert_rank == rank
                : replica == &alone)
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE,
                   "the weights have the experts of rank %d of %d, and the communicators are those "
                   "of rank %d of %d",
                   w->share.expert_rank, divided ? w->share.expert_ranks : 1, rank, ranks);
}

static snap_status create_on_cuda(runner *r, snap_err *err) {
    snap_status st;
    mla_backend_options be = {.isa = r->opt.isa, .device = r->opt.device_number};
    int threads = r->opt.threads ? r->opt.threads : parallel_cpus();
    const comm *sums = r->opt.comm, *experts = r->opt.experts;
    if ((comm_splits(sums) && !sums->add_sum) ||
        (comm_splits(experts) && !(experts->gather && experts->scatter_sum)))
        TRY(err_set(err, SNAP_E_UNSUPPORTED,
                    "the ranks of a model on 'cuda' need a communicator for GPUs"));
    TRY(parallel_create(&r->pool, threads < RUNNER_HOST_THREADS ? threads : RUNNER_HOST_THREADS,
                        err));
    TRY(mla_backend_open(&r->be, "cuda", &be, err));
    TRY(create_cache(r, err));
    TRY(cuda_model_create(&r->cuda, r->be, r->w, r->cache, &r->opt, err));
cleanup:
    return st;
}

static snap_status check_options(const runner_options *o, const model_shape *s, snap_err *err) {
    if (o->context < 1 || o->context > MLA_MAX_CONTEXT || o->context > s->max_position_embeddings)
        return err_set(err, SNAP_E_SHAPE,
                       "a context of %lld tokens is out of range: the model supports 1 to %d",
                       (long long)o->context, s->max_position_embeddings);
    if (o->pages < 1 || o->pages > INT32_MAX || o->max_rows < 1 || o->max_decode < 1)
        return err_set(err, SNAP_E_SHAPE, "pages, rows and decode rows must be positive");
    return SNAP_OK;
}

static snap_status create_on_cpu(runner *r, snap_err *err) {
    snap_status st;
    if (!r->w->embed.w)
        return err_set(err, SNAP_E_UNSUPPORTED, "weights without a checkpoint need a CUDA device");
    const comm *sums = r->opt.comm, *experts = r->opt.experts;
    if ((comm_splits(sums) && !sums->all_reduce) ||
        (comm_splits(experts) && !(experts->all_gather && experts->all_reduce)))
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "the ranks of a model on the CPU need a communicator for the CPU");
    TRY(open_parts(r, err));
    r->element = gemm_element(r->g);
    r->rope = rope_make(r->s);
    r->router = router_make(r->s);
    r->softmax_scale = (float)rope_softmax_scale(r->s);
    TRY(runner_take_buffers(r, err));
cleanup:
    return st;
}

static snap_status choose_device(const char *name, bool *cuda, snap_err *err) {
    *cuda = name && strcmp(name, "cuda") == 0;
    if (*cuda || !name || strcmp(name, "cpu") == 0 || strcmp(name, "opencl") == 0 ||
        text_starts(name, "plugin:"))
        return SNAP_OK;
    return err_set(err, SNAP_E_USAGE, "unknown device '%s' (cpu, cuda, opencl, plugin:PATH)", name);
}

snap_status runner_create(runner **out, const model_weights *w, const runner_options *opt,
                          snap_err *err) {
    *out = NULL;
    snap_status st;
    bool on_cuda;
    runner *r = calloc(1, sizeof *r);
    if (!r)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a model");
    *r = (runner){.w = w, .s = &w->shape, .opt = *opt};
    TRY(choose_device(opt->device, &on_cuda, err));
    TRY(check_options(opt, r->s, err));
    TRY(check_experts(opt, w, err));
    if (r->opt.max_decode > r->opt.max_rows)
        r->opt.max_decode = r->opt.max_rows;
    for (int i = 0; i < w->blocks; i++)
        r->moe_layers += w->block[i].moe;
    TRY(on_cuda ? create_on_cuda(r, err) : create_on_cpu(r, err));
    *out = r;
    r = NULL;
cleanup:
    runner_free(r);
    return st;
}

void runner_free(runner *r) {
    if (!r)
        return;
    cuda_model_free(r->cuda);
    mla_plan_free(r->append_plan);
    mla_plan_free(r->decode_plan);
    kv_cache_free(r->cache);
    mla_backend_close(r->be);
    gemm_free(r->g);
    gemm_free(r->g32);
    if (!r->link)
        parallel_free(r->pool);
    buf_release(&r->call);
    buf_release(&r->answer);
    free(r->answer_logits);
    free(r->answer_got);
    arena_release(&r->mem);
    free(r);
}

snap_status runner_use(runner *r, snap_err *err) {
    return r->cuda ? cuda_model_use(r->cuda, err) : SNAP_OK;
}

kv_cache *runner_cache(runner *r) {
    return r->cache;
}

const model_shape *runner_shape(const runner *r) {
    return r->s;
}

const runner_options *runner_limits(const runner *r) {
    return &r->opt;
}

void runner_limit_steps(runner *r, watchdog *dog) {
    r->dog = dog;
}

parallel *runner_pool(runner *r) {
    return r->pool;
}

snap_status runner_copy_page(runner *r, int32_t from, int32_t to, snap_err *err) {
    snap_status st = calls_send_copy(r, from, to, err);
    if (st != SNAP_OK || r->link)
        return st;
    st = r->cuda ? cuda_model_copy_page(r->cuda, from, to, err)
                 : kv_cache_copy_page(r->cache, from, to, err);
    return calls_end(r, st, err);
}

snap_status runner_write_page(runner *r, int32_t page, const void *host, snap_err *err) {
    snap_status st = calls_send_page(r, page, host, err);
    if (st != SNAP_OK || r->link)
        return st;
    watchdog_begin_copy(r->dog);
    st = kv_cache_write_page(r->cache, page, host, err);
    watchdog_end(r->dog);
    return calls_end(r, st, err);
}

snap_status runner_not_finite(const runner *r, int64_t position, snap_err *err) {
    return err_set(err, SNAP_E_INPUT,
                   "the logits at position %lld are NaN or infinite (precision %s, device %s): a "
                   "number overflowed, or a weight of the checkpoint is NaN or infinite; if "
                   "precision fp32 on device cpu fails too, the checkpoint is damaged",
                   (long long)position, r->opt.precision, r->opt.device ? r->opt.device : "cpu");
}

int runner_cublaslt(const runner *r) {
    return r->cuda ? cuda_model_cublaslt(r->cuda) : 0;
}

bool runner_holds_e4m3(const runner *r) {
    return r->cuda && cuda_model_holds_e4m3(r->cuda);
}

runner_stats runner_stats_of(const runner *r) {
    return r->stats;
}

snap_status runner_fill_cache(runner *r, uint64_t seed, snap_err *err) {
    if (!r->cuda)
        return err_set(err, SNAP_E_UNSUPPORTED, "a random cache is supported on CUDA only");
    return cuda_model_fill_cache(r->cuda, seed, err);
}

void runner_watch_experts(runner *r, int32_t *experts) {
    r->watch = experts;
}

void runner_watch_blocks(runner *r, runner_block_fn fn, void *ctx) {
    r->watch_block = fn;
    r->watch_ctx = ctx;
}
