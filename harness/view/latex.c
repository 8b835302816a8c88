/* latex.c - writes a table for \input. It uses booktabs and prints only the columns with `paper`
 * set. Numbers are aligned to the right. A table with at most kPageRows rows is scaled down if it
 * is wider than the text. */
#include <string.h>

#include "harness/view/format.h"
#include "harness/view/writers.h"

enum { kPageRows = 40 }; /* a table with more rows is a longtable, which breaks over pages */

static int paper_columns(const table *t) {
    int n = 0;
    for (int c = 0; c < t->n_columns; c++)
        n += t->columns[c].paper;
    return n;
}

static void alignment(buf *out, const table *t) {
    for (int c = 0; c < t->n_columns; c++)
        if (t->columns[c].paper)
            (void)buf_puts(out, t->columns[c].kind == TABLE_NUMBER ? "r" : "l");
}

/* The number of printed columns in the group that begins at column c. *next: the column after the
 * group. */
static int span(const table *t, int c, int *next) {
    int n = 0, i = c;
    for (; i < t->n_columns && strcmp(t->columns[i].group, t->columns[c].group) == 0; i++)
        n += t->columns[i].paper;
    *next = i;
    return n;
}

static void group_row(buf *out, const table *t) {
    buf rules = {0};
    int at = 1;
    for (int c = 0, next; c < t->n_columns; c = next) {
        int n = span(t, c, &next);
        if (!n)
            continue;
        (void)buf_puts(out, at > 1 ? " & " : "");
        (void)buf_printf(out, "\\multicolumn{%d}{c}{", n);
        format_latex(out, t->columns[c].group);
        (void)buf_puts(out, "}");
        if (t->columns[c].group[0])
            (void)buf_printf(&rules, "\\cmidrule(lr){%d-%d}", at, at + n - 1);
        at += n;
    }
    (void)buf_printf(out, " \\\\\n%s\n", buf_str(&rules));
    out->failed |= rules.failed;
    buf_release(&rules);
}

static bool has_groups(const table *t) {
    for (int c = 0; c < t->n_columns; c++)
        if (t->columns[c].paper && t->columns[c].group[0])
            return true;
    return false;
}

static void row(buf *out, const table *t, size_t r, bool head) {
    bool first = true;
    for (int c = 0; c < t->n_columns; c++) {
        if (!t->columns[c].paper)
            continue;
        (void)buf_puts(out, first ? "" : " & ");
        format_latex(out, head ? t->columns[c].head : table_at(t, r, c));
        first = false;
    }
    (void)buf_puts(out, " \\\\\n");
}

static void header(buf *out, const table *t) {
    (void)buf_puts(out, "\\toprule\n");
    if (has_groups(t))
        group_row(out, t);
    row(out, t, 0, true);
    (void)buf_puts(out, "\\midrule\n");
}

static void caption(buf *out, const table *t) {
    (void)buf_puts(out, "\\caption{");
    format_latex(out, t->caption);
    (void)buf_printf(out, ". ");
    format_latex(out, t->note);
    (void)buf_printf(out, "}\\label{tab:snapmla-%s}", t->id);
}

/* Writes a table that breaks over pages, in small type. */
static void write_long(const table *t, buf *out) {
    (void)buf_puts(out, "{\\scriptsize\\setlength{\\tabcolsep}{2pt}\n\\begin{longtable}{");
    alignment(out, t);
    (void)buf_puts(out, "}\n");
    caption(out, t);
    (void)buf_puts(out, "\\\\\n");
    header(out, t);
    (void)buf_puts(out, "\\endhead\n\\bottomrule\n\\endfoot\n");
    for (size_t r = 0; r < t->n_rows; r++)
        row(out, t, r, false);
    (void)buf_puts(out, "\\end{longtable}}\n");
}

/* Writes a table on one page. It is scaled down if it is wider than the text. */
static void write_float(const table *t, buf *out) {
    (void)buf_puts(out, "\\begin{table*}\n\\centering\\small\n");
    caption(out, t);
    (void)buf_puts(out, "\n\\sbox0{%\n\\begin{tabular}{");
    alignment(out, t);
    (void)buf_puts(out, "}\n");
    header(out, t);
    for (size_t r = 0; r < t->n_rows; r++)
        row(out, t, r, false);
    (void)buf_puts(out, "\\bottomrule\n\\end{tabular}}%\n"
                        "\\ifdim\\wd0>\\textwidth\\resizebox{\\textwidth}{!}{\\usebox0}"
                        "\\else\\usebox0\\fi\n\\end{table*}\n");
}

void write_latex(const table *t, buf *out) {
    out->failed |= t->failed;
    bool is_long = t->n_rows > kPageRows;
    (void)buf_printf(out, "%% %d columns; needs \\usepackage{booktabs,%s}\n", paper_columns(t),
                     is_long ? "longtable" : "graphicx");
    if (is_long)
        write_long(t, out);
    else
        write_float(t, out);
}
