#include "evals/longtext/document.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

snap_status tokens_count(const token_counter *c, const char *text, size_t n, int64_t *out,
                         snap_err *err) {
    if (!c->encoder) {
        *out = (int64_t)ceil((double)n / c->chars_per_token);
        return SNAP_OK;
    }
    tok_ids ids = {0};
    snap_status st = tok_encode(c->encoder, text, n, TOK_PLAIN, &ids, err);
    *out = (int64_t)ids.n;
    tok_ids_release(&ids);
    return st;
}

snap_status document_add(document *d, double at, const char *text, snap_err *err) {
    if (d->n == d->cap) {
        size_t cap = d->cap ? 2 * d->cap : 32;
        document_statement *more = arena_alloc(d->mem, cap, sizeof *more);
        if (!more)
            return err_set(err, SNAP_E_NOMEM, "out of memory for a long text");
        if (d->n)
            memcpy(more, d->statements, d->n * sizeof *more);
        d->statements = more;
        d->cap = cap;
    }
    const char *copy = arena_strdup(d->mem, text);
    d->statements[d->n] = (document_statement){copy, at, d->n};
    d->n++;
    return copy ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a long text");
}

/* ---- filler ---- */

/* The units that were made so far. Unit i is text[ends[i-1] .. ends[i]). */
typedef struct {
    buf text;
    size_t *ends; /* [cap] */
    size_t n, cap;
} units;

static void units_release(units *u) {
    buf_release(&u->text);
    free(u->ends);
}

static snap_status units_reach(const document *d, units *u, size_t n, snap_err *err) {
    if (n > u->cap) {
        size_t cap = n + n / 4 + 64;
        size_t *more = realloc(u->ends, cap * sizeof *more);
        if (!more)
            return err_set(err, SNAP_E_NOMEM, "out of memory for a long text");
        u->ends = more;
        u->cap = cap;
    }
    for (; u->n < n; u->n++) {
        d->unit(d->ctx, &u->text);
        u->ends[u->n] = u->text.len;
    }
    return buf_check(&u->text, "a long text", err);
}

/* ---- the text with a number of units ---- */

static int by_place(const void *x, const void *y) {
    const document_statement *a = x, *b = y;
    if (a->at < b->at || a->at > b->at)
        return a->at < b->at ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static void put(const document *d, const char *text, size_t n, size_t *written, buf *out) {
    bool paragraph = d->paragraph && *written % (size_t)d->paragraph == 0;
    const char separator = paragraph || !*written ? '\n' : d->separator;
    (void)buf_append(out, &separator, 1);
    (void)buf_append(out, text, n);
    ++*written;
}

static snap_status compose(const document *d, units *u, size_t n, const char *padding,
                           const char *question, buf *out, snap_err *err) {
    snap_status st = units_reach(d, u, n, err);
    size_t next = 0, written = 0;
    if (st != SNAP_OK)
        return st;
    buf_clear(out);
    (void)buf_puts(out, d->heading);
    (void)buf_puts(out, padding);
    for (size_t i = 0; i <= n; i++) {
        for (; next < d->n && (size_t)(d->statements[next].at * (double)n + 0.5) <= i; next++)
            put(d, d->statements[next].text, strlen(d->statements[next].text), &written, out);
        size_t from = i ? u->ends[i - 1] : 0;
        if (i < n)
            put(d, u->text.data + from, u->ends[i] - from, &written, out);
    }
    if (question) {
        (void)buf_puts(out, "\n\n");
        (void)buf_puts(out, question);
    }
    return buf_check(out, "a long text", err);
}

/* ---- fitting a document to its length ---- */

typedef struct {
    const document *d;
    const token_counter *counter;
    const char *question;
    int64_t length;
    units u;
    buf padding, trial;
} fit;

static snap_status measure(fit *f, size_t n, int64_t *tokens, snap_err *err) {
    snap_status st = compose(f->d, &f->u, n, buf_str(&f->padding), f->question, &f->trial, err);
    return st == SNAP_OK ? tokens_count(f->counter, f->trial.data, f->trial.len, tokens, err) : st;
}

/* The mean tokens of a unit, from the first kSample units. */
static snap_status mean_tokens(fit *f, double *out, snap_err *err) {
    enum { kSample = 200 };
    int64_t tokens, bare;
    snap_status st;
    TRY(measure(f, 0, &bare, err));
    TRY(measure(f, kSample, &tokens, err));
    *out = fmax((double)(tokens - bare) / kSample, 0.5);
cleanup:
    return st;
}

/* The largest number of units with at most f->length tokens. The first estimate is nearly right.
 * Each further estimate adds units for the tokens that are missing. If that number of units is
 * known to be too large, the estimate is the middle of the range that is still open. */
static snap_status fit_units(fit *f, size_t *best, int64_t *tokens, snap_err *err) {
    enum { kRounds = 40 };
    double each;
    size_t n = 0, too_many = SIZE_MAX;
    int64_t now;
    snap_status st;
    *best = 0;
    TRY(measure(f, 0, tokens, err));
    if (*tokens > f->length)
        TRY(err_set(err, SNAP_E_INPUT,
                    "a length of %lld tokens is too small: what must be in the text and the "
                    "question have %lld",
                    (long long)f->length, (long long)*tokens));
    TRY(mean_tokens(f, &each, err));
    for (int round = 0; round < kRounds && *best + 1 < too_many; round++) {
        n = *best + (size_t)fmax((double)(f->length - *tokens) / each, 1);
        n = n < too_many ? n : *best + (too_many - *best) / 2;
        TRY(measure(f, n, &now, err));
        if (now > f->length) {
            too_many = n;
        } else {
            *best = n;
            *tokens = now;
        }
    }
cleanup:
    return st;
}

/* Counts the tokens of the first line together with the line end and one word after it. */
static snap_status count_heading(const fit *f, buf *line, int64_t *out, snap_err *err) {
    buf_clear(line);
    (void)buf_puts(line, f->d->heading);
    (void)buf_append(line, buf_str(&f->padding), f->padding.len);
    (void)buf_puts(line, "\nThe");
    snap_status st = buf_check(line, "a long text", err);
    return st == SNAP_OK ? tokens_count(f->counter, line->data, line->len, out, err) : st;
}

/* Words that pad() appends to the heading. Those of kShort are single tokens in most
 * vocabularies. */
static const char *const kTopics[] = {", the weather", ", old letters", ", boats",   ", bread",
                                      ", tools",       ", roads",       ", gardens", ", work"};
static const char *const kShort[] = {" and", " a", "."};
enum { TOPICS = sizeof kTopics / sizeof *kTopics, SHORTS = sizeof kShort / sizeof *kShort };

/* Appends words to the heading until it has @missing tokens more, or no word fits. */
static snap_status pad(fit *f, int64_t missing, snap_err *err) {
    enum { kMost = 300 };
    buf line = {0};
    int64_t before, now, with;
    bool added = true;
    snap_status st;
    TRY(count_heading(f, &line, &before, err));
    now = before;
    for (int i = 0; i < kMost && added && now - before < missing; i++) {
        size_t kept = f->padding.len;
        added = false;
        for (int k = 0; k <= SHORTS && !added; k++) {
            (void)buf_puts(&f->padding, k ? kShort[k - 1] : kTopics[i % TOPICS]);
            TRY(buf_check(&f->padding, "a long text", err));
            TRY(count_heading(f, &line, &with, err));
            added = with - before <= missing && (with > now || k == SHORTS);
            if (!added) {
                f->padding.len = kept;
                f->padding.data[kept] = '\0';
            }
        }
        now = added ? with : now;
    }
cleanup:
    buf_release(&line);
    return st;
}

snap_status document_write(document *d, int64_t length, const char *question,
                           const token_counter *counter, buf *out, int64_t *tokens, snap_err *err) {
    enum { kRounds = 3 };
    fit f = {.d = d, .counter = counter, .question = question, .length = length};
    size_t n = 0;
    snap_status st;
    if (d->n)
        qsort(d->statements, d->n, sizeof *d->statements, by_place);
    TRY(fit_units(&f, &n, tokens, err));
    for (int i = 0; i < kRounds && *tokens < length; i++) {
        TRY(pad(&f, length - *tokens, err));
        TRY(measure(&f, n, tokens, err));
    }
    while (*tokens > length && f.padding.len) { /* rounding, or tokens across the line end */
        f.padding.data[--f.padding.len] = '\0';
        TRY(measure(&f, n, tokens, err));
    }
    TRY(compose(d, &f.u, n, buf_str(&f.padding), NULL, out, err));
cleanup:
    units_release(&f.u);
    buf_release(&f.padding);
    buf_release(&f.trial);
    return st;
}
