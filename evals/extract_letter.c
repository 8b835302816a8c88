/* extract_letter.c - multiple choice: finds the option that a response chooses.
 *
 * The response is brought into a plain form (letter_text.h) and split into tokens (letter_token.h).
 * Each clause with a mention of an option gets a verdict (letter_clause.h). The last one that
 * declares an answer decides, or else the last one that concludes, unless the text after it takes
 * it back. Without either, the layout decides (letter_lines.h). */
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "evals/extract.h"
#include "evals/letter_clause.h"
#include "evals/letter_lines.h"
#include "evals/letter_sides.h"
#include "evals/letter_text.h"

enum { kPart = 12000 }; /* bytes at the end of a text, and at its beginning, that are searched */

/* A letter that the text chooses. */
typedef struct {
    size_t at; /* its place in the text, from 1; 0: none */
    char letter;
    const char *rule;
} choice;

/* The statements that declare an answer, or those that conclude one. */
typedef struct {
    clause last; /* the last one; first = SIZE_MAX: none */
    bool differ; /* the statements have different letters */
} statements;

/* All statements of a text. */
typedef struct {
    statements declared, concluded;
    bool alternatives; /* the last two begin with circumstances and have different letters */
} reading;

static const char letters[] = "ABCDEFGHIJ";

/* ---- what the text says about itself ---- */

/* True if a word from the token @from on takes something back and no later word confirms it.
 * "stands" and "agrees" do not confirm here. */
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

/* ---- statements about options ---- */

static void add_statement(statements *s, clause c) {
    bool other = s->last.first != SIZE_MAX && s->last.letter != c.letter;
    s->differ = s->differ || (other && c.letter && s->last.letter);
    s->last = c;
}

/* True if the tokens from @j on call a letter a person: "Mr. A". */
static bool is_person(const letter_tokens *t, size_t j) {
    static const char *const titles[] = {"mr", "ms", "mrs", "miss"};
    bool title = false;
    for (size_t k = 0; k < sizeof titles / sizeof *titles; k++)
        title = title || letter_has_text(t, &t->t[j], titles[k]);
    return title && t->t[j + (t->t[j + 1].kind == TOKEN_STOP ? 2 : 1)].letter;
}

/* True if the text before the token @i uses its letter for something else: "let A be a set", or
 * letters for persons. False for a letter in a frame, such as "(A)". */
static bool is_variable(const letter_tokens *t, size_t i) {
    enum { LINES = 400 };
    for (size_t j = i > LINES ? i - LINES : 0; j + 2 < i; j++)
        if (is_person(t, j) || (t->t[j].n == 3 && !strncasecmp(t->text.s + t->t[j].at, "let", 3) &&
                                t->t[j + 1].letter == t->t[i].letter && t->t[j + 2].is & WORD_BE))
            return !t->t[i].framed;
    return false;
}

/* True if the tokens from @from to @to take something back. */
static bool takes_back(const letter_tokens *t, size_t from, size_t to) {
    for (size_t i = from; i < to; i++)
        if (t->t[i].is & WORD_WAIT)
            return true;
    return false;
}

/* True if the token at @i is a whole line: "**C**". */
static bool is_line(const letter_tokens *t, size_t i) {
    bool starts = i == 0 || t->t[i - 1].kind == TOKEN_LINE;
    size_t end = i + 1;
    while (end < t->n && t->t[end].kind == TOKEN_STOP)
        end++;
    return starts && (end == t->n || t->t[end].kind == TOKEN_LINE) && !t->t[i].small &&
           !t->t[i].native;
}

/* The last mention in the tokens before the pronoun at @i, to which it refers: "Option C: the cell
 * shrinks. This is the correct answer." SIZE_MAX: none. */
static size_t referent(const letter_tokens *t, size_t i) {
    enum { FAR = 25 };
    const token *k = &t->t[i];
    bool starts = i && letter_ends_sentence(&t->t[i - 1]) && t->t[i - 1].kind != TOKEN_ASK;
    if (!starts || k->kind != TOKEN_WORD || !(k->is & WORD_IT) || k->is & WORD_RIGHT ||
        i + 1 >= t->n || !(t->t[i + 1].is & WORD_BE))
        return SIZE_MAX;
    right_side r = letter_right(t, i + 1, k);
    if (r.says != SAYS_RIGHT || !r.strong || r.conditional || r.asks)
        return SIZE_MAX;
    for (size_t j = i; j && i - j < FAR && t->t[j - 1].kind != TOKEN_LINE; j--)
        if (t->t[j - 1].kind == TOKEN_OPTION)
            return j - 1;
    return SIZE_MAX;
}

/* The statement about the mention at @i. */
static clause statement_at(const letter_tokens *t, size_t i) {
    clause c = letter_clause(t, i);
    bool listed = letter_in_list(t, i);
    if (listed || (c.verdict == CLAUSE_CONCLUDES && is_variable(t, i))) {
        c.verdict = CLAUSE_SILENT;
        c.letter = c.letter ? c.letter : 'A';
    } else if (c.verdict == CLAUSE_SILENT && is_line(t, i)) {
        c.verdict = CLAUSE_CONCLUDES;
        c.weighs = true;
        c.rule = "last_line";
    }
    return c;
}

/* Collects the statements from the token @from on. Answers with several letters count as
 * statements without a letter. */
static reading read_statements(const letter_tokens *t, size_t from) {
    reading r = {{.last.first = SIZE_MAX}, {.last.first = SIZE_MAX}, false};
    clause before = {0};
    for (size_t i = from; i < t->n; i++) {
        size_t other = referent(t, i);
        if (other != SIZE_MAX && other >= from && t->t[other].letter) {
            clause c = {CLAUSE_CONCLUDES, other, i + 1, t->t[other].letter, true, false,
                        "called_correct"};
            add_statement(&r.concluded, c);
        }
        if (t->t[i].kind != TOKEN_OPTION && !t->t[i].named)
            continue;
        clause c = statement_at(t, i);
        bool several = c.verdict == CLAUSE_OPEN && !c.letter && c.rule;
        bool declares = c.verdict == CLAUSE_DECLARES || (several && !strcmp(c.rule, "answer"));
        if (declares || several || c.verdict == CLAUSE_CONCLUDES) {
            c.weighs = c.weighs || takes_back(t, before.end, c.first);
            add_statement(declares ? &r.declared : &r.concluded, c);
            r.alternatives = before.circumstance && c.circumstance && before.letter != c.letter;
            before = c;
        }
        i = c.end - 1;
    }
    return r;
}

static choice choice_of(const letter_tokens *t, const clause *c) {
    const token *k = &t->t[c->end - 1];
    return c->letter ? (choice){k->at + 1, c->letter, c->rule} : (choice){0};
}

/* The letter that stands without a sentence, at or after the token @from. */
static choice without_words(const letter_tokens *t, size_t from) {
    const char *rule;
    size_t i = letter_without_words(t, &rule);
    return i == SIZE_MAX || i < from ? (choice){0} : (choice){t->t[i].at + 1, t->t[i].letter, rule};
}

/* The choice that the conclusions give. @from: the token after a statement that was taken back, or
 * 0. */
static choice concluded(const letter_tokens *t, const reading *r, size_t from) {
    const statements *s = &r->concluded;
    size_t first = from ? SIZE_MAX : letter_first(t);
    bool explains = first != SIZE_MAX && !s->last.weighs; /* "C. A fits metals only." */
    if (s->last.first == SIZE_MAX || explains)
        return without_words(t, from);
    if (is_revoked(t, s->last.end))
        return without_words(t, s->last.end);
    bool tie = s->differ && !from && (!s->last.weighs || is_joined(t, s->last.end));
    return r->alternatives || tie ? (choice){0} : choice_of(t, &s->last);
}

/* The choice of a text. A later conclusion replaces a declaration only if the text after the
 * declaration takes it back. With @guesses, a letter that is the whole last line decides before
 * both. */
static choice find(const letter_tokens *t, bool guesses) {
    reading r = read_statements(t, 0);
    size_t from = 0, final = guesses ? letter_final(t) : SIZE_MAX;
    const statements *d = &r.declared;
    if (final != SIZE_MAX && d->last.first != final)
        return (choice){t->t[final].at + 1, t->t[final].letter, "last_line"};
    if (d->last.first != SIZE_MAX) {
        from = d->last.end;
        bool none = r.alternatives || (d->differ && is_joined(t, from));
        if (!is_revoked(t, from))
            return none ? (choice){0} : choice_of(t, &d->last);
    }
    if (!guesses)
        return (choice){0};
    if (from)
        r = read_statements(t, from);
    return concluded(t, &r, from);
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

/* The letter, if the tokens are only a letter, words such as "option" before it and the option's
 * text after it; otherwise NUL. */
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

static bool search(span text, char last, bool guesses, extraction *out) {
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

/* Length of the text before the next question. After its answer, a base model that was shown
 * examples often goes on with a question of its own: "B\n\nQuestion: ...". The whole length if
 * there is no next question. */
static size_t before_next_question(span text) {
    static const span starts[] = {{"\n\nQuestion:", 11}, {"\n\nQ:", 4}};
    for (size_t at = 0; at < text.n; at++)
        for (size_t i = 0; i < sizeof starts / sizeof *starts && text.s[at] == '\n'; i++)
            if (text.n - at >= starts[i].n && !memcmp(text.s + at, starts[i].s, starts[i].n))
                return at;
    return text.n;
}

bool extract_letter(span text, char last, bool guesses, extraction *out) {
    size_t n = before_next_question(text);
    return (n < text.n && search((span){text.s, n}, last, guesses, out)) ||
           search(text, last, guesses, out);
}
