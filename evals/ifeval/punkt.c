#include "evals/ifeval/punkt.h"

#include <string.h>

#include "evals/ifeval/letters.h"

/* White space as in Python's regular expressions: they also count the separators U+001C to
 * U+001F. */
#define SPACE      "[\\s\\x{1c}-\\x{1f}]"
#define NOT_SPACE  "[^\\s\\x{1c}-\\x{1f}]"
#define NON_WORD   "(?:[)\";}\\]*:@'({\\[!?])"
#define MULTI_CHAR "(?:-{2,}|\\.{2,}|(?:\\.(?!\\n)" SPACE "){2,}\\.)"

/* ---- tokens ---- */

typedef struct {
    span text;
    span type; /* the text with small ASCII letters, ##number## for a number, or empty if it has
                  more than PUNKT_LONGEST bytes; points into `lower` or to a constant */
    bool number;
    bool end;                  /* ends a sentence, as far as the token alone shows */
    bool abbreviation;         /* a known abbreviation with its full stop */
    bool ellipsis;             /* two or more full stops and nothing else */
    char lower[PUNKT_LONGEST]; /* not NUL-terminated */
} token;

static bool ends_with_stop(span s) {
    return s.n && s.s[s.n - 1] == '.';
}

static span without_stop(span s) {
    return s.n > 1 && ends_with_stop(s) ? (span){s.s, s.n - 1} : s;
}

static span after(span text, span part) {
    const char *from = part.s + part.n;
    return (span){from, (size_t)(text.s + text.n - from)};
}

static bool is_number(span s) {
    static pattern number = {.regex = "^-?[.,]?\\d[\\d,.\\-]*\\.?$", .flags = PATTERN_UTF};
    return pattern_find_next(&number, s, 0, NULL);
}

/* True for one letter and a full stop, as in "J." The underscore and signs of numbers such as "²"
 * count as letters. */
static bool is_initial(span s) {
    static pattern initial = {.regex = "^[\\p{L}\\p{Nl}\\p{No}_]\\.$", .flags = PATTERN_UTF};
    return pattern_find_next(&initial, s, 0, NULL);
}

static bool starts_upper(span s) {
    static pattern upper = {.regex = "^\\p{Uppercase}", .flags = PATTERN_UTF};
    return pattern_find_next(&upper, s, 0, NULL);
}

static bool starts_lower(span s) {
    static pattern lower = {.regex = "^\\p{Lowercase}", .flags = PATTERN_UTF};
    return pattern_find_next(&lower, s, 0, NULL);
}

static unsigned bits_of(const punkt_params *p, span word) {
    return p ? punkt_word(p, word) : punkt_english(word);
}

/* Sets `lower` and `type`. */
static void set_type(token *t) {
    static const char number[] = "##number##";
    t->type = (span){t->lower, t->text.n <= PUNKT_LONGEST ? t->text.n : 0};
    for (size_t i = 0; i < t->type.n; i++) {
        char c = t->text.s[i];
        t->lower[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    t->number = is_number(t->text);
    if (t->number)
        t->type = (span){number, sizeof number - 1};
}

/* True for a known abbreviation, or a word whose part after the last hyphen is one. */
static bool is_abbreviation(const punkt_params *p, const token *t) {
    const span word = {t->lower, t->text.n <= PUNKT_LONGEST ? t->text.n - 1 : 0};
    size_t start = word.n;
    while (start && word.s[start - 1] != '-')
        start--;
    return (bits_of(p, word) | bits_of(p, (span){word.s + start, word.n - start})) &
           PUNKT_ABBREVIATION;
}

static bool is_all_stops(span s) {
    size_t n = 0;
    while (n < s.n && s.s[n] == '.')
        n++;
    return n == s.n && n > 1;
}

/* The first token of @text; false if there is none. */
static bool first_token(const punkt_params *p, span text, token *t) {
    static pattern word = {.regex =
                               MULTI_CHAR "|(?=[^(\"`{\\[:;&#*@)}\\]\\-,])" NOT_SPACE "+?(?=" SPACE
                                          "|$|" NON_WORD "|" MULTI_CHAR "|,(?=$|" SPACE "|" NON_WORD
                                          "|" MULTI_CHAR "))|" NOT_SPACE,
                           .flags = PATTERN_UTF};
    span groups[PATTERN_GROUPS];
    if (!pattern_find_next(&word, text, 0, groups))
        return false;
    t->text = groups[0];
    set_type(t);
    bool stop = ends_with_stop(t->text), single = t->text.n == 1;
    t->ellipsis = is_all_stops(t->text);
    t->abbreviation = stop && !single && !t->ellipsis && is_abbreviation(p, t);
    t->end = (single && strchr(".?!", t->text.s[0])) || (stop && !t->ellipsis && !t->abbreviation);
    return true;
}

/* ---- does a sentence end here? ---- */

typedef enum { NO, YES, UNKNOWN } answer;

/* Decides by the case of a word whether it begins a sentence (Kiss and Strunk, 4.1.1). */
static answer begins_sentence(const token *next, unsigned bits) {
    const unsigned lower = PUNKT_BEGIN_LOWER | PUNKT_MIDDLE_LOWER | PUNKT_UNKNOWN_LOWER;
    const unsigned upper = PUNKT_BEGIN_UPPER | PUNKT_MIDDLE_UPPER | PUNKT_UNKNOWN_UPPER;
    if (next->text.n == 1 && strchr(";:,.!?", next->text.s[0]))
        return NO;
    if (starts_upper(next->text) && (bits & lower) && !(bits & PUNKT_MIDDLE_UPPER))
        return YES;
    if (starts_lower(next->text) && ((bits & upper) || !(bits & PUNKT_BEGIN_LOWER)))
        return NO;
    return UNKNOWN;
}

/* True if a sentence ends after @t when @next follows. The numbers are sections of the paper. */
static bool is_end(const punkt_params *p, const token *t, const token *next) {
    const unsigned lower = PUNKT_BEGIN_LOWER | PUNKT_MIDDLE_LOWER | PUNKT_UNKNOWN_LOWER;
    if (!ends_with_stop(t->text))
        return t->end;
    span type = without_stop(t->type),
         next_type = next->end ? without_stop(next->type) : next->type;
    if (p && punkt_is_pair(p, type, next_type)) /* 4.1.2 */
        return false;
    const unsigned bits = bits_of(p, next_type);
    const bool initial = is_initial(t->text);
    const answer starter = begins_sentence(next, bits);
    if ((t->abbreviation || t->ellipsis) && !initial) /* 4.2 and 4.1.3 */
        return starter == YES || ((bits & PUNKT_STARTER) && starts_upper(next->text));
    if (initial || t->number) { /* 4.3 */
        if (starter == NO)
            return false;
        if (starter == UNKNOWN && initial && starts_upper(next->text) && !(bits & lower))
            return false;
    }
    return t->end;
}

/* True if a sentence ends inside a text, that is, after a token that is not the last. */
static bool has_end(const punkt_params *p, span text) {
    token pair[2];
    int at = 0;
    bool more = first_token(p, text, &pair[0]);
    while (more) {
        token *t = &pair[at], *next = &pair[1 - at];
        text = after(text, t->text);
        more = first_token(p, text, next);
        if (more && is_end(p, t, next))
            return true;
        at = 1 - at;
    }
    return false;
}

/* ---- sentences ---- */

typedef struct {
    const punkt_params *params;
    punkt_fn fn;
    void *ctx;
    span text;
    size_t start; /* start of the current sentence */
    bool held;    /* a sentence is complete, but closing quotes may still follow */
    span sentence;
} walk;

static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The text without the white space at its end. */
static span trim_end(span text) {
    const span trimmed = letters_trim(text);
    return (span){text.s, trimmed.n ? (size_t)(trimmed.s + trimmed.n - text.s) : 0};
}

/* Passes the held sentence, if there is one, to the callback and then holds @sentence. Closing
 * quotes and brackets at the beginning of @sentence go to the held one. */
static void emit(walk *w, span sentence) {
    static pattern closing = {.regex = "\\A[\"')\\]}]+?(?:" SPACE "+|(?=--)|$)",
                              .flags = PATTERN_UTF | PATTERN_MULTILINE};
    span groups[PATTERN_GROUPS];
    if (w->held && pattern_find_next(&closing, sentence, 0, groups)) {
        const char *end = groups[0].s + trim_end(groups[0]).n;
        w->sentence.n = (size_t)(end - w->sentence.s);
        sentence = after(sentence, groups[0]);
    }
    if (w->held && w->sentence.n)
        w->fn(w->ctx, w->sentence);
    w->sentence = sentence;
    w->held = true;
}

/* A punctuation mark that may end a sentence, and the words around it. */
typedef struct {
    size_t word, mark;    /* offsets of the word that ends with the mark, and of the mark */
    span following, next; /* `following` is a sign after the mark, or white space and a word; `next`
                             is that word */
} candidate;

/* Start of the word that ends before the mark at @at. It begins after the last white space, or
 * with the word of the mark before, if there is no white space between the two. */
static size_t word_start(span text, const candidate *last, size_t at) {
    const size_t from = last ? last->mark : 0;
    while (at > from && !is_blank(text.s[at - 1]))
        at--;
    if (last)
        return at == from ? last->word : at;
    return at > 1 ? at : 0; /* NLTK ignores white space that is the first character of the text. */
}

static void close_at(walk *w, const candidate *c) {
    const char *end = c->following.s + c->following.n;
    span around = {w->text.s + c->word, (size_t)(end - (w->text.s + c->word))};
    if (!has_end(w->params, around))
        return;
    emit(w, (span){w->text.s + w->start, c->mark + 1 - w->start});
    w->start = c->next.n ? (size_t)(c->next.s - w->text.s) : c->mark + 1;
}

void punkt_each(const punkt_params *p, span text, punkt_fn fn, void *ctx) {
    static pattern mark = {.regex = "[.?!](?=(" NON_WORD "|" SPACE "+(" NOT_SPACE "+)))",
                           .flags = PATTERN_UTF};
    walk w = {.params = p, .fn = fn, .ctx = ctx, .text = text};
    candidate last = {0};
    span groups[PATTERN_GROUPS];
    bool open = false;
    for (size_t at = 0; pattern_find_next(&mark, text, at, groups); at++) {
        at = (size_t)(groups[0].s - text.s);
        candidate c = {.mark = at, .following = groups[1], .next = groups[2]};
        c.word = word_start(text, open ? &last : NULL, at);
        /* Of several marks in one word, the last one decides. */
        if (open && last.mark <= c.word)
            close_at(&w, &last);
        last = c;
        open = true;
    }
    if (open)
        close_at(&w, &last);
    span rest = trim_end(text);
    if (rest.n > w.start)
        emit(&w, (span){text.s + w.start, rest.n - w.start});
    if (w.held && w.sentence.n)
        fn(ctx, w.sentence);
}

static void count_one(void *ctx, span sentence) {
    (void)sentence;
    ++*(size_t *)ctx;
}

size_t punkt_count(const punkt_params *p, span text) {
    size_t n = 0;
    punkt_each(p, text, count_one, &n);
    return n;
}
