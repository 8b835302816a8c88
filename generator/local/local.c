#include "generator/local/local.h"

#include "base/text.h"
#include "generator/local/random_model.h"

/* Opens a model with random weights of the shape opt->random. With "cuda" only the outline of the
 * weights is made here; cuda_weights.cu fills them on the device. */
static snap_status make_random(local_model *m, const local_options *opt, snap_err *err) {
    snap_status st;
    m->shape = *opt->random;
    TRY(random_tokenizer(&m->tokenizer, m->shape.vocab_size, err));
    if (text_equal(opt->device, "cuda"))
        return weights_outline(&m->weights, &m->shape, err);
    TRY(random_checkpoint(&m->files, &m->shape, err));
    TRY(weights_bind(&m->weights, &m->shape, m->files, err));
cleanup:
    return st;
}

static snap_status open_files(local_model *m, const char *dir, snap_err *err) {
    snap_status st;
    TRY(model_shape_open(&m->shape, dir, err));
    TRY(checkpoint_open(&m->files, dir, err));
    TRY(weights_bind(&m->weights, &m->shape, m->files, err));
    TRY(tokenizer_open(&m->tokenizer, dir, err));
cleanup:
    return st;
}

static snap_status open_parts(local_model *m, const char *dir, const local_options *opt,
                              snap_err *err) {
    snap_status st;
    TRY(opt->random ? make_random(m, opt, err) : open_files(m, dir, err));
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
static snap_status cache_limit(bool cuda, int64_t *bytes, snap_err *err) {
    enum { kShare = 8 };
    snap_status st = SNAP_OK;
    mla_backend *be = NULL;
    mla_backend_info info;
    *bytes = LOCAL_CACHE;
    if (!cuda)
        return SNAP_OK;
    TRY(mla_backend_open(&be, "cuda", NULL, err));
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
        snap_status st = cache_limit(text_equal(opt->device, "cuda"), &bytes, err);
        if (st != SNAP_OK)
            return st;
        bytes = all < bytes ? all : bytes;
    }
    *pages = bytes / (token * MLA_PAGE * layers);
    return *pages > 0 ? SNAP_OK
                      : err_set(err, SNAP_E_NOMEM, "a cache of %lld bytes is smaller than one page",
                                (long long)bytes);
}

snap_status local_open(local_model *m, const char *dir, const local_options *opt, snap_err *err) {
    snap_status st;
    *m = (local_model){0};
    runner_options r = {.threads = opt->threads, .device = opt->device};
    bool cuda = text_equal(opt->device, "cuda");
    r.precision = opt->precision ? opt->precision : "bf16";
    TRY(kv_format_parse(r.precision, &r.format, err));
    TRY(open_parts(m, dir, opt, err));
    TRY(choose_template(m, dir, opt, err));
    collect_stops(m);
    int64_t longest = m->shape.max_position_embeddings;
    r.context = opt->context ? opt->context : LOCAL_CONTEXT;
    if (!opt->context && r.context > longest)
        r.context = longest;
    r.max_decode = opt->sequences ? opt->sequences : LOCAL_SEQUENCES;
    r.max_rows = r.max_decode + (opt->chunk ? opt->chunk : cuda ? LOCAL_CUDA_CHUNK : LOCAL_CHUNK);
    TRY(cache_pages(m, opt, &r, &r.pages, err));
    TRY(runner_create(&m->runner, &m->weights, &r, err));
    TRY(engine_create(&m->engine, m->runner, err));
    engine_recompute(m->engine, opt->recompute);
cleanup:
    return st;
}

void local_close(local_model *m) {
    engine_free(m->engine);
    runner_free(m->runner);
    tok_encoder_free(m->encoder);
    tokenizer_free(m->tokenizer);
    weights_release(&m->weights);
    checkpoint_close(m->files);
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
