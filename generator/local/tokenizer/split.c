#include "generator/local/tokenizer/split.h"

#include <string.h>

#include "generator/local/tokenizer/unicode_age.h"

/* One pass through the chain. */
typedef struct {
    const splitter *sp;
    split_work *w;
    split_fn fn;
    void *ctx;
    bool new_characters; /* the text has characters that are newer than the regex library */
} walk;

static snap_status from_step(const walk *k, int step, const char *s, size_t n, bool first,
                             snap_err *err);

/* ---- cutting a text into pieces ---- */

/* A piece that may still be joined with what follows. */
typedef struct {
    size_t start, end;
    bool match, open;
} pending;

static bool joins(split_behavior behavior, bool previous, bool match) {
    switch (behavior) {
    case SPLIT_CONTIGUOUS:
        return match == previous;
    case SPLIT_WITH_PREVIOUS:
        return match && !previous;
    case SPLIT_WITH_NEXT:
        return previous && !match;
    default:
        return false;
    }
}

typedef struct {
    const walk *k;
    const split_step *step;
    int next; /* the following step */
    const char *s;
    bool first;
    pending held;
} cutter;

static snap_status cut_flush(cutter *c, snap_err *err) {
    pending *p = &c->held;
    bool drop = !p->open || p->start == p->end || (p->match && c->step->behavior == SPLIT_REMOVED);
    p->open = false;
    if (drop)
        return SNAP_OK;
    return from_step(c->k, c->next, c->s + p->start, p->end - p->start, c->first && p->start == 0,
                     err);
}

static snap_status cut_add(cutter *c, size_t start, size_t end, bool match, snap_err *err) {
    match ^= c->step->invert;
    if (c->held.open && joins(c->step->behavior, c->held.match, match)) {
        c->held.end = end;
        c->held.match = match;
        return SNAP_OK;
    }
    snap_status st = cut_flush(c, err);
    c->held = (pending){start, end, match, true};
    return st;
}

static size_t next_character(const char *s, size_t n, size_t at) {
    at++;
    while (at < n && ((unsigned char)s[at] & 0xC0) == 0x80)
        at++;
    return at;
}

static snap_status cut(const walk *k, int step, const char *s, size_t n, bool first,
                       snap_err *err) {
    cutter c = {.k = k, .step = &k->sp->steps[step], .next = step + 1, .s = s, .first = first};
    size_t done = 0, from = 0;
    bool found = true, any = false;
    snap_status st = SNAP_OK;
    const char *seen = s; /* the text that the pattern is matched against */
    if (k->new_characters) {
        buf *shadow = &k->w->text[step];
        unicode_age_shadow(s, n, shadow);
        TRY(buf_check(shadow, "a text", err));
        seen = buf_str(shadow);
    }
    while (from <= n) {
        regex_match m;
        TRY(regex_find(c.step->re, k->w->re, seen, n, from, &m, &found, err));
        if (!found)
            break;
        from = m.end;
        if (m.start == m.end && any && m.end == done) { /* an empty match directly after a match
                                                           doesn't count */
            from = next_character(s, n, from);
            continue;
        }
        if (m.start > done)
            TRY(cut_add(&c, done, m.start, false, err));
        TRY(cut_add(&c, m.start, m.end, true, err));
        done = m.end;
        any = true;
    }
    if (done < n)
        TRY(cut_add(&c, done, n, false, err));
    TRY(cut_flush(&c, err));
cleanup:
    return st;
}

/* ---- rewriting ---- */

static void replace_spaces(buf *out, const char *s, size_t n, const char *with) {
    for (const char *end = s + n; s < end;) {
        const char *space = memchr(s, ' ', (size_t)(end - s));
        (void)buf_append(out, s, (size_t)((space ? space : end) - s));
        if (space)
            (void)buf_puts(out, with);
        s = space ? space + 1 : end;
    }
}

static snap_status prefix(const walk *k, int step, const char *s, size_t n, bool first,
                          snap_err *err) {
    const split_step *p = &k->sp->steps[step];
    buf *out = &k->w->text[step];
    size_t len = strlen(p->replacement);
    bool has = (n >= len && memcmp(s, p->replacement, len) == 0) || (p->spaces && n && *s == ' ');
    buf_clear(out);
    if (p->prefix && !has && (first || !p->first_only))
        (void)buf_puts(out, p->replacement);
    if (p->spaces)
        replace_spaces(out, s, n, p->replacement);
    else
        (void)buf_append(out, s, n);
    snap_status st = buf_check(out, "a text", err);
    return st == SNAP_OK ? from_step(k, step + 1, buf_str(out), out->len, first, err) : st;
}

/* Runs the chain from @step on. The recursion is at most SPLIT_STEPS deep. */
static snap_status from_step(const walk *k, int step, const char *s, size_t n, bool first,
                             snap_err *err) {
    if (step == k->sp->n)
        return k->fn(k->ctx, s, n, err);
    if (k->sp->steps[step].kind == SPLIT_CUT)
        return cut(k, step, s, n, first, err);
    return prefix(k, step, s, n, first, err);
}

snap_status split_text(const splitter *sp, split_work *w, const char *s, size_t n, bool first,
                       split_fn fn, void *ctx, snap_err *err) {
    const walk k = {
        .sp = sp, .w = w, .fn = fn, .ctx = ctx, .new_characters = unicode_age_has_new(s, n)};
    return n ? from_step(&k, 0, s, n, first, err) : SNAP_OK;
}

void splitter_release(splitter *sp) {
    for (int i = 0; i < sp->n; i++)
        regex_free(sp->steps[i].re);
    *sp = (splitter){0};
}

void split_work_release(split_work *w) {
    for (int i = 0; i < SPLIT_STEPS; i++)
        buf_release(&w->text[i]);
}
