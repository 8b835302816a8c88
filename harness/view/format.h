/* format.h - formats numbers for readers and escapes text for the output formats. */
#ifndef SNAPMLA_HARNESS_VIEW_FORMAT_H
#define SNAPMLA_HARNESS_VIEW_FORMAT_H

#include <stdint.h>

#include "base/buf.h"

enum { FORMAT_MAX = 48 };

/* The text for an absent number (NAN) and for an infinite one. */
#define FORMAT_NONE "–"

/* "12.30"; FORMAT_NONE for NAN. A minus sign is U+2212. From 1e15 on as "1.25e+15". */
void format_fixed(double x, int decimals, char out[FORMAT_MAX]);
void format_signed(double x, int decimals, char out[FORMAT_MAX]); /* "+0.30", "−0.30", "0.00" */
void format_range(const double x[2], int decimals, char out[FORMAT_MAX]);    /* "[69.8, 90.6]" */
void format_interval(const double x[2], int decimals, char out[FORMAT_MAX]); /* "[−1.0, +2.0]" */
void format_science(double x, char out[FORMAT_MAX]);                         /* "2.60e-02" */
void format_context(int64_t n, char out[FORMAT_MAX]); /* tokens: "8k", "1000" */
void format_p(double p, char out[FORMAT_MAX]);        /* "0.031", "<0.001" */

/* The number of decimals with which the smallest of several positive numbers has three significant
 * digits, limited to 0..4, so that a column of them lines up. */
typedef struct {
    double smallest; /* start with 0 */
} format_scale;
void format_scale_add(format_scale *s, double x);
int format_scale_decimals(const format_scale *s);

/* Appends text so that nothing in it is markup. In Markdown, the text is shown as by text_show().
 * In LaTeX, control characters become spaces, and "?" replaces a character outside ASCII that has
 * no replacement. */
void format_markdown(buf *out, const char *text);
void format_latex(buf *out, const char *s);

/* Appends one CSV field (RFC 4180). A text that a spreadsheet would treat as a formula gets a
 * leading apostrophe. */
void format_csv_text(buf *out, const char *s);

/* Appends text for XML and HTML, as content or attribute. Markup is escaped. Malformed UTF-8 and
 * characters that XML 1.0 does not allow are replaced by U+FFFD. format_xml_cut() stops after
 * @columns code points; if text is left, "…" follows. */
void format_xml(buf *out, const char *s);
void format_xml_cut(buf *out, const char *s, size_t columns);

#endif
