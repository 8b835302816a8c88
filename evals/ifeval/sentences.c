#include <string.h>
#include <strings.h>

#include "evals/ifeval/words.h"

/* English abbreviations in lower case, separated by spaces. Punkt's English parameters, trained on
 * newspapers, lack abbreviations that usually end a sentence ("etc.") and also "e.g." and "i.e.",
 * so these are not in the list. The single letters are those that Punkt takes for abbreviations. */
static const char kAbbreviations[] =
    " mr mrs ms dr prof st sr jr rep reps sen gen col maj lt adm messrs inc corp co ltd bros cie "
    "cos vs v "
    "jan feb aug sept sep oct nov dec tues wed fri ave ft mg yr ct ok sw "
    "ala ariz calif colo conn fla ga ill kan ky mich minn nev okla ore pa tenn va vt wash wis "
    "c d e f g h k l m n p r s t w ph.d p.m a.m u.s u.k u.n u.s.a d.c n.y n.j n.c s.c r.i n.h n.m "
    "l.a w.va "
    "b.v n.v s.a a.g m.b.a c.v u.s.s.r a.d a.s j.p j.r j.b j.c j.j j.k r.j r.h t.j m.j h.f ";

/* Words that begin a sentence if they follow an abbreviation and their first letter is a
 * capital. */
static const char kStarters[] = " according although among both but despite even he however i if "
                                "in indeed instead it many meanwhile "
                                "moreover most nevertheless nonetheless nor separately she "
                                "similarly since so some the there these they "
                                "this though thus under when while yet ";

/* Common words that also occur in names and titles, so a capital first letter has no meaning. */
static const char kSmall[] =
    " about across after again against ago also another any are aren't around as at avoid away "
    "be because been before below beside can can't come could did didn't do doesn't don't "
    "during each every everyone everything few find first for from get give go had has have "
    "having help his how i'd i'll i'm i've is isn't it's its itself just keep know last later "
    "let let's like make making maybe might more much must my never next no nobody none not "
    "now of often on once only or other others our out over own perhaps quite rather read "
    "really see several shall should somebody something take tell than that that's their "
    "theirs then those to too toward two until up use usually was wasn't we we'll we're we've "
    "what whatever when where who whoever whose why will with won't would write you you'll "
    "you're you've yours ";

/* Words that rarely occur in names: a capital first letter means that a sentence begins. */
static const char kOrdinary[] =
    " above almost already always anyone anything ask become begin behind being between beyond "
    "cannot check choose consider create does doing either else enjoy ensure explain explore "
    "given her here hers herself him himself instead into learn least myself need neither "
    "nothing otherwise ours please provide remember same simply someone sometimes soon still "
    "such them themselves therefore think through throughout together try unless upon us "
    "using very were whether which whichever whom within without your yourself ";

enum { kLongestWord = 64 };

static bool is_among(const char *list, span word) {
    char key[kLongestWord + 3];
    if (!word.n || word.n > kLongestWord || memchr(word.s, ' ', word.n))
        return false;
    key[0] = ' ';
    for (size_t i = 0; i < word.n; i++) {
        char c = word.s[i];
        key[i + 1] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    memcpy(key + word.n + 1, " ", 2);
    return strstr(list, key) != NULL;
}

/* ---- the tokens around a full stop ---- */

#define NON_WORD   "(?:[)\";}\\]*:@'({\\[!?])"
#define MULTI_CHAR "(?:-{2,}|\\.{2,}|(?:\\.\\s){2,}\\.)"

/* The first token of a text. */
static span first_token(span text) {
    static pattern token = {.regex = MULTI_CHAR
                            "|(?=[^(\"`{\\[:;&#*@)}\\]\\-,])\\S+?(?=\\s|$|" NON_WORD "|" MULTI_CHAR
                            "|,(?=$|\\s|" NON_WORD "|" MULTI_CHAR "))|\\S",
                            .flags = PATTERN_UTF};
    span groups[PATTERN_GROUPS];
    return pattern_find_next(&token, text, 0, groups) ? groups[0] : (span){0};
}

static span after(span text, span part) {
    const char *from = part.s + part.n;
    return (span){from, (size_t)(text.s + text.n - from)};
}

static bool ends_with(span s, const char *end) {
    size_t n = strlen(end);
    return s.n >= n && memcmp(s.s + s.n - n, end, n) == 0;
}

static span without_stop(span token) {
    return token.n > 1 && token.s[token.n - 1] == '.' ? (span){token.s, token.n - 1} : token;
}

static bool is_number(span token) {
    static pattern number = {.regex = "^-?[.,]?\\d[\\d,.\\-]*\\.?$"};
    return pattern_find_next(&number, token, 0, NULL);
}

static bool is_initial(span token) {
    static pattern initial = {.regex = "^[^\\W\\d]\\.$", .flags = PATTERN_UTF};
    return pattern_find_next(&initial, token, 0, NULL);
}

static bool starts_upper(span token) {
    static pattern upper = {.regex = "^\\p{Lu}", .flags = PATTERN_UTF};
    return pattern_find_next(&upper, token, 0, NULL);
}

static bool starts_lower(span token) {
    static pattern lower = {.regex = "^\\p{Ll}", .flags = PATTERN_UTF};
    return pattern_find_next(&lower, token, 0, NULL);
}

static bool is_abbreviation(span token) {
    span word = without_stop(token);
    size_t start = word.n;
    while (start && word.s[start - 1] != '-')
        start--;
    return is_among(kAbbreviations, word) ||
           is_among(kAbbreviations, (span){word.s + start, word.n - start});
}

/* True for the words in kOrdinary and for words of 6 bytes and more with common endings. */
static bool is_ordinary(span word) {
    static const char *const endings[] = {"ing", "ed", "ly", "tion", "ment", "ness", "ity", "ize"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (word.n >= 6 && ends_with(word, endings[i]))
            return true;
    return is_among(kOrdinary, word);
}

/* True if the word is known to be written in lower case inside a sentence. */
static bool is_small(span word) {
    return is_ordinary(word) || is_among(kSmall, word) || is_among(kStarters, word);
}

typedef enum { NO, YES, UNKNOWN } answer;

/* Decides by the first character and by is_ordinary() whether a word begins a sentence. */
static answer is_starter(span next) {
    if (next.n == 1 && strchr(";:,.!?", next.s[0]))
        return NO;
    if (starts_lower(next))
        return NO;
    return starts_upper(next) && is_ordinary(without_stop(next)) ? YES : UNKNOWN;
}

/* True if a sentence ends after @token when @next follows. */
static bool is_end(span token, span next) {
    if (token.n == 1 && strchr(".?!", token.s[0]))
        return true;
    bool ellipsis = ends_with(token, "..");
    if (!ends_with(token, "."))
        return false;
    bool initial = is_initial(token), abbreviation = !ellipsis && is_abbreviation(token);
    bool end = !ellipsis && !abbreviation;
    if ((abbreviation || ellipsis) && !initial)
        return is_starter(next) == YES ||
               (starts_upper(next) && is_among(kStarters, without_stop(next)));
    if (initial || is_number(token)) {
        answer starter = is_starter(next);
        if (starter == NO ||
            (starter == UNKNOWN && initial && starts_upper(next) && !is_small(without_stop(next))))
            return false;
    }
    return end;
}

/* True if a sentence ends inside a text, that is, after a token that is not the last. */
static bool has_end(span text) {
    span token = first_token(text);
    while (token.n) {
        text = after(text, token);
        span next = first_token(text);
        if (next.n && is_end(token, next))
            return true;
        token = next;
    }
    return false;
}

/* ---- sentences ---- */

typedef struct {
    sentence_fn fn;
    void *ctx;
    span text;
    size_t start; /* start of the current sentence */
    bool held;    /* a sentence is complete, but closing quotes may still follow */
    span sentence;
} walk;

static bool is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static span trim_end(span text) {
    while (text.n && is_blank(text.s[text.n - 1]))
        text.n--;
    return text;
}

/* Passes the held sentence, if there is one, to the callback and then holds @sentence. Closing
 * quotes and brackets at the beginning of @sentence go to the held one. */
static void emit(walk *w, span sentence) {
    static pattern closing = {.regex = "\\A[\"')\\]}]+?(?:\\s+|(?=--)|$)",
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

/* Start of the word that ends before @at, but not before @from. */
static size_t word_start(span text, size_t from, size_t at) {
    while (at > from && !is_blank(text.s[at - 1]))
        at--;
    return at;
}

/* A punctuation mark that may end a sentence, and the words around it. */
typedef struct {
    size_t word, stop;    /* offsets: the start of the word that ends with the mark; the byte after
                             the mark */
    span following, next; /* a sign after the mark, or white space and a word; that word */
} candidate;

static void close_at(walk *w, const candidate *c) {
    const char *end = c->following.s + c->following.n;
    span around = {w->text.s + c->word, (size_t)(end - (w->text.s + c->word))};
    if (!has_end(around))
        return;
    emit(w, (span){w->text.s + w->start, c->stop - w->start});
    w->start = c->next.n ? (size_t)(c->next.s - w->text.s) : c->stop;
}

void sentences_each(span text, sentence_fn fn, void *ctx) {
    static pattern stop = {.regex = "[.?!](?=(" NON_WORD "|\\s+(\\S+)))", .flags = PATTERN_UTF};
    walk w = {.fn = fn, .ctx = ctx, .text = text};
    candidate last = {0};
    span groups[PATTERN_GROUPS];
    bool open = false;
    for (size_t at = 0; pattern_find_next(&stop, text, at, groups); at++) {
        at = (size_t)(groups[0].s - text.s);
        candidate c = {.stop = at + 1, .following = groups[1], .next = groups[2]};
        c.word = word_start(text, open ? last.stop - 1 : 0, at);
        if (open && c.word == last.stop - 1)
            c.word = last.word; /* both marks are in the same word */
        else if (open)
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

size_t sentences_count(span text) {
    size_t n = 0;
    sentences_each(text, count_one, &n);
    return n;
}
