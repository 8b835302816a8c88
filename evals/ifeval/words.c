#include "evals/ifeval/words.h"

#include <string.h>

#include "base/buf.h"

size_t words_count(span text) {
    static pattern word = {.regex = "[\\p{L}\\p{N}_]+", .flags = PATTERN_UTF};
    return pattern_count(&word, text);
}

/* ---- Treebank tokens ---- */

/* Replaces every match by @with, where \1 and \2 stand for the groups. No match may be empty. */
static void substitute(pattern *p, buf *text, const char *with) {
    span groups[PATTERN_GROUPS], all = {buf_str(text), text->len};
    buf out = {0};
    size_t from = 0;
    while (from <= all.n && pattern_find_next(p, all, from, groups)) {
        (void)buf_append(&out, all.s + from, (size_t)(groups[0].s - all.s) - from);
        for (const char *c = with; *c; c++) {
            if (*c == '\1' || *c == '\2')
                (void)buf_append(&out, groups[(int)*c].s, groups[(int)*c].n);
            else
                (void)buf_append(&out, c, 1);
        }
        from = (size_t)(groups[0].s - all.s) + groups[0].n;
        if (!groups[0].n)
            break;
    }
    (void)buf_append(&out, all.s + (from < all.n ? from : all.n), from < all.n ? all.n - from : 0);
    buf_release(text);
    *text = out;
}

typedef struct {
    pattern match;
    const char *with;
} rule;

/* The rules of the NLTKWordTokenizer of NLTK 3.9 that separate signs, in their order. They are
 * applied first. */
static rule signs[] = {
    {{.regex = "([«“‘„]|[`]+)", .flags = PATTERN_UTF}, " \1 "},
    {{.regex = "^\""}, "``"},
    {{.regex = "(``)"}, " \1 "},
    {{.regex = "([ (\\[{<])(\"|'{2})"}, "\1 `` "},
    {{.regex = "(?i)(')(?!re|ve|ll|m|t|s|d|n)(\\w)\\b", .flags = PATTERN_UTF}, "\1 \2"},
    {{.regex = "([^.])(\\.)(?=[\\])}>\"'»”’ ]*+\\s*$)", .flags = PATTERN_UTF}, "\1 \2 "},
    {{.regex = "([:,])(?=[^\\d]|$)", .flags = PATTERN_UTF}, " \1 "},
    {{.regex = "(\\.{2,})"}, " \1 "},
    {{.regex = "([;@#$%&?!*]|[\\]\\[(){}<>]|--)"}, " \1 "},
};

/* The rules of NLTKWordTokenizer for word endings and contractions, in their order. They are
 * applied after `signs`, and tokenize() first puts a space on both sides of the text. */
static rule endings[] = {
    {{.regex = "([»”’])", .flags = PATTERN_UTF}, " \1 "},
    {{.regex = "(''|\")"}, " \1 "},
    {{.regex = "[\\s\\x{1c}-\\x{1f}]+", .flags = PATTERN_UTF}, " "},
    {{.regex = "([^' ])('[sS]|'[mM]|'[dD]|')(?= )", .flags = PATTERN_UTF}, "\1 \2"},
    {{.regex = "([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T)(?= )", .flags = PATTERN_UTF}, "\1 \2"},
    {{.regex = "(?i)\\b(can)(not)\\b", .flags = PATTERN_UTF}, " \1 \2 "},
    {{.regex = "(?i)\\b(d)('ye)\\b", .flags = PATTERN_UTF}, " \1 \2 "},
    {{.regex = "(?i)\\b(gim|lem)(me)\\b", .flags = PATTERN_UTF}, " \1 \2 "},
    {{.regex = "(?i)\\b(gon)(na)\\b", .flags = PATTERN_UTF}, " \1 \2 "},
    {{.regex = "(?i)\\b(got)(ta)\\b", .flags = PATTERN_UTF}, " \1 \2 "},
    {{.regex = "(?i)\\b(more)('n)\\b", .flags = PATTERN_UTF}, " \1 \2 "},
    {{.regex = "(?i)\\b(wan)(na)(?=\\s)", .flags = PATTERN_UTF}, " \1 \2 "},
    {{.regex = "(?i) ('t)(is|was)\\b", .flags = PATTERN_UTF}, " \1 \2 "},
};

static void apply(rule *rules, size_t n, buf *text) {
    for (size_t i = 0; i < n; i++)
        substitute(&rules[i].match, text, rules[i].with);
}

/* Splits a sentence into tokens with spaces between them. */
static void tokenize(span sentence, buf *out) {
    buf text = {0};
    (void)buf_append(&text, sentence.s, sentence.n);
    apply(signs, sizeof signs / sizeof *signs, &text);
    buf_clear(out);
    (void)buf_puts(out, " ");
    (void)buf_append(out, buf_str(&text), text.len);
    (void)buf_puts(out, " ");
    buf_release(&text);
    apply(endings, sizeof endings / sizeof *endings, out);
}

static void count_capital(void *ctx, span sentence) {
    static pattern capital = {
        .regex = "(?<!\\S)(?=\\S*?\\p{Uppercase})[^\\s\\p{Lowercase}\\p{Lt}]+(?!\\S)",
        .flags = PATTERN_UTF};
    buf tokens = {0};
    tokenize(sentence, &tokens);
    *(size_t *)ctx += pattern_count(&capital, (span){buf_str(&tokens), tokens.len});
    buf_release(&tokens);
}

size_t words_count_capital(const punkt_params *p, span text) {
    size_t n = 0;
    punkt_each(p, text, count_capital, &n);
    return n;
}
