#include "harness/record/schema.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/record/run.h"

/* State of one check: the schema, the path of the value that is being checked, the error to set. */
typedef struct {
    const schema *s;
    char path[400];
    snap_err *err; /* NULL while a branch of anyOf or a condition of if is tried */
} walk;

static bool check(walk *w, js *node, js *value);

/* ---- paths and messages ---- */

static bool refuse(const walk *w, const char *what) {
    (void)err_set(w->err, SNAP_E_INPUT, "%s%s%s", w->path, w->path[0] ? ": " : "", what);
    return false;
}

/* Appends a key to the path. Keys come from the file, so control characters are replaced to keep
 * the message one printable line. */
static size_t push_key(walk *w, const char *key) {
    size_t len = strlen(w->path);
    (void)snprintf(w->path + len, sizeof w->path - len, "%s%s", len ? "." : "", key);
    for (char *p = w->path + len; *p; p++)
        if (iscntrl((unsigned char)*p))
            *p = '?';
    return len;
}

static size_t push_index(walk *w, size_t i) {
    size_t len = strlen(w->path);
    (void)snprintf(w->path + len, sizeof w->path - len, "[%zu]", i);
    return len;
}

static bool refuse_key(walk *w, const char *key, const char *what) {
    size_t len = push_key(w, key);
    bool ok = refuse(w, what);
    w->path[len] = '\0';
    return ok;
}

/* ---- types ---- */

static const char *type_of(const js *v) {
    if (js_is_num(v)) /* JSON Schema counts 1.0 as an integer */
        return js_is_int(v) || floor(js_num(v)) == js_num(v) ? "integer" : "number";
    return js_type_name(v);
}

static bool is_type(const js *v, const char *type) {
    const char *is = type_of(v);
    return strcmp(is, type) == 0 || (strcmp(type, "number") == 0 && strcmp(is, "integer") == 0);
}

static bool equal(const js *a, const js *b) {
    if (js_is_num(a) && js_is_num(b))
        return js_is_int(a) && js_is_int(b) ? js_int(a) == js_int(b) : js_num(a) == js_num(b);
    return js_equal(a, b);
}

/* ---- keywords ---- */

typedef struct {
    js *node;  /* the object of the schema that has the keyword */
    js *arg;   /* the keyword's value */
    js *value; /* the value to check */
} rule;

static bool check_type(walk *w, const rule *r) {
    buf names = {0};
    bool ok = false;
    size_t n = js_is_array(r->arg) ? js_len(r->arg) : 1;
    for (size_t i = 0; i < n && !ok; i++) {
        const char *name = js_str(js_is_array(r->arg) ? js_at(r->arg, i) : r->arg);
        ok = is_type(r->value, name);
        (void)buf_printf(&names, "%s%s", i ? " or " : "must be ", name);
    }
    (void)buf_printf(&names, ", got %s", type_of(r->value));
    if (!ok)
        (void)refuse(w, buf_str(&names));
    buf_release(&names);
    return ok;
}

static bool check_const(walk *w, const rule *r) {
    if (equal(r->arg, r->value))
        return true;
    buf text = {0};
    (void)buf_puts(&text, "must be ");
    bool written = js_write(r->arg, JS_COMPACT, &text, NULL) == SNAP_OK;
    (void)refuse(w, written ? buf_str(&text) : "is another constant");
    buf_release(&text);
    return false;
}

static bool check_enum(walk *w, const rule *r) {
    for (size_t i = 0; i < js_len(r->arg); i++)
        if (equal(js_at(r->arg, i), r->value))
            return true;
    buf text = {0};
    (void)buf_puts(&text, "must be one of ");
    bool written = js_write(r->arg, JS_COMPACT, &text, NULL) == SNAP_OK;
    (void)refuse(w, written ? buf_str(&text) : "is none of the values allowed");
    buf_release(&text);
    return false;
}

static bool check_required(walk *w, const rule *r) {
    for (size_t i = 0; js_is_object(r->value) && i < js_len(r->arg); i++)
        if (!js_has(r->value, js_str(js_at(r->arg, i))))
            return refuse_key(w, js_str(js_at(r->arg, i)), "is missing");
    return true;
}

static bool check_properties(walk *w, const rule *r) {
    if (!js_is_object(r->value))
        return true;
    for (void *it = js_first(r->value); it; it = js_next(r->value, it)) {
        js *node = js_get_object(r->arg, js_key(it));
        if (!node)
            continue;
        size_t len = push_key(w, js_key(it));
        bool ok = check(w, node, js_value(it));
        w->path[len] = '\0';
        if (!ok)
            return false;
    }
    return true;
}

static bool check_additional(walk *w, const rule *r) {
    const js *known = js_get_object(r->node, "properties");
    if (js_true(r->arg) || w->s->open || !js_is_object(r->value))
        return true;
    for (void *it = js_first(r->value); it; it = js_next(r->value, it))
        if (!js_get_object(known, js_key(it)))
            return refuse_key(w, js_key(it), "is not a key of this version");
    return true;
}

static bool check_items(walk *w, const rule *r) {
    for (size_t i = 0; i < js_len(r->value); i++) {
        size_t len = push_index(w, i);
        bool ok = check(w, r->arg, js_at(r->value, i));
        w->path[len] = '\0';
        if (!ok)
            return false;
    }
    return true;
}

static bool check_bound(walk *w, const char *what, bool kept, const js *bound) {
    if (kept)
        return true;
    char text[80];
    (void)snprintf(text, sizeof text, "must %s %.17g", what, js_num(bound));
    return refuse(w, text);
}

static bool check_min_items(walk *w, const rule *r) {
    bool kept = !js_is_array(r->value) || (double)js_len(r->value) >= js_num(r->arg);
    return check_bound(w, "have a number of elements of at least", kept, r->arg);
}

static bool check_max_items(walk *w, const rule *r) {
    bool kept = !js_is_array(r->value) || (double)js_len(r->value) <= js_num(r->arg);
    return check_bound(w, "have a number of elements of at most", kept, r->arg);
}

/* A length counts code points: all bytes except the continuation bytes of UTF-8. */
static double length_of(const js *v) {
    size_t points = 0;
    for (const char *s = js_str(v); s && *s; s++)
        points += ((unsigned char)*s & 0xC0) != 0x80;
    return (double)points;
}

static bool check_min_length(walk *w, const rule *r) {
    bool kept = !js_is_str(r->value) || length_of(r->value) >= js_num(r->arg);
    return check_bound(w, "have a length of at least", kept, r->arg);
}

static bool check_max_length(walk *w, const rule *r) {
    bool kept = !js_is_str(r->value) || length_of(r->value) <= js_num(r->arg);
    return check_bound(w, "have a length of at most", kept, r->arg);
}

static bool check_minimum(walk *w, const rule *r) {
    return check_bound(w, "be at least", !js_is_num(r->value) || js_num(r->value) >= js_num(r->arg),
                       r->arg);
}

static bool check_maximum(walk *w, const rule *r) {
    return check_bound(w, "be at most", !js_is_num(r->value) || js_num(r->value) <= js_num(r->arg),
                       r->arg);
}

static bool check_above(walk *w, const rule *r) {
    return check_bound(w, "be above", !js_is_num(r->value) || js_num(r->value) > js_num(r->arg),
                       r->arg);
}

static bool matches(const walk *w, js *node, js *value) {
    walk silent = {.s = w->s};
    return check(&silent, node, value);
}

/* If no branch matches, the message is that of the first branch: in our schemas the last branch is
 * null. */
static bool check_any_of(walk *w, const rule *r) {
    for (size_t i = 0; i < js_len(r->arg); i++)
        if (matches(w, js_at(r->arg, i), r->value))
            return true;
    return check(w, js_at(r->arg, 0), r->value);
}

static bool check_all_of(walk *w, const rule *r) {
    bool ok = true;
    for (size_t i = 0; i < js_len(r->arg) && ok; i++)
        ok = check(w, js_at(r->arg, i), r->value);
    return ok;
}

static bool check_if(walk *w, const rule *r) {
    js *branch = js_get_object(r->node, matches(w, r->arg, r->value) ? "then" : "else");
    return !branch || check(w, branch, r->value);
}

/* The node that a pointer such as "#/a/b" names; NULL if there is none. */
static js *resolve(js *root, const char *pointer) {
    js *node = *pointer == '#' ? root : NULL;
    for (const char *p = pointer + 1; node && *p == '/';) {
        char key[64];
        size_t n = strcspn(++p, "/");
        (void)snprintf(key, sizeof key, "%.*s", (int)n, p);
        node = js_get_object(node, key);
        p += n;
    }
    return node;
}

static bool check_ref(walk *w, const rule *r) {
    js *target = resolve(w->s->root, js_str(r->arg));
    if (!target)
        SNAP_BUG("the schema refers to nothing");
    return check(w, target, r->value);
}

static bool annotation(walk *w, const rule *r) {
    (void)w, (void)r;
    return true;
}

static const struct {
    const char *name;
    bool (*fn)(walk *w, const rule *r);
} keywords[] = {
    {"type", check_type},
    {"const", check_const},
    {"enum", check_enum},
    {"required", check_required},
    {"properties", check_properties},
    {"additionalProperties", check_additional},
    {"items", check_items},
    {"minItems", check_min_items},
    {"maxItems", check_max_items},
    {"minLength", check_min_length},
    {"maxLength", check_max_length},
    {"minimum", check_minimum},
    {"maximum", check_maximum},
    {"exclusiveMinimum", check_above},
    {"anyOf", check_any_of},
    {"allOf", check_all_of},
    {"if", check_if},
    {"$ref", check_ref},
    {"then", annotation}, /* "then" and "else" are read by "if" */
    {"else", annotation},
    {"title", annotation},
    {"description", annotation},
    {"$schema", annotation},
    {"$defs", annotation},
    {"$comment", annotation},
};
static bool check_keyword(walk *w, const char *name, const rule *r) {
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strcmp(keywords[i].name, name) == 0)
            return keywords[i].fn(w, r);
    SNAP_BUG("the schema uses a keyword that schema.c does not know");
}

static bool check(walk *w, js *node, js *value) {
    bool ok = true;
    for (void *it = js_first(node); it && ok; it = js_next(node, it))
        ok = check_keyword(w, js_key(it), &(rule){node, js_value(it), value});
    return ok;
}

snap_status schema_check(const schema *s, const char *at, js *value, const char *path,
                         snap_err *err) {
    walk w = {.s = s, .err = err};
    (void)snprintf(w.path, sizeof w.path, "%s", path);
    js *node = resolve(s->root, at);
    if (!node)
        SNAP_BUG("no such part of the schema");
    return check(&w, node, value) ? SNAP_OK : SNAP_E_INPUT;
}

/* ---- the schema of result files ---- */

js *schema_of_results(snap_err *err) {
    js *root = record_schema(&run_type, "snapmla.run 1.0");
    if (!root)
        (void)err_set(err, SNAP_E_NOMEM, "out of memory for the schema of result files");
    return root;
}
