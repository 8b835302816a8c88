#include "generator/local/local.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "generator/local/random_model.h"

/* Opens the weights of m->shape or, if the model is divided over ranks, rank 0's share. With "cuda"
 * only the outline of random weights is made here; cuda_weights.cu fills them on the
 * device. */
static snap_status open_weights(local_model *m, const char *dir, const local_options *opt,
                                const rank_layout *ranks, snap_err *err) {
    snap_status st;
    model_shape shape = m->shape;
    weights_share share = split_share(ranks, 0);
    TRY(rank_layout_shape(&shape, ranks, err));
    if (opt->random && text_equal(opt->device, "cuda")) {
        st = weights_outline(&m->weights, &shape, err);
        m->weights.share = share;
        return st;
    }
    TRY(opt->random ? random_checkpoint(&m->files, &m->shape, err)
                    : checkpoint_open(&m->files, dir, err));
    TRY(rank_layout_size(ranks) > 1 ? weights_bind_share(&m->weights, &shape, &share, m->files, err)
                                    : weights_bind(&m->weights, &shape, m->files, err));
cleanup:
    return st;
}

static snap_status open_parts(local_model *m, const char *dir, const local_options *opt,
                              const rank_layout *ranks, snap_err *err) {
    snap_status st = SNAP_OK;
    if (opt->random)
        m->shape = *opt->random;
    else
        TRY(model_shape_open(&m->shape, dir, err));
    TRY(open_weights(m, dir, opt, ranks, err));
    TRY(opt->random ? random_tokenizer(&m->tokenizer, m->shape.vocab_size, err)
                    : tokenizer_open(&m->tokenizer, dir, err));
    TRY(tok_encoder_create(&m->encoder, m->tokenizer, err));
    if (tokenizer_size(m->tokenizer) > m->shape.vocab_size)
        TRY(err_set(err, SNAP_E_INPUT, "%s: the tokenizer has %d ids, the model %d", dir,
                    (int)tokenizer_size(m->tokenizer), m->shape.vocab_size));
cleanup:
    return st;
}

static snap_status choose_template(local_model *m, const char *dir, const local_options *opt,
                                   snap_err *err) {
    chat_style *s = &m->style;
    *s = (chat_style){.thinking = opt->thinking,
                      .bos = tokenizer_content(m->tokenizer, tokenizer_bos(m->tokenizer)),
                      .eos = tokenizer_content(m->tokenizer, tokenizer_eos(m->tokenizer))};
    if (opt->random && !opt->chat_template)
        return SNAP_OK; /* plain text */
    return opt->chat_template ? chat_template_parse(opt->chat_template, &s->template, err)
                              : chat_template_choose(dir, &s->template, err);
}

/* Collects the ids that end a sequence: those of the model's shape and the end token of the
 * tokenizer. */
static void collect_stops(local_model *m) {
    int32_t eos = tokenizer_eos(m->tokenizer);
    bool known = eos < 0;
    for (int i = 0; i < m->shape.n_eos; i++) {
        m->stop_ids[m->n_stop_ids++] = m->shape.eos_ids[i];
        known |= m->shape.eos_ids[i] == eos;
    }
    if (!known)
        m->stop_ids[m->n_stop_ids++] = eos;
}

/* The default size limit of a cache, in bytes: LOCAL_CACHE, or 1 / kShare of a CUDA device's memory
 * if that is more. It is a small share, because an evaluation of several arms opens one generator
 * for each arm on the same device. */
static snap_status cache_limit(const runner_options *r, int64_t *bytes, snap_err *err) {
    enum { kShare = 8 };
    snap_status st = SNAP_OK;
    mla_backend *be = NULL;
    mla_backend_info info;
    mla_backend_options which = {.device = r->device_number};
    *bytes = LOCAL_CACHE;
    if (!text_equal(r->device, "cuda"))
        return SNAP_OK;
    TRY(mla_backend_open(&be, "cuda", &which, err));
    mla_backend_describe(be, &info);
    if ((int64_t)info.memory_bytes / kShare > *bytes)
        *bytes = (int64_t)info.memory_bytes / kShare;
cleanup:
    mla_backend_close(be);
    return st;
}

static snap_status cache_pages(const local_model *m, const local_options *opt,
                               const runner_options *r, int64_t *pages, snap_err *err) {
    const model_shape *s = &m->shape;
    int64_t layers = m->weights.blocks, bytes = opt->cache_bytes;
    int64_t bf16 = (int64_t)mla_cache_token_bytes(MLA_BF16, s->kv_lora_rank, s->qk_rope_head_dim);
    int64_t token =
        cache_precision(r->format) == MLA_FP8
            ? (int64_t)mla_cache_token_bytes(MLA_FP8, s->kv_lora_rank, s->qk_rope_head_dim)
            : bf16;
    if (r->format == CACHE_F32) /* a token takes twice the bytes of BF16 */
        token = bf16 *= 2;
    if (!bytes) {
        int64_t pages_each = (r->context - 1) / MLA_PAGE + 1,
                all = r->max_decode * layers * pages_each * MLA_PAGE * bf16;
        snap_status st = cache_limit(r, &bytes, err);
        if (st != SNAP_OK)
            return st;
        bytes = all < bytes ? all : bytes;
    }
    *pages = bytes / (token * MLA_PAGE * layers);
    return *pages > 0 ? SNAP_OK
                      : err_set(err, SNAP_E_NOMEM, "a cache of %lld bytes is smaller than one page",
                                (long long)bytes);
}

/* The number of threads of replica @i. In a split model, each rank has as many threads as rank
 * 0. */
static int threads_of(const local_options *opt, const replica_devices *d, int i) {
    int all = opt->threads ? opt->threads : parallel_cpus(), n = replica_devices_count(d);
    int share = all / n + (replica_devices_ranks(d) == 1 && i < all % n);
    return n == 1 ? opt->threads : share > 1 ? share : 1;
}

/* Starts the other ranks of replica @i, and connects the runner of rank 0 with them. */
static snap_status open_split(local_model *m, const char *dir, const local_options *opt,
                              const replica_devices *d, int i, runner_options *r, snap_err *err) {
    split_options how = {.name = m->name,
                         .dir = dir,
                         .random = opt->random,
                         .shape = &m->shape,
                         .layout = d->ranks,
                         .devices = replica_devices_of(d, i),
                         .runner = r};
    snap_status st = split_open(&m->split, &how, err);
    if (st == SNAP_OK)
        split_connect(m->split, r);
    return st;
}

/* Makes the remote runners of an engine with several replicas, and the engine. */
static snap_status make_together(local_model *m, int replicas, snap_err *err) {
    snap_status st = SNAP_OK;
    runner *all[LOCAL_REPLICAS] = {m->runner};
    if (replicas > 1)
        m->remote = calloc((size_t)replicas - 1, sizeof(void *));
    if (replicas > 1 && !m->remote)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %d replicas", replicas);
    for (int i = 1; i < replicas; i++) {
        TRY(runner_create_remote(&m->remote[i - 1], m->runner, split_link(m->split, i), err));
        all[i] = m->remote[m->remotes++];
    }
    TRY(engine_create_together(&m->engine, all, replicas, err));
cleanup:
    return st;
}

snap_status local_limit_steps(local_model *m, double limit_s, snap_err *err) {
    char name[96];
    (void)snprintf(name, sizeof name, "%s%s%s", m->name, *m->name && m->split ? ": " : "",
                   m->split ? "rank 0" : "");
    snap_status st = watchdog_start(&m->dog, name, limit_s, split_end_program, err);
    runner_limit_steps(m->runner, m->dog);
    return st;
}

/* Makes the runner and the engine of replica @i. */
static snap_status make_engine(local_model *m, const char *dir, const local_options *opt,
                               const replica_devices *d, int i, snap_err *err) {
    snap_status st;
    bool cuda = text_equal(d->device, "cuda");
    runner_options r = {.threads = threads_of(opt, d, i),
                        .device = d->device,
                        .device_number = *replica_devices_of(d, i),
                        .precision = opt->precision ? opt->precision : "bf16"};
    int64_t longest = m->shape.max_position_embeddings;
    TRY(kv_format_parse(r.precision, &r.format, err));
    r.context = opt->context ? opt->context : LOCAL_CONTEXT;
    if (!opt->context && r.context > longest)
        r.context = longest;
    r.max_decode = opt->sequences ? opt->sequences : LOCAL_SEQUENCES;
    r.max_rows = r.max_decode + (opt->chunk ? opt->chunk : cuda ? LOCAL_CUDA_CHUNK : LOCAL_CHUNK);
    TRY(cache_pages(m, opt, &r, &r.pages, err));
    if (d->ranks.replicas > 1)
        r.pages += engine_padding_pages(&r);
    if (replica_devices_ranks(d) > 1)
        TRY(open_split(m, dir, opt, d, i, &r, err));
    TRY(runner_create(&m->runner, &m->weights, &r, err));
    if (m->split)
        TRY(split_wait(m->split, err));
    TRY(make_together(m, d->ranks.replicas, err));
    engine_recompute(m->engine, opt->recompute);
    if (cuda && replica_devices_count(d) > 1)
        TRY(local_limit_steps(m, LOCAL_STEP_LIMIT, err));
cleanup:
    if (st != SNAP_OK && m->split)
        split_fail(m->split, err);
    return st;
}

/* Names the replica and its devices: "replica 1 (cuda:2,3)". A long list is cut. */
static void name_replica(local_model *m, const replica_devices *d, int i) {
    char numbers[40] = "";
    size_t n = 0;
    bool cuda = text_equal(d->device, "cuda");
    for (int r = 0; cuda && r < replica_devices_ranks(d) && n < sizeof numbers - 1; r++)
        n += (size_t)snprintf(numbers + n, sizeof numbers - n, "%c%d", r ? ',' : ':',
                              replica_devices_of(d, i)[r]);
    (void)snprintf(m->name, sizeof m->name, "replica %d (%s%s)", i, cuda ? "cuda" : "cpu", numbers);
}

/* Makes a further replica, which borrows from @first what replicas share. */
static snap_status make_replica(local_model *m, const local_model *first, const char *dir,
                                const local_options *opt, const replica_devices *d, int i,
                                snap_err *err) {
    snap_status st;
    *m = *first;
    m->split = NULL;
    m->runner = NULL;
    m->remote = NULL;
    m->remotes = 0;
    m->engine = NULL;
    m->dog = NULL;
    m->encoder = NULL;
    m->more = NULL;
    m->borrows = true;
    m->replicas = 1;
    name_replica(m, d, i);
    TRY(tok_encoder_create(&m->encoder, m->tokenizer, err));
    TRY(make_engine(m, dir, opt, d, i, err));
cleanup:
    if (st != SNAP_OK)
        err_prefix(err, "%s", m->name);
    return st;
}

snap_status local_open(local_model *m, const char *dir, const local_options *given, snap_err *err) {
    snap_status st;
    kv_format format;
    local_options opt = *given;
    replica_devices d;
    *m = (local_model){.replicas = 1};
    TRY(replica_devices_parse(&d, given->device, given->layout, err));
    opt.device = d.device;
    TRY(kv_format_parse(opt.precision ? opt.precision : "bf16", &format, err));
    TRY(open_parts(m, dir, &opt, &d.ranks, err));
    TRY(choose_template(m, dir, &opt, err));
    collect_stops(m);
    if (d.n > 1)
        name_replica(m, &d, 0);
    TRY(make_engine(m, dir, &opt, &d, 0, err));
    if (d.n == 1)
        return SNAP_OK;
    m->more = calloc((size_t)d.n - 1, sizeof *m->more);
    if (!m->more)
        TRY(err_set(err, SNAP_E_NOMEM, "out of memory for %d replicas", d.n));
    for (int i = 1; i < d.n; i++) {
        m->replicas = i + 1;
        TRY(make_replica(local_replica(m, i), m, dir, &opt, &d, i, err));
    }
cleanup:
    return st;
}

static void close_replica(local_model *m) {
    watchdog_stop(m->dog);
    engine_free(m->engine);
    split_begin_close(m->split);
    for (int i = 0; i < m->remotes; i++)
        runner_free(m->remote[i]);
    free(m->remote);
    runner_free(m->runner);
    split_close(m->split);
    tok_encoder_free(m->encoder);
    if (m->borrows)
        return;
    tokenizer_free(m->tokenizer);
    weights_release(&m->weights);
    checkpoint_close(m->files);
}

void local_close(local_model *m) {
    for (int i = m->replicas - 1; i >= 0; i--)
        close_replica(local_replica(m, i));
    free(m->more);
    *m = (local_model){0};
}

const char *local_device_of(const char *device, int i) {
    return i || text_equal(device, "cuda") ? device : NULL;
}

snap_status local_prompt(local_model *m, const gen_message *messages, int n, tok_ids *ids,
                         snap_err *err) {
    snap_status st;
    buf text = {0};
    int flags = m->style.template == CHAT_NONE ? TOK_SPECIALS : 0;
    TRY(chat_render(&m->style, messages, n, &text, err));
    TRY(tok_encode(m->encoder, buf_str(&text), text.len, flags, ids, err));
cleanup:
    buf_release(&text);
    return st;
}

snap_status local_finish_error(const local_model *m, finish_reason why, int64_t tokens,
                               snap_err *err) {
    if (why == FINISH_NO_PAGES)
        return err_set(err, SNAP_E_NOMEM,
                       "the cache has too few pages for this sequence: make it larger");
    return why == FINISH_NOT_FINITE ? runner_not_finite(m->runner, tokens - 1, err) : SNAP_OK;
}
