/* Recognises words that introduce an answer, such as "The answer is". */
#include <string.h>

#include "evals/math/math_rewrite.h"
#include "evals/math/math_rewriter.h"

/* The words of an introduction. The first kAssert ones show that an answer follows. */
static const char *const intro_words[] = {
    "answer", "answers",  "result",  "solution", "solutions", "value", "is",        "are",
    "equals", "get",      "obtain",  "have",     "so",        "thus",  "therefore", "hence",
    "final",  "the",      "our",     "correct",  "we",        "there", "that",      "it",
    "this",   "total",    "number",  "of",       "ways",      "to",    "be",        "equal",
    "exact",  "required", "desired", "finally",  "and",       "then",  "in",
};
enum { kAssert = 16 };

/* The index of the word at @s; -1 if it is none of an introduction. */
static int find_intro(const char *s, size_t n) {
    char lower[16];
    if (n >= sizeof lower)
        return -1;
    for (size_t i = 0; i < n; i++)
        lower[i] = (char)(s[i] | 32);
    for (size_t i = 0; i < COUNT(intro_words); i++)
        if (span_is(lower, n, intro_words[i]))
            return (int)i;
    return -1;
}

/* Skips the words of an introduction and the punctuation between them. NULL if they do not show
 * that an answer follows. */
static const char *skip_introduction(const rewriter *r, const char *s) {
    bool asserted = false;
    for (;;) {
        const char *word = s;
        while (word < r->end && (is_space(*word) || strchr(",:=*$", *word)))
            word++;
        const char *end = word;
        while (end < r->end && is_letter(*end))
            end++;
        int i = find_intro(word, (size_t)(end - word));
        if (i < 0)
            return asserted ? word : NULL;
        asserted |= i < kAssert;
        s = end;
    }
}

/* True if the text states something else than a value: "at least", "not". */
static bool is_hedged(const char *s, const char *end) {
    static const char *const words[] = {"not",   "no",      "never",   "least",   "most",
                                        "than",  "between", "neither", "either",  "cannot",
                                        "false", "wrong",   "except",  "without", "if"};
    while (s < end) {
        const char *word = s;
        while (s < end && is_letter(*s))
            s++;
        for (size_t i = 0; i < COUNT(words); i++)
            if (span_is(word, (size_t)(s - word), words[i]))
                return true;
        s += s == word;
    }
    return false;
}

/* The end of the words in a \text that introduce what follows: after the last "is", "are",
 * "equals", "be", ":" or "=". NULL if there is none, or if is_hedged() is true for the words. */
static const char *skip_sentence(const char *s, const char *end) {
    static const char *const verbs[] = {"is", "are", "equals", "be"};
    const char *found = NULL;
    for (const char *k = s; k < end; k++) {
        if (*k == ':' || *k == '=')
            found = k + 1;
        for (size_t i = 0; i < COUNT(verbs); i++) {
            size_t n = strlen(verbs[i]);
            bool apart = k > s && is_space(k[-1]) && (size_t)(end - k) >= n &&
                         (k + n == end || is_space(k[n]));
            if (apart && memcmp(k, verbs[i], n) == 0)
                found = k + n;
        }
    }
    return found && !is_hedged(s, found) ? found : NULL;
}

/* The content of a \text with which the answer begins; NULL if it begins with something else. */
static const char *text_content(const rewriter *r, const char *s) {
    if (s == r->end || *s != '\\')
        return NULL;
    const char *open = s + 1;
    while (open < r->end && is_letter(*open))
        open++;
    const math_spelling *c = math_find_command(s + 1, (size_t)(open - s) - 1);
    return c && c->kind == kText && open < r->end && *open == '{' ? open + 1 : NULL;
}

bool math_drop_introduction(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    rewriter r = {.begin = s, .s = s, .end = s + n, .out = out, .cap = cap};
    const char *from = skip_spaces(&r, s), *content = text_content(&r, from);
    const char *rest = skip_introduction(&r, content ? content : from);
    const char *close = content ? memchr(content, '}', (size_t)(r.end - content)) : NULL;
    if (!rest && close)
        rest = skip_sentence(content, close);
    if (!rest)
        return false;
    const char *word = skip_spaces(&r, rest);
    if (content && word < r.end && *word == '}')
        rest = word + 1;
    else if (content)
        put(&r, from, (size_t)(content - from));
    put(&r, rest, (size_t)(r.end - rest));
    *len = r.used;
    return !r.full;
}
