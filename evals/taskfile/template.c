#include "evals/taskfile/template.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/text.h"
#include "evals/extract.h"
#include "evals/taskfile/template_parts.h"

/* ---- the fields of a row ---- */

static js *step_into(const js *v, const char *name, size_t n) {
    char key[TEMPLATE_NAME_MAX + 1];
    int64_t i;
    if (n >= sizeof key)
        return NULL;
    memcpy(key, name, n);
    key[n] = '\0';
    if (js_is_array(v))
        return text_to_int(key, &i) && i >= 0 ? js_at(v, (size_t)i) : NULL;
    return js_get(v, key);
}

js *row_field(const js *row, const char *name) {
    js *whole = js_get(row, name);
    if (whole)
        return whole;
    for (const char *dot; row && (dot = strchr(name, '.')); name = dot + 1)
        row = step_into(row, name, (size_t)(dot - name));
    return row ? step_into(row, name, strlen(name)) : NULL;
}

const char *value_text(const js *value, char number[TEMPLATE_NUMBER_MAX]) {
    const char *s = js_str(value);
    if (s)
        return strlen(s) == js_str_len(value) && !text_is_blank(s, strlen(s)) ? s : NULL;
    if (js_is_bool(value))
        return js_true(value) ? "true" : "false";
    if (!js_is_num(value))
        return NULL;
    if (js_is_int(value))
        (void)snprintf(number, TEMPLATE_NUMBER_MAX, "%lld", (long long)js_int(value));
    else
        (void)snprintf(number, TEMPLATE_NUMBER_MAX, "%.15g", js_num(value));
    return number;
}

enum { kFields = 256 };

/* The name of a field of the row that is similar to @name; NULL if there is none. */
static const char *similar_field(const js *row, const char *name) {
    const char *names[kFields + 1];
    size_t n = 0;
    for (void *it = js_first(row); it && n < kFields; it = js_next(row, it))
        if (strcmp(js_key(it), name) != 0)
            names[n++] = js_key(it);
    names[n] = NULL;
    return nearest_name(name, names);
}

snap_status row_lacks(const js *row, const char *const *names, const char *where, snap_err *err) {
    char list[300];
    size_t n = 0;
    const char *similar = similar_field(row, names[0]);
    for (size_t i = 0; names[i] && n < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s'%.60s'", i ? " or " : "", names[i]);
    return err_set(err, SNAP_E_INPUT, "%s: needs a text or number %s%s%.60s%s", where, list,
                   similar ? " (did you mean '" : "", similar ? similar : "", similar ? "'?)" : "");
}

/* ---- rendering ---- */

typedef struct {
    const template *t;
    const template_values *values;
    buf *out;
    const char *where;
    const js *item; /* the element of the open list; NULL: no list is open */
    size_t index;
} renderer;

static const char *item_text(const renderer *r, const char *name,
                             char number[TEMPLATE_NUMBER_MAX]) {
    if (strcmp(name, "item") == 0) {
        const char *s = js_str(r->item); /* may be blank */
        return s && strlen(s) == js_str_len(r->item) ? s : value_text(r->item, number);
    }
    if (text_starts(name, "item."))
        return value_text(row_field(r->item, name + strlen("item.")), number);
    if (strcmp(name, "number") == 0)
        (void)snprintf(number, TEMPLATE_NUMBER_MAX, "%zu", r->index + 1);
    else if (strcmp(name, "letter") == 0)
        (void)snprintf(number, TEMPLATE_NUMBER_MAX, "%c",
                       r->index < 26 ? (char)('A' + r->index) : '?');
    else
        return NULL;
    return number;
}

static const char *named(const renderer *r, const char *name, char number[TEMPLATE_NUMBER_MAX]) {
    const template_values *v = r->values;
    const char *own = r->item ? item_text(r, name, number) : NULL;
    if (own)
        return own;
    if (v->examples && strcmp(name, "examples") == 0)
        return v->examples;
    if (v->gold && strcmp(name, "gold") == 0)
        return v->gold;
    return value_text(row_field(v->row, name), number);
}

/* The text of a placeholder before its filters. If the row has none, it is "" for an optional
 * placeholder, and NULL for others. */
static const char *value_of(const renderer *r, const part *p, char number[TEMPLATE_NUMBER_MAX]) {
    const char *text = NULL;
    for (size_t i = 0; p->names[i] && !text; i++)
        text = named(r, p->names[i], number);
    return text || !p->optional ? text : "";
}

static span filtered(const part *p, const char *text) {
    const char *next;
    for (; p->after && p->after[0] && (next = strstr(text, p->after));)
        text = next + strlen(p->after);
    if (p->without && text_starts(text, p->without))
        text += strlen(p->without);
    span s = {text, strlen(text)};
    return p->trim ? span_trim(s) : s;
}

static snap_status put_value(renderer *r, const part *p, snap_err *err) {
    char number[TEMPLATE_NUMBER_MAX];
    const char *text = value_of(r, p, number);
    if (!text)
        return row_lacks(r->values->row, p->names, r->where, err);
    span s = filtered(p, text);
    (void)buf_append(r->out, s.s, s.n);
    if (p->line && (!s.n || s.s[s.n - 1] != '\n'))
        (void)buf_puts(r->out, "\n");
    return SNAP_OK;
}

/* The value of a list; NULL if the row has none. */
static const js *list_of(const renderer *r, const part *p) {
    const js *v = NULL;
    for (size_t i = 0; p->names[i] && !v; i++)
        v = r->values->choices && strcmp(p->names[i], "choices") == 0
                ? r->values->choices
                : row_field(r->values->row, p->names[i]);
    return v;
}

static bool is_filled(const js *list) {
    char number[TEMPLATE_NUMBER_MAX];
    return js_is_array(list) ? js_len(list) > 0 : value_text(list, number) != NULL;
}

static snap_status put_parts(renderer *r, size_t from, size_t to, snap_err *err);

static snap_status put_list(renderer *r, size_t at, snap_err *err) {
    const part *p = &r->t->parts[at];
    const js *list = list_of(r, p);
    snap_status st = SNAP_OK;
    char number[TEMPLATE_NUMBER_MAX];
    if (!is_filled(list))
        return p->optional ? SNAP_OK
                           : err_set(err, SNAP_E_INPUT, "%s: needs a list or text '%s'", r->where,
                                     p->names[0]);
    size_t n = js_is_array(list) ? js_len(list) : 1;
    for (r->index = 0; r->index < n && st == SNAP_OK && !r->out->failed; r->index++) {
        r->item = js_is_array(list) ? js_at(list, r->index) : list;
        if (!js_str(r->item) && !js_is_object(r->item) && !value_text(r->item, number))
            st = err_set(err, SNAP_E_INPUT, "%s: element %zu of '%s' is neither text nor object",
                         r->where, r->index + 1, p->names[0]);
        else
            st = put_parts(r, at + 1, p->end, err);
    }
    r->item = NULL;
    return st;
}

static snap_status put_parts(renderer *r, size_t from, size_t to, snap_err *err) {
    snap_status st = SNAP_OK;
    for (size_t i = from; i < to && st == SNAP_OK; i++) {
        const part *p = &r->t->parts[i];
        if (p->kind == PART_TEXT)
            (void)buf_puts(r->out, p->text);
        else if (p->kind == PART_VALUE)
            st = put_value(r, p, err);
        else if (p->kind == PART_LIST) {
            st = put_list(r, i, err);
            i = p->end;
        }
    }
    return st;
}

snap_status template_render(const template *t, const template_values *values, buf *out,
                            const char *where, snap_err *err) {
    renderer r = {.t = t, .values = values, .out = out, .where = where};
    out->limit = TEMPLATE_OUTPUT_MAX;
    snap_status st = put_parts(&r, 0, t->n, err);
    if (st == SNAP_OK && out->too_long)
        return err_set(err, SNAP_E_INPUT, "%s: a text of more than %d MiB", where,
                       TEMPLATE_OUTPUT_MAX >> 20);
    return st == SNAP_OK ? buf_check(out, where, err) : st;
}

const char *const *template_lacks(const template *t, const template_values *values) {
    renderer r = {.t = t, .values = values};
    char number[TEMPLATE_NUMBER_MAX];
    for (size_t i = 0; i < t->n; i++) {
        const part *p = &t->parts[i];
        if (p->kind == PART_LIST) {
            if (!p->optional && !is_filled(list_of(&r, p)))
                return p->names;
            i = p->end; /* skips the names inside the list, which may be members of its elements */
        } else if (p->kind == PART_VALUE && !value_of(&r, p, number)) {
            return p->names;
        }
    }
    return NULL;
}
