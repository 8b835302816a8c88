#include "evals/math/math_wording.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "evals/math/math_rewriter.h"

enum { kWord = 16 }; /* longer words have no meaning here */

/* A word in lower case; n = 0 if none begins at the place. */
typedef struct {
    char s[kWord];
    size_t n;
    const char *end;
} word;

static word read_word(const rewriter *r, const char *s) {
    word w = {.end = s};
    for (; w.end < r->end && is_letter(*w.end); w.end++)
        if (w.n < kWord)
            w.s[w.n++] = (char)(*w.end | 32);
    return w;
}

static bool word_is(const word *w, const char *name) {
    return span_is(w->s, w->n, name);
}

/* ---- number words ---- */

static const char *const small_numbers[] = {
    "zero",     "one",     "two",     "three",     "four",     "five",     "six",
    "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",   "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
};
static const char *const tens[] = {"twenty", "thirty",  "forty",  "fifty",
                                   "sixty",  "seventy", "eighty", "ninety"};
static const struct {
    const char *name;
    int value;
} parts[] = {{"half", 2},       {"third", 3},      {"quarter", 4},    {"fourth", 4},
             {"fifth", 5},      {"sixth", 6},      {"seventh", 7},    {"eighth", 8},
             {"ninth", 9},      {"tenth", 10},     {"eleventh", 11},  {"twelfth", 12},
             {"sixteenth", 16}, {"twentieth", 20}, {"hundredth", 100}};

/* The number that a word below one hundred stands for; -1: none. */
static int small_number(const word *w) {
    for (size_t i = 0; i < COUNT(small_numbers); i++)
        if (word_is(w, small_numbers[i]))
            return (int)i;
    for (size_t i = 0; i < COUNT(tens); i++)
        if (word_is(w, tens[i]))
            return (int)(20 + 10 * i);
    return -1;
}

/* The denominator of "thirds" or "half"; 0: none. */
static int denominator(const word *w) {
    if (word_is(w, "halves"))
        return 2;
    for (size_t i = 0; i < COUNT(parts); i++) {
        size_t n = strlen(parts[i].name);
        bool plural = w->n == n + 1 && w->s[n] == 's';
        if ((w->n == n || plural) && memcmp(w->s, parts[i].name, n) == 0)
            return parts[i].value;
    }
    return 0;
}

static const char *skip_joint(const rewriter *r, const char *s) {
    while (s < r->end && (is_space(*s) || *s == '-'))
        s++;
    return s;
}

/* Reads "two hundred and three" at @s. Returns its end; NULL if there is no number word. */
static const char *read_number(const rewriter *r, const char *s, int64_t *value) {
    int64_t total = 0, group = 0;
    const char *end = NULL;
    bool scaled = false; /* the last word was "hundred" or "thousand" */
    for (word w = read_word(r, s); w.n; w = read_word(r, skip_joint(r, w.end))) {
        int n = small_number(&w);
        if (n >= 0 && (!end || (n > 0 && group % (n < 10 ? 10 : 100) == 0 &&
                                (n >= 10 || group % 100 != 10) && (scaled || n < 10)))) {
            group += n;
            scaled = false;
        } else if (word_is(&w, "hundred") && end && group > 0 && group < 100) {
            group *= 100;
            scaled = true;
        } else if (word_is(&w, "thousand") && end && group > 0 && total == 0) {
            total = group * 1000;
            group = 0;
            scaled = true;
        } else if (!(word_is(&w, "and") && scaled)) {
            break;
        } else {
            continue;
        }
        end = w.end;
    }
    *value = total + group;
    return end;
}

/* Removes the macro of a \text from the end of the output, if it ends with one, so that a number
 * can come before it. Returns the macro. */
static math_span take_macro(rewriter *r) {
    size_t i = r->used;
    if (!i || r->out[i - 1] != '{')
        return (math_span){0};
    for (i--; i && is_letter(r->out[i - 1]); i--)
        continue;
    if (!i || r->out[i - 1] != '\\')
        return (math_span){0};
    const math_spelling *c = math_find_command(r->out + i, r->used - 1 - i);
    if (!c || c->kind != kText)
        return (math_span){0};
    math_span macro = {r->out + i - 1, (uint32_t)(r->used - i + 1)};
    r->used = i - 1;
    return macro;
}

static void put_number(rewriter *r, const char *digits) {
    char macro[2 * kWord];
    math_span m = take_macro(r);
    uint32_t n = m.len <= sizeof macro ? m.len : 0;
    memcpy(macro, m.len ? m.s : "", n);
    puts_to(r, digits);
    if (n)
        puts_to(r, " ");
    put(r, macro, n);
}

/* The end of "and a half" or "and three quarters" after a number; NULL if it does not follow.
 * @quarters: how many quarters the words are. */
static const char *skip_part(const rewriter *r, const char *s, int *quarters) {
    static const struct {
        const char *words;
        int quarters;
    } table[] = {{" and a half", 2},
                 {" and one half", 2},
                 {" and a quarter", 1},
                 {" and one quarter", 1},
                 {" and three quarters", 3}};
    for (size_t i = 0; i < COUNT(table); i++) {
        const char *end = s + strlen(table[i].words);
        if (starts(r, s, table[i].words) && (end == r->end || !is_letter(*end))) {
            *quarters = table[i].quarters;
            return end;
        }
    }
    return NULL;
}

static bool rewrite_number_word(rewriter *r) {
    char digits[64];
    int64_t value;
    word first = read_word(r, r->s);
    int parts_of = denominator(&first);
    const char *end = parts_of == 2 ? first.end : read_number(r, r->s, &value);
    if (!end)
        return false;
    word next = read_word(r, skip_joint(r, end));
    int quarters;
    const char *mixed = parts_of == 2 ? NULL : skip_part(r, end, &quarters);
    if (mixed) {
        (void)snprintf(digits, sizeof digits, "\\frac{%ld}{4}", (long)(4 * value + quarters));
        end = mixed;
    } else if (parts_of == 2) {
        (void)snprintf(digits, sizeof digits, "\\frac{1}{2}");
    } else if ((parts_of = denominator(&next)) > 0) {
        (void)snprintf(digits, sizeof digits, "\\frac{%ld}{%d}", (long)value, parts_of);
        end = next.end;
    } else if (value == 1 && (word_is(&next, "of") || word_is(&next, "to"))) {
        return false; /* "one of them", "one to one" */
    } else {
        (void)snprintf(digits, sizeof digits, "%ld", (long)value);
    }
    put_number(r, digits);
    r->s = end;
    return true;
}

/* ---- signs and bases ---- */

/* Rewrites "negative 5" and "minus 5" as -5. */
static bool rewrite_sign_word(rewriter *r, const word *w) {
    if (!word_is(w, "negative") && !word_is(w, "minus"))
        return false;
    puts_to(r, "-");
    r->s = w->end;
    return true;
}

static void drop_output(rewriter *r, const char *text) {
    while (r->used && is_space(r->out[r->used - 1]))
        r->used--;
    size_t n = strlen(text);
    if (r->used >= n && memcmp(r->out + r->used - n, text, n) == 0)
        r->used -= n;
}

/* Rewrites "2516 (base 8)" and "2516 in base 8": the base becomes a subscript. */
static bool rewrite_base(rewriter *r, const word *w) {
    char digits[32];
    int64_t value = 0;
    if (!word_is(w, "base") || !r->used || r->out[r->used - 1] == '{')
        return false;
    const char *s = skip_spaces(r, w->end), *end = skip_digits(r, s);
    if (end > s && end - s <= 3) {
        for (const char *c = s; c < end; c++)
            value = 10 * value + (*c - '0');
    } else {
        end = read_number(r, s, &value);
    }
    if (!end || value < 2 || value > 64)
        return false;
    drop_output(r, "(");
    drop_output(r, " in");
    drop_output(r, "");
    if (!r->used || !is_digit(r->out[r->used - 1]))
        return false;
    (void)snprintf(digits, sizeof digits, "_{%ld}", (long)value);
    puts_to(r, digits);
    r->s = end + (end < r->end && *end == ')');
    return true;
}

/* Rewrites "\text{18 apples}": the number is put before the \text. Nothing is rewritten if the noun
 * has other characters than letters and spaces, such as a second number. */
static bool rewrite_counted_noun(rewriter *r) {
    static const char macro[] = "\\text{";
    if (!starts(r, r->s, macro))
        return false;
    const char *s = r->s + strlen(macro), *end = skip_digits(r, s), *stop = end;
    while (stop < r->end && (is_letter(*stop) || *stop == ' '))
        stop++;
    static const char *const functions[] = {"squared", "cubed", "factorial"};
    if (end == s || end == stop || *end != ' ' || stop == r->end || *stop != '}')
        return false;
    for (size_t i = 0; i < COUNT(functions); i++)
        if (memmem(end, (size_t)(stop - end), functions[i], strlen(functions[i])))
            return false;
    put(r, s, (size_t)(end - s));
    puts_to(r, " ");
    puts_to(r, macro);
    r->s = end;
    return true;
}

bool math_read_words(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    rewriter r = {.begin = s, .s = s, .end = s + n, .out = out, .cap = cap};
    const char *sign = math_find_phrase(s, n);
    bool changed = sign != NULL;
    if (sign) {
        puts_to(&r, sign);
        r.s = r.end;
    }
    while (r.s < r.end && !r.full) {
        bool starts_word =
            is_letter(*r.s) && (r.s == r.begin || (!is_letter(r.s[-1]) && r.s[-1] != '\\'));
        word w = read_word(&r, r.s);
        if (rewrite_counted_noun(&r) ||
            (starts_word &&
             (rewrite_number_word(&r) || rewrite_sign_word(&r, &w) || rewrite_base(&r, &w))))
            changed = true;
        else
            put(&r, r.s++, 1);
    }
    *len = r.used;
    return changed && !r.full;
}

bool math_read_ratio(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    rewriter r = {.begin = s, .s = s, .end = s + n, .out = out, .cap = cap};
    static const char *const spellings[] = {" to ", "\\text{ to }", "\\text{to}"};
    bool changed = false;
    while (r.s < r.end && !r.full) {
        size_t i = 0;
        while (i < COUNT(spellings) && !starts(&r, r.s, spellings[i]))
            i++;
        if (i < COUNT(spellings)) {
            puts_to(&r, ":");
            r.s += strlen(spellings[i]);
            changed = true;
        } else {
            put(&r, r.s++, 1);
        }
    }
    *len = r.used;
    return changed && !r.full;
}

bool math_reduce_ratio(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    enum { kMembers = 6, kDigits = 9 };
    int64_t member[kMembers], common = 0;
    int count = 0;
    rewriter r = {.begin = s, .s = s, .end = s + n, .out = out, .cap = cap};
    for (const char *c = s; c < r.end; c++) {
        const char *digits = skip_spaces(&r, c), *end = skip_digits(&r, digits);
        if (end == digits || end - digits > kDigits || count == kMembers)
            return false;
        for (member[count] = 0; digits < end; digits++)
            member[count] = 10 * member[count] + (*digits - '0');
        for (int64_t a = member[count++]; a;) {
            int64_t rest = common % a;
            common = a;
            a = rest;
        }
        c = skip_spaces(&r, end);
        if (c < r.end && *c != ':')
            return false;
    }
    for (int i = 0; i < count && common > 1; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "%s%lld", i ? ":" : "", (long long)(member[i] / common));
        puts_to(&r, text);
    }
    *len = r.used;
    return count > 2 && common > 1 && !r.full;
}

/* ---- layout ---- */

bool math_drop_left_side(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    const char *right = NULL;
    int depth = 0;
    for (const char *c = s; c < s + n; c++) {
        if (*c == '\\' && c + 1 < s + n && strchr(",;:! ", c[1])) {
            c++; /* a space */
            continue;
        }
        depth += (*c == '{' || *c == '(' || *c == '[') - (*c == '}' || *c == ')' || *c == ']');
        if (depth == 0 && (*c == ',' || *c == ';'))
            return false;
        bool equation = *c == '=' && c > s && !strchr("<>!:=\\", c[-1]);
        if (depth == 0 && equation)
            right = c + 1;
    }
    size_t rest = right ? (size_t)(s + n - right) : 0;
    if (!rest || rest > cap)
        return false;
    memcpy(out, right, rest);
    *len = rest;
    return true;
}

/* The end of a decimal at @s; NULL if there is none or if it has fewer than two decimals. */
static const char *decimal_end(const char *s, const char *end) {
    while (s < end && is_digit(*s))
        s++;
    const char *point = s;
    for (s += s < end && *s == '.'; s < end && is_digit(*s);)
        s++;
    return s - point >= 3 ? s : NULL;
}

bool math_drop_rounding(const char *s, size_t n, const char *g, size_t gn, char *out, char *check,
                        char *digits, size_t cap, size_t *len) {
    const char *right, *end = s + n;
    size_t rest, m = 0;
    if (!math_drop_left_side(s, n, out, cap, &rest))
        return false;
    for (right = end - rest; right < end && (is_space(*right) || *right == '$');)
        right++;
    const char *stop = decimal_end(right, end);
    int decimals = 0;
    if (!stop || gn > cap / 2)
        return false;
    for (const char *c = stop; c < end; c++)
        if (!is_space(*c) && *c != '.' && *c != '$')
            return false;
    for (const char *c = right; c < stop && m + 1 < cap; c++) {
        if (*c != '.')
            digits[m++] = *c;
        decimals += *c == '.' ? (int)(stop - c) - 1 : 0;
    }
    digits[m] = '\0';
    *len = (size_t)(end - rest - 1 - s);
    memcpy(out, s, *len);
    int used = snprintf(check, cap, "\\lfloor (%.*s) \\cdot 10^{%d} + \\frac{1}{2} \\rfloor",
                        (int)gn, g, decimals);
    return used > 0 && (size_t)used < cap;
}

bool math_read_wide_spaces(const char *s, size_t n, char *out, size_t cap, size_t *len) {
    rewriter r = {.begin = s, .s = s, .end = s + n, .out = out, .cap = cap};
    bool changed = false;
    while (r.s < r.end && !r.full) {
        size_t wide = starts(&r, r.s, "\\qquad") ? 6 : starts(&r, r.s, "\\quad") ? 5 : 0;
        if (wide)
            puts_to(&r, ", ");
        else
            put(&r, r.s, 1);
        r.s += wide ? wide : 1;
        changed |= wide > 0;
    }
    *len = r.used;
    return changed && !r.full;
}
