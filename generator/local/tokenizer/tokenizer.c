#include "generator/local/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "generator/local/tokenizer/tokenizer_parts.h"

enum { kFileMax = 128 << 20, kConfigMax = 8 << 20 };

static tokenizer *tokenizer_new(snap_err *err) {
    tokenizer *t = calloc(1, sizeof *t);
    if (!t)
        (void)err_set(err, SNAP_E_NOMEM, "out of memory for a tokenizer");
    else
        t->bos = t->eos = t->unk = -1;
    return t;
}

/* Compiles the patterns for single_word, lstrip and rstrip. Rust's \w includes the joiners. */
static snap_status compile_edges(tokenizer *t, snap_err *err) {
    static const char word[] = "[\\w\\x{200C}\\x{200D}]", space[] = "\\s";
    snap_status st = regex_compile(&t->word_char, word, sizeof word - 1, err);
    return st == SNAP_OK ? regex_compile(&t->space_char, space, sizeof space - 1, err) : st;
}

/* ---- tokenizer_config.json ---- */

/* A token is given as its content, or as an object with a "content". */
static int32_t named_token(const tokenizer *t, const js *config, const char *key) {
    const char *s = js_get_str(config, key);
    if (!s)
        s = js_get_str(js_get_object(config, key), "content");
    return s ? vocab_find(&t->vocab, s, strlen(s)) : -1;
}

/* The Llama classes add bos and eos if the flags add_bos_token and add_eos_token say so, whatever
 * the template in tokenizer.json says. */
static void read_flags(tokenizer *t, const js *config) {
    const char *class = js_get_str(config, "tokenizer_class");
    if (!class || !text_starts(class, "LlamaTokenizer"))
        return;
    if (js_is_bool(js_get(config, "add_bos_token"))) {
        t->n_before = js_true(js_get(config, "add_bos_token")) && t->bos >= 0;
        t->before[0] = t->bos;
    }
    if (js_is_bool(js_get(config, "add_eos_token"))) {
        t->n_after = js_true(js_get(config, "add_eos_token")) && t->eos >= 0;
        t->after[0] = t->eos;
    }
}

static void read_config(tokenizer *t, const js *config) {
    t->bos = named_token(t, config, "bos_token");
    t->eos = named_token(t, config, "eos_token");
    read_flags(t, config);
}

/* *out = NULL if the file does not exist. Numbers are read as reals, because the transformers
 * library writes 1000000000000000019884624838656 for "model_max_length" if no length is set. */
static snap_status parse_config(js **out, const char *dir, snap_err *err) {
    char *path = fs_join(dir, "tokenizer_config.json");
    snap_status st = SNAP_OK;
    *out = NULL;
    if (!path)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a path");
    if (fs_exists(path) && !(*out = js_parse_file_as_reals(path, kConfigMax, err)))
        st = err && err->code ? err->code : SNAP_E_INPUT;
    free(path);
    return st;
}

/* ---- opening ---- */

static snap_status read_text(tokenizer *t, const char *text, size_t n, const char *name,
                             snap_err *err) {
    js *root = js_parse(text, n, name, err);
    if (!root)
        return err && err->code ? err->code : SNAP_E_INPUT;
    snap_status st = compile_edges(t, err);
    if (st == SNAP_OK)
        st = tokenizer_read_json(t, root, err);
    if (st != SNAP_OK)
        err_prefix(err, "%s", name);
    js_free(root);
    return st;
}

snap_status tokenizer_parse(tokenizer **out, const char *json, size_t n, const char *name,
                            snap_err *err) {
    *out = tokenizer_new(err);
    if (!*out)
        return SNAP_E_NOMEM;
    snap_status st = read_text(*out, json, n, name, err);
    if (st != SNAP_OK) {
        tokenizer_free(*out);
        *out = NULL;
    }
    return st;
}

/* Finds the tokenizer's file; tokenizer.json is preferred to tiktoken.model. */
static snap_status find_file(const char *dir, char **path, bool *tiktoken, snap_err *err) {
    static const char *const names[] = {"tokenizer.json", "tiktoken.model"};
    for (int i = 0; i < 2; i++) {
        *path = fs_join(dir, names[i]);
        *tiktoken = i == 1;
        if (!*path)
            return err_set(err, SNAP_E_NOMEM, "out of memory for a path");
        if (fs_exists(*path))
            return SNAP_OK;
        free(*path);
        *path = NULL;
    }
    return err_set(err, SNAP_E_IO, "'%s' has neither %s nor %s", dir, names[0], names[1]);
}

snap_status tokenizer_open(tokenizer **out, const char *dir, snap_err *err) {
    snap_status st = SNAP_OK;
    buf text = {.limit = kFileMax};
    char *path = NULL;
    js *config = NULL;
    bool tiktoken;
    tokenizer *t = tokenizer_new(err);
    *out = NULL;
    if (!t)
        return SNAP_E_NOMEM;
    TRY(find_file(dir, &path, &tiktoken, err));
    TRY(fs_read_regular(path, &text, err));
    TRY(parse_config(&config, dir, err));
    if (tiktoken)
        TRY(tokenizer_read_tiktoken(t, buf_str(&text), text.len, path, config, err));
    else
        TRY(read_text(t, buf_str(&text), text.len, path, err));
    if (config)
        read_config(t, config);
    *out = t;
    t = NULL;
cleanup:
    tokenizer_free(t);
    js_free(config);
    buf_release(&text);
    free(path);
    return st;
}

void tokenizer_free(tokenizer *t) {
    if (!t)
        return;
    vocab_release(&t->vocab);
    added_release(&t->added_raw);
    added_release(&t->added_normal);
    normalizer_release(&t->normal);
    splitter_release(&t->split);
    bpe_release(&t->merges);
    regex_free(t->word_char);
    regex_free(t->space_char);
    arena_release(&t->mem);
    free(t);
}

/* ---- properties of a tokenizer ---- */

int32_t tokenizer_size(const tokenizer *t) {
    return t->vocab.n;
}

const char *tokenizer_content(const tokenizer *t, int32_t id) {
    const vocab_token *v = vocab_at(&t->vocab, id);
    return v ? v->s : NULL;
}

int32_t tokenizer_bos(const tokenizer *t) {
    return t->bos;
}

int32_t tokenizer_eos(const tokenizer *t) {
    return t->eos;
}
