/* document.h - a text of an exact length in tokens: filler with statements at chosen places. */
#ifndef SNAPMLA_EVALS_LONGTEXT_DOCUMENT_H
#define SNAPMLA_EVALS_LONGTEXT_DOCUMENT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/rng.h"
#include "generator/local/tokenizer/tokenizer.h"

/* Counts the tokens of a text. With a tokenizer the count is exact. Without one it is the number of
 * bytes divided by @chars_per_token, rounded up: all texts of longtext.h are ASCII. */
typedef struct {
    tok_encoder *encoder; /* NULL: chars_per_token */
    double chars_per_token;
} token_counter;

snap_status tokens_count(const token_counter *c, const char *text, size_t n, int64_t *out,
                         snap_err *err) SNAP_CHECK_RESULT;

/* Appends the next unit of filler: a sentence, a line of a list or a word. */
typedef void (*document_unit_fn)(void *ctx, buf *out);

typedef struct {
    const char *text;
    double at; /* 0: the beginning of the document, 1: its end */
    size_t order;
} document_statement;

typedef struct {
    arena *mem;
    const char *heading; /* first line */
    char separator;      /* between units: ' ' or '\n' */
    int paragraph;       /* units of a paragraph; 0: there is only one */
    document_unit_fn unit;
    void *ctx;
    document_statement *statements; /* [n] */
    size_t n, cap;
} document;

/* Adds a statement. Statements at the same place keep their order. SNAP_E_NOMEM. */
snap_status document_add(document *d, double at, const char *text, snap_err *err) SNAP_CHECK_RESULT;

/**
 * document_write - write the text
 *
 * @length: tokens of the document, two line ends and @question together
 * @out:    must be empty
 * @tokens: the number of tokens that these three really have. It is @length, or a few tokens less
 *          if no words fill the last gap exactly
 *
 * The heading is followed by as many units of filler as fit. A few words after the heading fill the
 * gap that is smaller than a unit. SNAP_E_INPUT if @length is too small for the statements and the
 * question; SNAP_E_NOMEM.
 */
snap_status document_write(document *d, int64_t length, const char *question,
                           const token_counter *counter, buf *out, int64_t *tokens,
                           snap_err *err) SNAP_CHECK_RESULT;

#endif
