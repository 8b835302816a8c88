/* extract_letter.c - multiple choice: finds the option that a response chooses.
 *
 * The response is brought into a plain form (letter_text.h) and split into tokens
 * (letter_token.h). Each clause with a mention of an option gets a verdict (letter_clause.h). The
 * last one that commits to an option decides, unless the text after it takes it back. */
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "evals/extract.h"
#include "evals/letter_clause.h"
#include "evals/letter_lines.h"
#include "evals/letter_text.h"

enum { kPart = 12000 }; /* bytes at the end of a text, and at its beginning, that are searched */

/* A letter that the text chooses. */
typedef struct {
    size_t at; /* its place in the text, from 1; 0: none */
    char letter;
    const char *rule;
} choice;

/* The statements of one strength. */
typedef struct {
    clause last; /* the last one; first = SIZE_MAX: none */
    bool differ; /* they have different letters */
    bool
        before; /* the one before it begins with a circumstance, as it does, and has another letter */
} statements;

static const char letters[] = "ABCDEFGHIJ";

/* ---- what the text says about itself ---- */

/* The first word after the token @from that takes something back, unless the text after it
 * confirms; SIZE_MAX: none. */
static bool is_revoked(const letter_tokens *t, size_t from) {
    for (size_t i = from; i < t->n; i++)
        if (t->t[i].is & WORD_WAIT) {
            for (size_t j = i + 1; j < t->n; j++)
                if (t->t[j].is & WORD_YES && !(t->t[j].is & WORD_FIT && t->t[j].n == 6))
                    return false;
            return true;
        }
    return false;
}

/* True if the text after the token @from says that several options are answers: "both apply". */
static bool is_joined(const letter_tokens *t, size_t from) {
    enum { NEAR = 6 };
    for (size_t i = from; i < t->n; i++)
        if (t->t[i].is & WORD_BOTH)
            for (size_t j = i + 1; j < t->n && j < i + NEAR; j++)
                if (t->t[j].is & (WORD_BE | WORD_FIT | WORD_AUX | WORD_ANSWER) ||
                    (t->t[j].n == 5 && !strncmp(t->text.s + t->t[j].at, "apply", 5)))
                    return true;
    return false;
}

/* ---- statements ---- */

static void add_statement(statements *s, clause c) {
    bool other = s->last.first != SIZE_MAX && s->last.letter != c.letter;
    s->differ = s->differ || (other && c.letter && s->last.letter);
    s->before = other && s->last.circumstance && c.circumstance;
    s->last = c;
}

/* True if the text defines the letter at the token @i as something else before: "let A be a set". */
static bool is_variable(const letter_tokens *t, size_t i) {
    enum { LINES = 400 };
    for (size_t j = i > LINES ? i - LINES : 0; j + 2 < i; j++)
        if (t->t[j].n == 3 && !strncasecmp(t->text.s + t->t[j].at, "let", 3) &&
            t->t[j + 1].letter == t->t[i].letter && t->t[j + 2].is & WORD_BE)
            return !t->t[i].framed;
    return false;
}

/* Collects the statements from the token @from on. Answers with several letters count as
 * statements without a letter. */
static void collect(const letter_tokens *t, size_t from, statements *declared,
                    statements *concluded) {
    *declared = *concluded = (statements){.last.first = SIZE_MAX};
    for (size_t i = from; i < t->n; i++) {
        if (t->t[i].kind != TOKEN_OPTION && !t->t[i].named)
            continue;
        clause c = letter_clause(t, i);
        bool listed = letter_in_list(t, i) || (c.verdict == CLAUSE_CONCLUDES && is_variable(t, i));
        if (c.verdict == CLAUSE_DECLARES && !listed)
            add_statement(declared, c);
        else if (c.verdict == CLAUSE_CONCLUDES && !listed)
            add_statement(concluded, c);
        else if (c.verdict == CLAUSE_OPEN && !c.letter && c.rule && !listed)
            add_statement(strcmp(c.rule, "answer") == 0 ? declared : concluded, c);
        i = c.end - 1;
    }
}

static choice choice_of(const letter_tokens *t, const clause *c) {
    const token *k = &t->t[c->end - 1];
    return c->letter ? (choice){k->at + 1, c->letter, c->rule} : (choice){0};
}

/* The choice of a text. A later conclusion replaces a declaration only if the text after the
 * declaration takes it back. */
static choice find(const letter_tokens *t, bool guesses) {
    statements declared, concluded;
    collect(t, 0, &declared, &concluded);
    size_t from = 0, final = guesses ? letter_final(t) : SIZE_MAX;
    if (final != SIZE_MAX && declared.last.first != final)
        return (choice){t->t[final].at + 1, t->t[final].letter, "last_line"};
    if (declared.last.first != SIZE_MAX) {
        from = declared.last.end;
        if (!is_revoked(t, from)) {
            bool none = declared.before || (declared.differ && is_joined(t, from));
            return none ? (choice){0} : choice_of(t, &declared.last);
        }
    }
    if (!guesses)
        return (choice){0};
    if (from)
        collect(t, from, &declared, &concluded);
    size_t first = from ? SIZE_MAX : letter_first(t);
    bool explains = first != SIZE_MAX && !concluded.last.weighs; /* "C. A fits metals only." */
    if (concluded.last.first != SIZE_MAX && !explains) {
        bool none =
            concluded.before || (concluded.differ && !from &&
                                 (!concluded.last.weighs || is_joined(t, concluded.last.end)));
        return none || is_revoked(t, concluded.last.end) ? (choice){0}
                                                         : choice_of(t, &concluded.last);
    }
    const char *rule;
    size_t i = letter_without_words(t, &rule);
    return i == SIZE_MAX || i < from ? (choice){0} : (choice){t->t[i].at + 1, t->t[i].letter, rule};
}

/* ---- the search ---- */

/* Searches the end of the text and, if that has no answer, its beginning. @skipped: bytes before
 * the part in which the answer was found. */
static choice find_in_parts(span text, char last, bool guesses, size_t *skipped) {
    size_t skip = text.n > kPart ? text.n - kPart : 0;
    span parts[] = {{text.s + skip, text.n - skip}, {text.s, kPart}};
    choice found = {0};
    for (size_t i = 0; !found.at && i < (skip ? 2U : 1U); i++) {
        letter_tokens t;
        *skipped = i ? 0 : skip;
        if (letter_tokenize(parts[i], last, &t))
            found = find(&t, guesses);
        letter_tokens_release(&t);
    }
    return found;
}

/* True if the tokens are only a letter with words such as "option" before it and its text after
 * it. */
static char only_letter(const letter_tokens *t) {
    size_t i = 0;
    while (i < t->n &&
           (t->t[i].kind == TOKEN_COLON || t->t[i].kind == TOKEN_OPEN ||
            (t->t[i].kind == TOKEN_WORD &&
             t->t[i].is & (WORD_OPTION | WORD_ANSWER | WORD_FILL | WORD_SO | WORD_RIGHT))))
        i++;
    if (i >= t->n || (t->t[i].kind != TOKEN_OPTION && t->t[i].kind != TOKEN_NAME) ||
        !t->t[i].letter || i > 6)
        return '\0';
    clause c = t->t[i].kind == TOKEN_OPTION ? letter_clause(t, i)
                                            : (clause){.letter = t->t[i].letter, .end = i + 1};
    const token *k = &t->t[i];
    size_t end = c.end;
    while (end < t->n && (t->t[end].kind == TOKEN_CLOSE || t->t[end].kind == TOKEN_STOP ||
                          t->t[end].kind == TOKEN_COLON))
        end++;
    bool label =
        k->framed || k->bracket || end > c.end || (end < t->n && t->t[end].kind == TOKEN_DASH);
    return end == t->n || label ? c.letter : '\0';
}

bool extract_bare_letter(span answer, char last, extraction *out) {
    buf plain = {0};
    letter_tokens t;
    char c = '\0';
    (void)letter_text(answer, NULL, &plain);
    span text = span_trim((span){buf_str(&plain), plain.len});
    text.n = text.n < kPart ? text.n : kPart;
    if (text.n == 1)
        c = letter_option(text.s[0], last);
    else if (letter_tokenize(text, last, &t)) {
        c = only_letter(&t);
    }
    if (text.n != 1)
        letter_tokens_release(&t);
    buf_release(&plain);
    if (!c)
        return false;
    out->answer = (span){letters + (c - 'A'), 1};
    return true;
}

/* True if a box before the last one has another letter, and the text after them joins the two. */
static bool boxes_are_joined(span text, const extraction *boxed, char letter, char last,
                             span after) {
    extraction first, x;
    letter_tokens t;
    span earlier = {text.s, (size_t)(boxed->answer.s - text.s)};
    after.n = after.n < kPart ? after.n : kPart;
    bool joined = letter_tokenize(after, last, &t) && is_joined(&t, 0);
    letter_tokens_release(&t);
    if (!joined)
        return false;
    extract_box box = extract_boxed(earlier, &first);
    return (box == EXTRACT_BOX || box == EXTRACT_EARLIER_BOX) &&
           extract_bare_letter(first.answer, last, &x) && x.answer.s[0] != letter;
}

static bool text_is_revoked(span after, char last) {
    letter_tokens t;
    after.n = after.n < kPart ? after.n : kPart;
    bool revoked = letter_tokenize(after, last, &t) && is_revoked(&t, 0);
    letter_tokens_release(&t);
    return revoked;
}

bool extract_letter(span text, char last, bool guesses, extraction *out) {
    extraction boxed, x;
    buf plain = {0};
    size_t skipped;
    extract_box box = extract_boxed(text, &boxed);
    bool has_box = box == EXTRACT_BOX || box == EXTRACT_EARLIER_BOX;
    bool in_box = has_box && extract_bare_letter(boxed.answer, last, &x);
    size_t box_at = letter_text(text, in_box ? boxed.answer.s : NULL, &plain);
    span all = span_trim((span){buf_str(&plain), plain.len});
    choice found = find_in_parts(all, last, guesses && !in_box, &skipped);
    /* a letter in the box may have a bracket before it in the plain text */
    bool box_last = in_box && box_at + 3 >= found.at + (found.at ? skipped : 0);
    span after = {buf_str(&plain) + box_at, plain.len - box_at};
    if (box_last && !text_is_revoked(after, last)) {
        bool joined = boxes_are_joined(text, &boxed, x.answer.s[0], last, after);
        found = joined ? (choice){0} : (choice){1, x.answer.s[0], boxed.rule};
    }
    buf_release(&plain);
    *out = (extraction){found.at ? found.rule : NULL,
                        found.at ? (span){letters + (found.letter - 'A'), 1} : (span){NULL, 0}};
    return found.at != 0;
}
