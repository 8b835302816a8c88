/* Reads tokenizer.json, part by part. A part of unknown type is an error that names it. */
#include <string.h>

#include "base/text.h"
#include "generator/local/tokenizer/tokenizer_parts.h"

static const char *type_of(const js *part) {
    const char *type = js_get_str(part, "type");
    return type ? type : "";
}

static snap_status unknown(const char *what, const js *part, snap_err *err) {
    return err_set(err, SNAP_E_UNSUPPORTED, "%s of type '%s' is not supported", what,
                   type_of(part));
}

/* Parts can be nested in a "Sequence". Calls @fn for each part that is not a sequence. */
typedef snap_status (*part_fn)(tokenizer *t, const js *part, snap_err *err);

static snap_status each_part(tokenizer *t, const js *part, const char *list, int depth, part_fn fn,
                             snap_err *err) {
    if (!part || js_is_null(part))
        return SNAP_OK;
    if (strcmp(type_of(part), "Sequence") != 0)
        return fn(t, part, err);
    if (depth == 0)
        return err_set(err, SNAP_E_INPUT, "%s: sequences are nested too deeply", list);
    js *parts;
    snap_status st = js_need_array(part, list, &parts, "a sequence", err);
    for (size_t i = 0; i < js_len(parts) && st == SNAP_OK; i++)
        st = each_part(t, js_at(parts, i), list, depth - 1, fn, err);
    return st;
}

/* Reads {"String": "x"} or {"Regex": "x"}. */
static snap_status read_pattern(const js *part, regex **out, snap_err *err) {
    const js *pattern = js_get_object(part, "pattern");
    size_t n;
    const char *s = js_get_strn(pattern, "Regex", &n);
    if (s)
        return regex_compile(out, s, n, err);
    s = js_get_strn(pattern, "String", &n);
    if (s && n)
        return regex_compile_literal(out, s, n, err);
    return err_set(err, SNAP_E_INPUT, "%s: 'pattern' must contain a String or a Regex",
                   type_of(part));
}

/* ---- normaliser ---- */

static snap_status read_form(tokenizer *t, const js *part, snap_err *err) {
    if (!form_available())
        return err_set(
            err, SNAP_E_UNSUPPORTED,
            "normalizer %s: this build has no utf8proc (install libutf8proc-dev and build "
            "again)",
            type_of(part));
    t->normal.steps[t->normal.n++].form = form_parse(type_of(part));
    return SNAP_OK;
}

static snap_status read_normalizer(tokenizer *t, const js *part, snap_err *err) {
    bool form = form_parse(type_of(part)) != FORM_NONE;
    bool prepend = strcmp(type_of(part), "Prepend") == 0;
    if (!form && !prepend && strcmp(type_of(part), "Replace") != 0)
        return unknown("a normalizer", part, err);
    if (t->normal.n == NORMALIZE_STEPS)
        return err_set(err, SNAP_E_UNSUPPORTED, "more than %d normalizers", NORMALIZE_STEPS);
    if (form)
        return read_form(t, part, err);
    size_t n;
    const char *with = js_get_strn(part, prepend ? "prepend" : "content", &n);
    char *copy = with ? arena_strndup(&t->mem, with, n) : NULL;
    if (!with)
        return err_set(err, SNAP_E_INPUT, "normalizer %s: its text is missing", type_of(part));
    if (!copy)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a normalizer");
    normalize_step *step = &t->normal.steps[t->normal.n++];
    *step = (normalize_step){.with = copy, .n = n};
    if (prepend)
        return SNAP_OK;
    snap_status st = read_pattern(part, &step->re, err);
    if (st == SNAP_OK && regex_may_be_empty(step->re))
        st =
            err_set(err, SNAP_E_UNSUPPORTED,
                    "normalizer Replace: a pattern that can match the empty text is not supported");
    return st;
}

/* ---- pre-tokenizer ---- */

/* GPT-2's pattern, which ByteLevel uses unless use_regex is false */
static const char kByteLevelRegex[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* Appends a step to the pre-tokenizer and returns it. NULL with SNAP_E_UNSUPPORTED if there are
 * SPLIT_STEPS already, or if ByteLevel, which must be the last one, came before. */
static split_step *new_step(tokenizer *t, snap_err *err) {
    if (t->split.n == SPLIT_STEPS)
        (void)err_set(err, SNAP_E_UNSUPPORTED, "more than %d pre-tokenizers", SPLIT_STEPS);
    else if (t->byte_level)
        (void)err_set(err, SNAP_E_UNSUPPORTED, "a pre-tokenizer after ByteLevel is not supported");
    else
        return &t->split.steps[t->split.n++];
    return NULL;
}

static snap_status read_behavior(const js *part, split_behavior *out, snap_err *err) {
    static const char *const names[] = {[SPLIT_ISOLATED] = "Isolated",
                                        [SPLIT_REMOVED] = "Removed",
                                        [SPLIT_CONTIGUOUS] = "Contiguous",
                                        [SPLIT_WITH_PREVIOUS] = "MergedWithPrevious",
                                        [SPLIT_WITH_NEXT] = "MergedWithNext"};
    const char *name = js_get_str(part, "behavior");
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (split_behavior)i;
            return SNAP_OK;
        }
    return err_set(err, SNAP_E_INPUT, "Split: unknown behavior '%s'", name ? name : "");
}

static snap_status read_split(tokenizer *t, const js *part, snap_err *err) {
    split_step *step = new_step(t, err);
    if (!step)
        return SNAP_E_UNSUPPORTED;
    step->invert = js_get_bool(part, "invert", false);
    snap_status st = read_behavior(part, &step->behavior, err);
    return st == SNAP_OK ? read_pattern(part, &step->re, err) : st;
}

static snap_status read_digits(tokenizer *t, const js *part, snap_err *err) {
    split_step *step = new_step(t, err);
    if (!step)
        return SNAP_E_UNSUPPORTED;
    step->behavior =
        js_get_bool(part, "individual_digits", false) ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS;
    return regex_compile(&step->re, "\\p{N}", 5, err);
}

static snap_status read_byte_level(tokenizer *t, const js *part, snap_err *err) {
    snap_status st = SNAP_OK;
    if (js_get_bool(part, "add_prefix_space", true)) {
        split_step *step = new_step(t, err);
        if (!step)
            return SNAP_E_UNSUPPORTED;
        *step = (split_step){.kind = SPLIT_PREFIX, .prefix = true, .replacement = " "};
    }
    if (js_get_bool(part, "use_regex", true)) {
        split_step *step = new_step(t, err);
        if (!step)
            return SNAP_E_UNSUPPORTED;
        st = regex_compile(&step->re, kByteLevelRegex, sizeof kByteLevelRegex - 1, err);
    }
    t->byte_level = true;
    return st;
}

static snap_status read_metaspace(tokenizer *t, const js *part, snap_err *err) {
    const char *with = js_get_str(part, "replacement"),
               *scheme = js_get_str(part, "prepend_scheme");
    split_step *step = new_step(t, err);
    if (!step)
        return SNAP_E_UNSUPPORTED;
    with = with ? with : "\xE2\x96\x81";
    scheme = scheme ? scheme : js_get_bool(part, "add_prefix_space", true) ? "always" : "never";
    if (!*with || strlen(with) >= sizeof step->replacement)
        return err_set(err, SNAP_E_INPUT, "Metaspace: '%.80s' is not one character", with);
    *step = (split_step){.kind = SPLIT_PREFIX,
                         .spaces = true,
                         .prefix = strcmp(scheme, "never") != 0,
                         .first_only = strcmp(scheme, "first") == 0};
    memcpy(step->replacement, with, strlen(with) + 1);
    if (!js_get_bool(part, "split", true))
        return SNAP_OK;
    step = new_step(t, err);
    if (!step)
        return SNAP_E_UNSUPPORTED;
    step->behavior = SPLIT_WITH_NEXT;
    return regex_compile_literal(&step->re, with, strlen(with), err);
}

static snap_status read_pre_tokenizer(tokenizer *t, const js *part, snap_err *err) {
    static const struct {
        const char *type;
        part_fn read;
    } known[] = {{"Split", read_split},
                 {"Digits", read_digits},
                 {"ByteLevel", read_byte_level},
                 {"Metaspace", read_metaspace}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(type_of(part), known[i].type) == 0)
            return known[i].read(t, part, err);
    return unknown("a pre_tokenizer", part, err);
}

/* ---- model ---- */

static snap_status read_vocab(tokenizer *t, js *words, snap_err *err) {
    for (void *it = js_first(words); it; it = js_next(words, it)) {
        const char *s = js_key(it);
        if (!js_is_int(js_value(it)))
            return err_set(err, SNAP_E_INPUT, "token '%.80s': its id must be an integer", s);
        snap_status st = vocab_add(&t->vocab, js_int(js_value(it)), s, strlen(s), false, err);
        if (st != SNAP_OK)
            return st;
    }
    return SNAP_OK;
}

/* Splits "left right", or ["left", "right"]. */
static bool merge_parts(const js *merge, const char **left, const char **right, size_t *n_left) {
    *left = js_str(merge);
    if (*left) {
        *right = strchr(*left, ' ');
        if (!*right || strchr(*right + 1, ' '))
            return false;
        *n_left = (size_t)(*right - *left);
        ++*right;
        return true;
    }
    *left = js_str(js_at(merge, 0));
    *right = js_str(js_at(merge, 1));
    *n_left = *left ? strlen(*left) : 0;
    return *left && *right && js_len(merge) == 2;
}

static snap_status read_merge(tokenizer *t, const js *merge, uint32_t rank, buf *both,
                              snap_err *err) {
    const char *left, *right;
    size_t n;
    if (!merge_parts(merge, &left, &right, &n))
        return err_set(err, SNAP_E_INPUT, "merge %u is not a pair of tokens", rank);
    buf_clear(both);
    (void)buf_append(both, left, n);
    (void)buf_puts(both, right);
    snap_status st = buf_check(both, "a merge", err);
    if (st != SNAP_OK)
        return st;
    int32_t a = vocab_find(&t->vocab, left, n), b = vocab_find(&t->vocab, right, strlen(right));
    int32_t made = vocab_find(&t->vocab, buf_str(both), both->len);
    if (a < 0 || b < 0 || made < 0)
        return err_set(err, SNAP_E_INPUT, "merge %u ('%.*s' and '%.80s'): the vocabulary lacks %s",
                       rank, (int)(n < 80 ? n : 80), left, right,
                       made < 0 ? "the merged token" : "one of the two tokens");
    bpe_add(&t->merges, a, b, rank, made);
    return SNAP_OK;
}

static snap_status read_merges(tokenizer *t, const js *merges, snap_err *err) {
    buf both = {0};
    snap_status st = bpe_reserve(&t->merges, js_len(merges), err);
    for (size_t i = 0; i < js_len(merges) && st == SNAP_OK; i++)
        st = read_merge(t, js_at(merges, i), (uint32_t)i, &both, err);
    buf_release(&both);
    return st;
}

static snap_status check_model(const js *model, snap_err *err) {
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const char *type = js_get_str(model, "type");
    if (type && strcmp(type, "BPE") != 0)
        return unknown("a model", model, err);
    for (size_t i = 0; i < 2; i++) {
        const char *affix = js_get_str(model, affixes[i]);
        if (affix && *affix)
            return err_set(err, SNAP_E_UNSUPPORTED, "model: '%s' is not supported", affixes[i]);
    }
    if (js_get_num(model, "dropout", 0) != 0)
        return err_set(err, SNAP_E_UNSUPPORTED, "model: 'dropout' is not supported");
    return SNAP_OK;
}

static snap_status read_model(tokenizer *t, const js *model, snap_err *err) {
    js *words, *merges;
    snap_status st = SNAP_OK;
    TRY(check_model(model, err));
    TRY(js_need_object(model, "vocab", &words, "model", err));
    TRY(js_need_array(model, "merges", &merges, "model", err));
    TRY(read_vocab(t, words, err));
    TRY(read_merges(t, merges, err));
    t->byte_fallback = js_get_bool(model, "byte_fallback", false);
    t->fuse_unk = js_get_bool(model, "fuse_unk", false);
    t->whole_pieces = js_get_bool(model, "ignore_merges", false);
    const char *unk = js_get_str(model, "unk_token");
    if (unk) {
        t->unk = vocab_find(&t->vocab, unk, strlen(unk));
        if (t->unk < 0)
            st = err_set(err, SNAP_E_INPUT, "model: the vocabulary lacks unk_token '%.80s'", unk);
    }
cleanup:
    return st;
}

/* ---- added tokens ---- */

static snap_status read_added(tokenizer *t, const js *token, regex_work *work, buf *content,
                              buf *spare, snap_err *err) {
    int64_t id;
    const char *s;
    size_t n;
    snap_status st = SNAP_OK;
    TRY(js_need_int(token, "id", &id, "an added token", err));
    TRY(js_need_str(token, "content", &s, "an added token", err));
    (void)js_get_strn(token, "content", &n);
    bool special = js_get_bool(token, "special", false);
    TRY(vocab_add(&t->vocab, id, s, n, special, err));
    added_token a = {.id = (int32_t)id,
                     .single_word = js_get_bool(token, "single_word", false),
                     .lstrip = js_get_bool(token, "lstrip", false),
                     .rstrip = js_get_bool(token, "rstrip", false),
                     .special = special};
    if (!js_get_bool(token, "normalized", !special)) {
        TRY(added_insert(&t->added_raw, s, n, a, err));
        return SNAP_OK;
    }
    TRY(normalize_text(&t->normal, work, s, n, content, spare, err));
    TRY(added_insert(&t->added_normal, buf_str(content), content->len, a, err));
cleanup:
    return st;
}

static snap_status read_all_added(tokenizer *t, const js *tokens, snap_err *err) {
    buf content = {0}, spare = {0};
    regex_work *work = regex_work_new();
    snap_status st = work ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for tokens");
    for (size_t i = 0; i < js_len(tokens) && st == SNAP_OK; i++)
        st = read_added(t, js_at(tokens, i), work, &content, &spare, err);
    regex_work_free(work);
    buf_release(&content);
    buf_release(&spare);
    return st;
}

/* ---- decoder ---- */

enum { kReplacements = 8 };

typedef struct {
    tok_replacement replace[kReplacements];
    int n;
    bool bytes, fallback, fused;
    int strip;
} decoder;

static snap_status decoder_replace(decoder *d, const js *part, snap_err *err) {
    const char *from = js_get_str(js_get_object(part, "pattern"), "String");
    const char *to = js_get_str(part, "content");
    if (!from || !*from || !to)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "a Replace decoder needs a non-empty String and a content");
    if (d->n == kReplacements || d->fallback || d->fused)
        return err_set(err, SNAP_E_UNSUPPORTED, "a Replace decoder is not supported in this place");
    d->replace[d->n++] = (tok_replacement){from, to};
    return SNAP_OK;
}

static snap_status decoder_strip(decoder *d, const js *part, snap_err *err) {
    const char *content = js_get_str(part, "content");
    int64_t start = js_get_int(part, "start", 0);
    if (!d->fused || !content || strcmp(content, " ") != 0 || start < 0 || start > 1024 ||
        js_get_int(part, "stop", 0) != 0)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "a Strip decoder may only remove spaces at the start of a text");
    d->strip += (int)start;
    return SNAP_OK;
}

static snap_status decoder_part(decoder *d, const js *part, snap_err *err) {
    const char *type = type_of(part);
    if (strcmp(type, "Replace") == 0)
        return decoder_replace(d, part, err);
    if (strcmp(type, "Strip") == 0)
        return decoder_strip(d, part, err);
    if (strcmp(type, "ByteLevel") == 0 && !d->fallback && !d->fused)
        d->bytes = true;
    else if (strcmp(type, "ByteFallback") == 0 && !d->bytes && !d->fused)
        d->fallback = true;
    else if (strcmp(type, "Fuse") == 0)
        d->fused = true;
    else
        return unknown("a decoder", part, err);
    return SNAP_OK;
}

static snap_status read_decoder(tokenizer *t, const js *part, snap_err *err) {
    decoder d = {0};
    js *parts = js_get_array(part, "decoders");
    snap_status st = SNAP_OK;
    if (strcmp(type_of(part), "Sequence") != 0)
        st = decoder_part(&d, part, err);
    for (size_t i = 0; i < js_len(parts) && st == SNAP_OK; i++)
        st = decoder_part(&d, js_at(parts, i), err);
    if (st != SNAP_OK)
        return st;
    if (d.bytes == d.fallback)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "the decoder is neither ByteLevel nor ByteFallback");
    t->decode = d.bytes ? DECODE_BYTES : DECODE_FALLBACK;
    t->strip = d.strip;
    return tokenizer_make_texts(t, d.replace, d.n, err);
}

/* ---- post-processor: special tokens around a text ---- */

static snap_status put_around(tokenizer *t, bool after, int64_t id, snap_err *err) {
    int *n = after ? &t->n_after : &t->n_before;
    if (*n == TOK_AROUND || id < 0 || id >= VOCAB_MAX_ID)
        return err_set(err, SNAP_E_INPUT,
                       "the template has too many special tokens, or the invalid id %lld",
                       (long long)id);
    (after ? t->after : t->before)[(*n)++] = (int32_t)id;
    return SNAP_OK;
}

static snap_status read_template_item(tokenizer *t, const js *specials, const js *item, bool *after,
                                      snap_err *err) {
    const js *special = js_get_object(item, "SpecialToken");
    if (!special) {
        *after = js_get_object(item, "Sequence") != NULL;
        return SNAP_OK;
    }
    const char *name = js_get_str(special, "id");
    const js *ids = name ? js_get_array(js_get_object(specials, name), "ids") : NULL;
    if (!ids)
        return err_set(err, SNAP_E_INPUT, "the template uses '%.80s' without defining it",
                       name ? name : "");
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < js_len(ids) && st == SNAP_OK; i++)
        st = put_around(t, *after, js_int(js_at(ids, i)), err);
    return st;
}

static snap_status read_post_processor(tokenizer *t, const js *part, snap_err *err) {
    if (strcmp(type_of(part), "ByteLevel") == 0)
        return SNAP_OK; /* only changes offsets */
    if (strcmp(type_of(part), "TemplateProcessing") != 0)
        return unknown("a post_processor", part, err);
    js *items;
    bool after = false;
    snap_status st = js_need_array(part, "single", &items, "TemplateProcessing", err);
    for (size_t i = 0; i < js_len(items) && st == SNAP_OK; i++)
        st = read_template_item(t, js_get_object(part, "special_tokens"), js_at(items, i), &after,
                                err);
    return st;
}

snap_status tokenizer_read_json(tokenizer *t, const js *root, snap_err *err) {
    enum { kDepth = 8 };
    js *model, *decoder_of;
    snap_status st = SNAP_OK;
    TRY(js_need_object(root, "model", &model, "the tokenizer", err));
    TRY(js_need_object(root, "decoder", &decoder_of, "the tokenizer", err));
    TRY(read_model(t, model, err));
    TRY(each_part(t, js_get(root, "normalizer"), "normalizers", kDepth, read_normalizer, err));
    TRY(read_all_added(t, js_get_array(root, "added_tokens"), err));
    TRY(each_part(t, js_get(root, "pre_tokenizer"), "pretokenizers", kDepth, read_pre_tokenizer,
                  err));
    TRY(each_part(t, js_get(root, "post_processor"), "processors", kDepth, read_post_processor,
                  err));
    tokenizer_find_bytes(t);
    TRY(read_decoder(t, decoder_of, err));
cleanup:
    return st;
}
