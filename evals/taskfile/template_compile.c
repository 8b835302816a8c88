#include <string.h>

#include "base/text.h"
#include "evals/extract.h"
#include "evals/taskfile/template_parts.h"

typedef struct {
    const char *s;     /* what is not compiled yet */
    const char *place; /* where the placeholder that is being compiled begins */
    arena *mem;
    template *t;
    size_t list; /* index of the open list; TEMPLATE_PARTS: none */
    snap_err *err;
} compiler;

enum { kShown = 40 };

static snap_status bad(compiler *c, const char *why) {
    return err_set(c->err, SNAP_E_INPUT, "%s at '%.*s'", why, (int)strnlen(c->place, kShown),
                   c->place);
}

static snap_status no_memory(compiler *c) {
    return err_set(c->err, SNAP_E_NOMEM, "out of memory for a template");
}

static void skip_blanks(compiler *c) {
    while (*c->s == ' ' || *c->s == '\t' || *c->s == '\n')
        c->s++;
}

/* Reads 'text' into *out; '' inside stands for one quote. */
static snap_status read_quoted(compiler *c, const char **out) {
    buf text = {.limit = TEMPLATE_MAX};
    if (*c->s != '\'')
        return bad(c, "a text in single quotes is missing");
    for (c->s++; *c->s && (*c->s != '\'' || c->s[1] == '\''); c->s++) {
        c->s += *c->s == '\'';
        (void)buf_append(&text, c->s, 1);
    }
    *out = text.failed ? NULL : arena_strdup(c->mem, buf_str(&text));
    buf_release(&text);
    if (!*out)
        return no_memory(c);
    if (!*c->s)
        return bad(c, "a quoted text is not closed");
    c->s++;
    return SNAP_OK;
}

/* ---- names ---- */

static snap_status add_name(compiler *c, part *p, span name) {
    size_t n = 0;
    name = span_trim(name);
    if (!name.n || name.n > TEMPLATE_NAME_MAX)
        return bad(c, name.n ? "a name is too long" : "a name is missing");
    while (p->names[n])
        n++;
    if (n == TEMPLATE_NAMES)
        return bad(c, "too many alternatives");
    p->names[n] = arena_strndup(c->mem, name.s, name.n);
    return p->names[n] ? SNAP_OK : no_memory(c);
}

/* Reads "a or b or c", up to a filter or the end of the placeholder. */
static snap_status read_names(compiler *c, part *p) {
    const char *start = c->s;
    snap_status st = SNAP_OK;
    size_t n = strcspn(start, "|{}'");
    c->s += n;
    for (const char * or ; st == SNAP_OK && (or = memmem(start, n, " or ", 4));) {
        st = add_name(c, p, (span){start, (size_t)(or -start)});
        n -= (size_t)(or -start) + 4;
        start = or +4;
    }
    return st == SNAP_OK ? add_name(c, p, (span){start, n}) : st;
}

/* ---- filters ---- */

static bool is_word(span s, const char *word) {
    return s.n == strlen(word) && memcmp(s.s, word, s.n) == 0;
}

static snap_status read_filter(compiler *c, part *p) {
    skip_blanks(c);
    span word = {c->s, strspn(c->s, "abcdefghijklmnopqrstuvwxyz_")};
    c->s += word.n;
    skip_blanks(c);
    if (is_word(word, "optional"))
        p->optional = true;
    else if (p->kind == PART_LIST)
        return bad(c, "a list has no filter but 'optional'");
    else if (is_word(word, "after"))
        return read_quoted(c, &p->after);
    else if (is_word(word, "without"))
        return read_quoted(c, &p->without);
    else if (is_word(word, "trim"))
        p->trim = true;
    else if (is_word(word, "line"))
        p->line = true;
    else
        return bad(c, "unknown filter (after 'X', without 'X', trim, line, optional)");
    return SNAP_OK;
}

static snap_status read_filters(compiler *c, part *p) {
    snap_status st = SNAP_OK;
    skip_blanks(c);
    while (st == SNAP_OK && *c->s == '|') {
        c->s++;
        st = read_filter(c, p);
        skip_blanks(c);
    }
    return st;
}

/* ---- compiling the parts of a template ---- */

static snap_status add_part(compiler *c, part p) {
    if (c->t->n == TEMPLATE_PARTS)
        return err_set(c->err, SNAP_E_INPUT, "a template has more than %d parts", TEMPLATE_PARTS);
    c->t->parts[c->t->n++] = p;
    return SNAP_OK;
}

static snap_status open_list(compiler *c, part p) {
    if (c->list != TEMPLATE_PARTS)
        return bad(c, "a list inside a list");
    c->list = c->t->n;
    return add_part(c, p);
}

static snap_status close_list(compiler *c, part p) {
    part *open = c->list == TEMPLATE_PARTS ? NULL : &c->t->parts[c->list];
    if (!open)
        return bad(c, "the end of a list that was not begun");
    if (p.names[1] || strcmp(p.names[0], open->names[0]) != 0)
        return bad(c, "the end of another list than the one that was begun");
    open->end = c->t->n;
    c->list = TEMPLATE_PARTS;
    return add_part(c, p);
}

static snap_status close_braces(compiler *c) {
    skip_blanks(c);
    if (strncmp(c->s, "}}", 2) != 0)
        return bad(c, "a placeholder is not closed by '}}'");
    c->s += 2;
    return SNAP_OK;
}

static snap_status read_text(compiler *c, part *p) {
    p->kind = PART_TEXT;
    snap_status st = read_quoted(c, &p->text);
    if (st == SNAP_OK)
        st = close_braces(c);
    return st == SNAP_OK ? add_part(c, *p) : st;
}

/* Compiles a placeholder, from its "{{" to its "}}". */
static snap_status read_placeholder(compiler *c) {
    part p = {.kind = PART_VALUE};
    snap_status st;
    c->place = c->s;
    c->s += 2;
    skip_blanks(c);
    if (*c->s == '\'')
        return read_text(c, &p);
    if (*c->s == '#' || *c->s == '/')
        p.kind = *c->s++ == '#' ? PART_LIST : PART_END;
    TRY(read_names(c, &p));
    TRY(read_filters(c, &p));
    TRY(close_braces(c));
    if (p.kind == PART_LIST)
        TRY(open_list(c, p));
    else
        TRY(p.kind == PART_END ? close_list(c, p) : add_part(c, p));
cleanup:
    return st;
}

static snap_status read_plain(compiler *c) {
    const char *open = strstr(c->s, "{{");
    size_t n = open ? (size_t)(open - c->s) : strlen(c->s);
    const char *text = arena_strndup(c->mem, c->s, n);
    c->s += n;
    if (!n)
        return SNAP_OK;
    return text ? add_part(c, (part){.kind = PART_TEXT, .text = text}) : no_memory(c);
}

snap_status template_compile(const char *text, arena *mem, template **out, snap_err *err) {
    compiler c = {.s = text, .place = text, .mem = mem, .list = TEMPLATE_PARTS, .err = err};
    snap_status st = SNAP_OK;
    if (strlen(text) > TEMPLATE_MAX)
        return err_set(err, SNAP_E_INPUT, "a template of more than %d KiB", TEMPLATE_MAX >> 10);
    *out = c.t = arena_alloc(mem, 1, sizeof *c.t);
    if (c.t)
        c.t->parts = arena_alloc(mem, TEMPLATE_PARTS, sizeof *c.t->parts);
    if (!c.t || !c.t->parts)
        return no_memory(&c);
    while (st == SNAP_OK && *c.s) {
        st = read_plain(&c);
        if (st == SNAP_OK && *c.s)
            st = read_placeholder(&c);
    }
    if (st == SNAP_OK && c.list != TEMPLATE_PARTS)
        return err_set(err, SNAP_E_INPUT, "the list '{{#%s}}' is not closed",
                       c.t->parts[c.list].names[0]);
    return st;
}

bool template_uses(const template *t, const char *name) {
    for (size_t i = 0; i < t->n; i++)
        for (const char *const *n = t->parts[i].names; *n; n++)
            if (strcmp(*n, name) == 0)
                return true;
    return false;
}
