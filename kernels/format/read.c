/* read.c - a format from JSON. docs/formats.md describes the fields. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "kernels/format/layout.h"

enum { kWhere = 320 };

/* An object of the file, with the words that messages begin with: "FILE" or "FILE: content". */
typedef struct {
    const js *o;
    const char *where;
} place;

typedef const char *const *names;

/* ---- fields ---------------------------------------------------------------------------------- */

static snap_status check_keys(place p, names known, snap_err *err) {
    for (void *it = js_first(p.o); it; it = js_next(p.o, it)) {
        names k = known;
        while (*k && strcmp(*k, js_key(it)) != 0)
            k++;
        char hint[NEAREST_HINT];
        if (!*k)
            return err_set(err, SNAP_E_INPUT, "%s: unknown key '%.100s'%s", p.where, js_key(it),
                           nearest_hint(js_key(it), known, "", hint));
        if (js_is_null(js_value(it)))
            return err_set(err, SNAP_E_INPUT, "%s: '%s' is null: give a value or leave it out",
                           p.where, js_key(it));
    }
    return SNAP_OK;
}

/* Reads an integer within bounds. If it is absent, *out stays. */
static snap_status read_int(place p, const char *key, int64_t min, int64_t max, int64_t *out,
                            snap_err *err) {
    if (!js_has(p.o, key))
        return SNAP_OK;
    snap_status st = js_need_int(p.o, key, out, p.where, err);
    if (st == SNAP_OK && (*out < min || *out > max))
        st = err_set(err, SNAP_E_INPUT, "%s: '%s' must be %lld..%lld, not %lld", p.where, key,
                     (long long)min, (long long)max, (long long)*out);
    return st;
}

static snap_status read_float(place p, const char *key, float *out, snap_err *err) {
    double x = (double)*out;
    if (!js_has(p.o, key))
        return SNAP_OK;
    snap_status st = js_need_num(p.o, key, &x, p.where, err);
    *out = (float)x;
    if (st == SNAP_OK && !(x >= 0.0 && isfinite(*out)))
        st = err_set(err, SNAP_E_INPUT, "%s: '%s' must be a number from 0 to 3.4e38", p.where, key);
    return st;
}

static snap_status read_bool(place p, const char *key, bool *out, snap_err *err) {
    const js *v = js_get(p.o, key);
    *out = js_true(v);
    return !v || js_is_bool(v)
               ? SNAP_OK
               : err_set(err, SNAP_E_INPUT, "%s: '%s' must be true or false", p.where, key);
}

/* Reads one of some words as its index. If it is absent, *out stays. */
static snap_status read_word(place p, const char *key, names words, int *out, snap_err *err) {
    const char *text;
    char hint[NEAREST_HINT];
    if (!js_has(p.o, key))
        return SNAP_OK;
    snap_status st = js_need_str(p.o, key, &text, p.where, err);
    if (st != SNAP_OK)
        return st;
    for (int i = 0; words[i]; i++)
        if (strcmp(text, words[i]) == 0 && strlen(text) == js_str_len(js_get(p.o, key))) {
            *out = i;
            return SNAP_OK;
        }
    return err_set(err, SNAP_E_INPUT, "%s: unknown %s '%.60s'%s", p.where, key, text,
                   nearest_hint(text, words, "", hint));
}

static snap_status need_type(place p, element_type *out, snap_err *err) {
    const char *words[ELEMENT_TYPES + 1] = {0};
    const char *text;
    int type = 0;
    for (int t = 0; t < ELEMENT_TYPES; t++)
        words[t] = element_name((element_type)t);
    snap_status st = js_need_str(p.o, "type", &text, p.where, err);
    if (st == SNAP_OK)
        st = read_word(p, "type", words, &type, err);
    *out = (element_type)type;
    return st;
}

static snap_status read_text(place p, const char *key, char *out, size_t size, snap_err *err) {
    const char *text;
    snap_status st = js_need_str(p.o, key, &text, p.where, err);
    if (st != SNAP_OK)
        return st;
    size_t n = strlen(text);
    if (n == 0 || n >= size || n != js_str_len(js_get(p.o, key)))
        return err_set(err, SNAP_E_INPUT, "%s: '%s' must have 1..%zu bytes", p.where, key,
                       size - 1);
    memcpy(out, text, n + 1);
    return SNAP_OK;
}

/* Opens a member that is an object. out->where, the text that messages about it begin with, is
 * written to @name. */
static snap_status inside(place p, const char *key, char name[kWhere], place *out, snap_err *err) {
    js *o = NULL;
    snap_status st = js_need_object(p.o, key, &o, p.where, err);
    (void)snprintf(name, kWhere, "%.200s%s%s", p.where, strstr(p.where, ": ") ? "." : ": ", key);
    *out = (place){o, name};
    return st;
}

/* ---- reading places and scales --------------------------------------------------------------- */

/* Reads offset and stride; -1 stands for an absent one. */
static snap_status read_place(place p, cache_plane *out, snap_err *err) {
    snap_status st = SNAP_OK;
    out->offset = out->stride = -1;
    TRY(read_int(p, "offset", 0, (int64_t)CACHE_MAX_STRIDE * CACHE_MAX_PAGE, &out->offset, err));
    TRY(read_int(p, "stride", 0, CACHE_MAX_STRIDE, &out->stride, err));
cleanup:
    return st;
}

static snap_status read_columns(place p, cache_plane *out, int columns, snap_err *err) {
    int64_t n = columns;
    snap_status st = read_int(p, "columns", 1, MLA_MAX_CONTENT, &n, err);
    if (st == SNAP_OK && n != columns)
        st = err_set(err, SNAP_E_SHAPE, "%s: the format has %lld columns, not %d", p.where,
                     (long long)n, columns);
    out->columns = columns;
    return st;
}

static snap_status read_own_scale(place p, cache_scale *s, int width, snap_err *err) {
    snap_status st = SNAP_OK;
    int64_t columns = width;
    int per = SCALE_PER_TOKEN, rounding = SCALE_EXACT;
    bool second = false;
    s->kind = SCALE_OWN;
    TRY(check_keys(p,
                   (const char *const[]){"type", "per", "columns", "rounding", "min",
                                         "tensor_scale", "offset", "stride", NULL},
                   err));
    TRY(need_type(p, &s->plane.type, err));
    TRY(read_word(p, "per", (const char *const[]){"token", "page", "tensor", NULL}, &per, err));
    TRY(read_word(p, "rounding", (const char *const[]){"exact", "pow2-up", "pow2-floor", NULL},
                  &rounding, err));
    TRY(read_int(p, "columns", 1, MLA_MAX_CONTENT, &columns, err));
    TRY(read_float(p, "min", &s->min, err));
    TRY(read_bool(p, "tensor_scale", &second, err));
    TRY(read_place(p, &s->plane, err));
    if (width % columns)
        TRY(err_set(err, SNAP_E_SHAPE, "%s: scales of %lld columns do not divide %d columns",
                    p.where, (long long)columns, width));
    s->per = (cache_scale_per)per;
    s->rounding = (cache_scale_rounding)rounding;
    s->columns = (int)columns;
    s->plane.columns = width / (int)columns;
    if (second)
        s->tensor = (cache_plane){.type = ELEMENT_FP32, .columns = 1, .offset = -1, .stride = -1};
cleanup:
    return st;
}

/* Reads the scale of a part: absent, "content" or "shared" (RoPE part only), {"fixed": number}, or
 * a stored scale. */
static snap_status read_scale(place part, cache_scale *s, int width, snap_err *err) {
    char name[kWhere];
    place p;
    snap_status st = SNAP_OK;
    s->columns = width;
    const js *v = js_get(part.o, "scale");
    if (!v)
        return SNAP_OK;
    if (js_is_str(v)) {
        int word = 0;
        st = read_word(part, "scale", (const char *const[]){"content", "shared", NULL}, &word, err);
        s->kind = word ? SCALE_SHARED : SCALE_CONTENT;
        return st;
    }
    TRY(inside(part, "scale", name, &p, err));
    if (!js_has(p.o, "fixed"))
        return read_own_scale(p, s, width, err);
    s->kind = SCALE_FIXED;
    TRY(check_keys(p, (const char *const[]){"fixed", NULL}, err));
    TRY(read_float(p, "fixed", &s->fixed, err));
cleanup:
    return st;
}

/* ---- reading content, RoPE part and attention ------------------------------------------------ */

static snap_status read_content(place file, cache_format *f, snap_err *err) {
    char name[kWhere], zero_name[kWhere];
    place p, zero;
    snap_status st = SNAP_OK;
    int64_t hadamard = 0;
    bool mean = false;
    cache_part *c = &f->content;
    TRY(inside(file, "content", name, &p, err));
    TRY(check_keys(p,
                   (const char *const[]){"type", "columns", "offset", "stride", "scale", "zero",
                                         "hadamard", "mean", NULL},
                   err));
    TRY(need_type(p, &c->plane.type, err));
    TRY(read_columns(p, &c->plane, f->d_c, err));
    TRY(read_place(p, &c->plane, err));
    TRY(read_scale(p, &c->scale, f->d_c, err));
    if (js_has(p.o, "zero")) {
        TRY(inside(p, "zero", zero_name, &zero, err));
        TRY(check_keys(zero, (const char *const[]){"offset", "stride", NULL}, err));
        c->zero = (cache_plane){.type = c->plane.type, .columns = c->scale.plane.columns};
        if (!c->zero.columns)
            TRY(err_set(err, SNAP_E_INPUT, "%s: a zero point needs a stored scale", zero.where));
        TRY(read_place(zero, &c->zero, err));
    }
    TRY(read_int(p, "hadamard", 2, MLA_MAX_CONTENT, &hadamard, err));
    TRY(read_bool(p, "mean", &mean, err));
    f->hadamard = (int)hadamard;
    if (mean)
        f->offset =
            (cache_plane){.type = ELEMENT_FP32, .columns = f->d_c, .offset = -1, .stride = -1};
cleanup:
    return st;
}

static snap_status read_rope(place file, cache_format *f, snap_err *err) {
    char name[kWhere];
    place p;
    snap_status st = SNAP_OK;
    TRY(inside(file, "rope", name, &p, err));
    TRY(check_keys(p, (const char *const[]){"type", "columns", "offset", "stride", "scale", NULL},
                   err));
    TRY(need_type(p, &f->rope.plane.type, err));
    TRY(read_columns(p, &f->rope.plane, f->d_r, err));
    TRY(read_place(p, &f->rope.plane, err));
    TRY(read_scale(p, &f->rope.scale, f->d_r, err));
cleanup:
    return st;
}

static snap_status read_attention(place file, cache_format *f, snap_err *err) {
    char name[kWhere];
    place p;
    snap_status st = SNAP_OK;
    int queries = QUERIES_BF16, pv = REF_P_BF16;
    if (js_has(file.o, "attention")) {
        TRY(inside(file, "attention", name, &p, err));
        TRY(check_keys(p, (const char *const[]){"queries", "probabilities", NULL}, err));
        TRY(read_word(p, "queries", (const char *const[]){"exact", "bf16", "format", NULL},
                      &queries, err));
        TRY(read_word(p, "probabilities", (const char *const[]){"exact", "bf16", "e4m3", NULL}, &pv,
                      err));
    }
    f->queries = (cache_queries)queries;
    f->pv = (ref_pv)pv;
cleanup:
    return st;
}

/* ---- the file -------------------------------------------------------------------------------- */

static snap_status read_name(place p, cache_format *f, snap_err *err) {
    snap_status st = read_text(p, "name", f->name, sizeof f->name, err);
    for (const char *c = f->name; *c && st == SNAP_OK; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
            st = err_set(err, SNAP_E_INPUT,
                         "%s: 'name' has letters, digits, '.', '_' and '-' only, not '%.60s'",
                         p.where, f->name);
    return st;
}

static snap_status read_file(place p, cache_format *f, snap_err *err) {
    snap_status st = SNAP_OK;
    int order = LAYOUT_PLANAR;
    int64_t tokens = MLA_PAGE, record = 0, page = 0;
    TRY(check_keys(p,
                   (const char *const[]){"name", "description", "page_tokens", "order",
                                         "token_bytes", "page_bytes", "content", "rope",
                                         "attention", NULL},
                   err));
    TRY(read_name(p, f, err));
    TRY(read_text(p, "description", f->description, sizeof f->description, err));
    TRY(read_int(p, "page_tokens", 1, CACHE_MAX_PAGE, &tokens, err));
    TRY(read_word(p, "order", (const char *const[]){"planar", "interleaved", "page", NULL}, &order,
                  err));
    TRY(read_int(p, "token_bytes", 1, CACHE_MAX_STRIDE, &record, err));
    TRY(read_int(p, "page_bytes", 1, (int64_t)CACHE_MAX_STRIDE * CACHE_MAX_PAGE, &page, err));
    if (record && order != LAYOUT_INTERLEAVED)
        TRY(err_set(err, SNAP_E_INPUT, "%s: 'token_bytes' needs \"order\": \"interleaved\"",
                    p.where));
    if (page && order == LAYOUT_PLANAR)
        TRY(err_set(err, SNAP_E_INPUT,
                    "%s: 'page_bytes' needs \"order\": \"interleaved\" or \"page\"", p.where));
    f->page_tokens = (int)tokens;
    TRY(read_content(p, f, err));
    TRY(read_rope(p, f, err));
    TRY(read_attention(p, f, err));
    layout_assign(f, (layout_order)order, record, page);
cleanup:
    return st;
}

snap_status cache_format_read(cache_format *out, const js *doc, const char *where, int d_c, int d_r,
                              snap_err *err) {
    snap_err found = {0};
    *out = (cache_format){.d_c = d_c, .d_r = d_r};
    if (d_c < 1 || d_c > MLA_MAX_CONTENT || d_r < 1 || d_r > MLA_MAX_ROPE)
        return err_set(err, SNAP_E_SHAPE, "a token has 1..%d + 1..%d columns, not %d + %d",
                       MLA_MAX_CONTENT, MLA_MAX_ROPE, d_c, d_r);
    if (!js_is_object(doc))
        return err_set(err, SNAP_E_INPUT, "%s: a cache format is a JSON object", where);
    snap_status st = read_file((place){doc, where}, out, err);
    if (st == SNAP_OK) {
        st = cache_format_check(out, &found);
        if (st != SNAP_OK)
            (void)err_set(err, st, "%s: %s", where, found.text);
    }
    return st;
}
