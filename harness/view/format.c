#include "harness/view/format.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define MINUS "\xE2\x88\x92" /* U+2212 */

/* ---- numbers ---- */

static void put(char out[FORMAT_MAX], const char *sign, double x, int decimals) {
    if (isfinite(x) && x < 1e15)
        (void)snprintf(out, FORMAT_MAX, "%s%.*f", sign, decimals, x);
    else if (isfinite(x))
        (void)snprintf(out, FORMAT_MAX, "%s%.2e", sign, x);
    else
        (void)snprintf(out, FORMAT_MAX, "%s", FORMAT_NONE);
}

/* Whether the number prints as zero. If so, it gets no sign. The digits decide, since printf rounds
 * a tie to even. */
static bool rounds_to_zero(double x, int decimals) {
    char digits[FORMAT_MAX];
    if (!(fabs(x) < 1))
        return false;
    (void)snprintf(digits, sizeof digits, "%.*f", decimals, fabs(x));
    return digits[strspn(digits, "0.")] == '\0';
}

void format_fixed(double x, int decimals, char out[FORMAT_MAX]) {
    put(out, x < 0 && !rounds_to_zero(x, decimals) ? MINUS : "", fabs(x), decimals);
}

void format_signed(double x, int decimals, char out[FORMAT_MAX]) {
    const char *sign = rounds_to_zero(x, decimals) ? "" : x < 0 ? MINUS : "+";
    put(out, sign, fabs(x), decimals);
}

static void join(const char *lo, const char *hi, char out[FORMAT_MAX]) {
    if (strcmp(lo, FORMAT_NONE) == 0 || strcmp(hi, FORMAT_NONE) == 0)
        (void)snprintf(out, FORMAT_MAX, "%s", FORMAT_NONE);
    else
        (void)snprintf(out, FORMAT_MAX, "[%.20s, %.20s]", lo, hi);
}

void format_range(const double x[2], int decimals, char out[FORMAT_MAX]) {
    char lo[FORMAT_MAX], hi[FORMAT_MAX];
    format_fixed(x[0], decimals, lo);
    format_fixed(x[1], decimals, hi);
    join(lo, hi, out);
}

void format_interval(const double x[2], int decimals, char out[FORMAT_MAX]) {
    char lo[FORMAT_MAX], hi[FORMAT_MAX];
    format_signed(x[0], decimals, lo);
    format_signed(x[1], decimals, hi);
    join(lo, hi, out);
}

void format_science(double x, char out[FORMAT_MAX]) {
    if (isfinite(x))
        (void)snprintf(out, FORMAT_MAX, "%.2e", x);
    else
        (void)snprintf(out, FORMAT_MAX, "%s", FORMAT_NONE);
}

void format_context(int64_t n, char out[FORMAT_MAX]) {
    if (n >= 1024 && n % 1024 == 0)
        (void)snprintf(out, FORMAT_MAX, "%lldk", (long long)(n / 1024));
    else
        (void)snprintf(out, FORMAT_MAX, "%lld", (long long)n);
}

void format_p(double p, char out[FORMAT_MAX]) {
    if (p >= 0 && p < 0.001)
        (void)snprintf(out, FORMAT_MAX, "<0.001");
    else
        format_fixed(p, 3, out);
}

void format_scale_add(format_scale *s, double x) {
    if (x > 0 && isfinite(x) && (s->smallest <= 0 || x < s->smallest))
        s->smallest = x;
}

int format_scale_decimals(const format_scale *s) {
    if (s->smallest <= 0)
        return 1;
    double decimals = 2 - floor(log10(s->smallest));
    return decimals < 0 ? 0 : decimals > 4 ? 4 : (int)decimals;
}

/* ---- escapes ---- */

void format_markdown(buf *out, const char *text) {
    buf shown = {0};
    text_append_shown(&shown, text);
    out->failed |= shown.failed;
    for (const char *s = buf_str(&shown); *s; s++) {
        if (*s == '<')
            (void)buf_puts(out, "&lt;");
        else if (*s == '>')
            (void)buf_puts(out, "&gt;");
        else if (*s == '&')
            (void)buf_puts(out, "&amp;");
        else
            (void)buf_printf(out, "%s%c", strchr("\\`*_[]|#~", *s) ? "\\" : "", *s);
    }
    buf_release(&shown);
}

/* The replacements in LaTeX: for characters with a meaning there, and for some outside ASCII. */
static const struct {
    const char *utf8, *latex;
} kLatex[] = {
    {MINUS, "$-$"},
    {"–", "--"},
    {"—", "---"},
    {"×", "$\\times$"},
    {"±", "$\\pm$"},
    {"µ", "$\\mu$"},
    {"Δ", "$\\Delta$"},
    {"…", "\\ldots{}"},
    {"²", "$^2$"},
    {"·", "$\\cdot$"},
    {"\\", "\\textbackslash{}"},
    {"{", "\\{"},
    {"}", "\\}"},
    {"$", "\\$"},
    {"&", "\\&"},
    {"#", "\\#"},
    {"%", "\\%"},
    {"_", "\\_"},
    {"~", "\\textasciitilde{}"},
    {"^", "\\textasciicircum{}"},
    {"<", "$<$"},
    {">", "$>$"},
    {"|", "$|$"},
    {"\"", "''"},
    {"[", "{[}"}, /* after the end of a row, "[" would start an optional argument */
    {"*", "{*}"}, /* after the end of a row, "*" would belong to its command */
};

static const char *latex_of(const char *s, size_t n) {
    for (size_t i = 0; i < sizeof kLatex / sizeof *kLatex; i++)
        if (strlen(kLatex[i].utf8) == n && memcmp(kLatex[i].utf8, s, n) == 0)
            return kLatex[i].latex;
    if (n > 1)
        return "?";
    return iscntrl((unsigned char)*s) ? " " : NULL;
}

void format_latex(buf *out, const char *s) {
    for (size_t n; *s; s += n) {
        n = text_utf8_len(s, strlen(s));
        n = n ? n : 1;
        const char *latex = latex_of(s, n);
        if (latex)
            (void)buf_puts(out, latex);
        else
            (void)buf_append(out, s, n);
        if (s[0] == '-' && s[1] == '-')
            (void)buf_puts(out, "{}"); /* LaTeX would make a dash of "--" */
    }
}

void format_csv_text(buf *out, const char *s) {
    bool formula = *s && strchr("=+-@\t\r\n", *s);
    bool quoted = formula || strpbrk(s, ",\"\r\n") != NULL;
    (void)buf_puts(out, quoted ? "\"" : "");
    (void)buf_puts(out, formula ? "'" : "");
    for (; *s; s++)
        (void)buf_printf(out, "%s%c", *s == '"' ? "\"" : "", *s);
    (void)buf_puts(out, quoted ? "\"" : "");
}

/* U+FFFE and U+FFFF are well-formed UTF-8, but XML does not allow them. */
static bool is_noncharacter(const char *s, size_t n) {
    return n == 3 && memcmp(s, "\xEF\xBF", 2) == 0 && (unsigned char)s[2] >= 0xBE;
}

void format_xml_cut(buf *out, const char *s, size_t columns) {
    buf clean = {0};
    size_t n;
    for (; columns && *s; columns--, s += n) {
        n = text_utf8_len(s, strlen(s));
        bool bad = !n || is_noncharacter(s, n);
        n = n ? n : 1;
        (void)buf_append(&clean, bad ? "\xEF\xBF\xBD" : s, bad ? 3 : n);
    }
    text_append_xml(out, buf_str(&clean));
    (void)buf_puts(out, *s ? "…" : "");
    out->failed |= clean.failed;
    buf_release(&clean);
}

void format_xml(buf *out, const char *s) {
    format_xml_cut(out, s, SIZE_MAX);
}
