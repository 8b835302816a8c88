/* format.h - numbers as a reader wants them, and escapes for the formats. */
#ifndef SNAPMLA_HARNESS_VIEW_FORMAT_H
#define SNAPMLA_HARNESS_VIEW_FORMAT_H

#include <stdint.h>

#include "base/buf.h"

enum { FORMAT_MAX = 48 };

/* What an absent number (NAN) becomes. */
#define FORMAT_NONE "–"

/* "12.30"; FORMAT_NONE for NAN. A minus sign is U+2212. */
void format_fixed(double x, int decimals, char out[FORMAT_MAX]);
void format_signed(double x, int decimals, char out[FORMAT_MAX]); /* "+0.30", "−0.30", "0.00" */
void format_range(const double x[2], int decimals, char out[FORMAT_MAX]);    /* "[69.8, 90.6]" */
void format_interval(const double x[2], int decimals, char out[FORMAT_MAX]); /* "[−1.0, +2.0]" */
void format_science(double x, char out[FORMAT_MAX]);                         /* "2.6e-02" */
void format_context(int64_t n, char out[FORMAT_MAX]); /* tokens: "8k", "1000" */
void format_p(double p, char out[FORMAT_MAX]);        /* "0.031", "<0.001" */

/* Decimals with which the smallest of @n positive numbers keeps three digits, so that a column of
 * them lines up: 0..4. */
typedef struct {
    double smallest; /* start with 0 */
} format_scale;
void format_scale_add(format_scale *s, double x);
int format_scale_decimals(const format_scale *s);

/* Appends: text in which nothing is markup. Line breaks become spaces. */
void format_markdown(buf *out, const char *s);
void format_latex(buf *out, const char *s);

/* Appends one CSV field (RFC 4180). A text that a spreadsheet would take for a formula gets a
 * leading apostrophe. */
void format_csv_text(buf *out, const char *s);

/* Appends for XML and HTML, text or attribute: markup escaped, malformed UTF-8 and what XML 1.0 has
 * no place for replaced by U+FFFD. The second one stops after @columns code points with "…". */
void format_xml(buf *out, const char *s);
void format_xml_cut(buf *out, const char *s, size_t columns);

#endif
