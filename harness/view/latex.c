/* latex.c - writes a table for \input. It uses booktabs and graphicx, and prints only the columns
 * with `paper` set. Numbers are aligned to the right. A table that is wider than the text is scaled
 * down. A table with more than kPartRows rows becomes several, which are scaled alike. */
#include <stdio.h>
#include <string.h>

#include "harness/view/format.h"
#include "harness/view/writers.h"

enum {
    kPartRows = 40, /* as many rows fit on a page */
    kWrapped = 44   /* longer text is broken into lines, in a column as wide as this */
};

static int paper_columns(const table *t) {
    int n = 0;
    for (int c = 0; c < t->n_columns; c++)
        n += t->columns[c].paper;
    return n;
}

/* The row with the longest cell of a column. */
static size_t widest_row(const table *t, int c) {
    size_t widest = 0;
    for (size_t r = 1; r < t->n_rows; r++)
        if (strlen(table_at(t, r, c)) > strlen(table_at(t, widest, c)))
            widest = r;
    return widest;
}

static size_t width_of(const table *t, int c) {
    return strlen(table_at(t, widest_row(t, c), c));
}

/* Whether the column has long text that can be broken into lines. Paths cannot. */
static bool wraps(const table *t, int c) {
    if (t->columns[c].kind == TABLE_NUMBER || width_of(t, c) <= kWrapped)
        return false;
    for (size_t r = 0; r < t->n_rows; r++)
        for (const char *word = table_at(t, r, c); *word; word += *word == ' ') {
            size_t n = strcspn(word, " ");
            if (n > kWrapped / 2)
                return false;
            word += n;
        }
    return true;
}

static void alignment(buf *out, const table *t) {
    for (int c = 0; c < t->n_columns; c++)
        if (t->columns[c].paper)
            (void)buf_puts(out, wraps(t, c)                          ? "p{20em}"
                                : t->columns[c].kind == TABLE_NUMBER ? "r"
                                                                     : "l");
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

/* Writes the header of a column. Words that do not fit in the width of the cells go to further
 * lines. */
static void head(buf *out, const table *t, int c) {
    const char *text = t->columns[c].head;
    size_t width = width_of(t, c), used = 0;
    bool breaks = strlen(text) > width && strchr(text, ' ');
    if (breaks)
        (void)buf_printf(out, "\\shortstack[%c]{", t->columns[c].kind == TABLE_NUMBER ? 'r' : 'l');
    while (*text) {
        char word[TABLE_CELL];
        size_t n = strcspn(text, " ");
        (void)snprintf(word, sizeof word, "%.*s", (int)n, text);
        if (used)
            (void)buf_puts(out, breaks && used + 1 + n > width ? "\\\\" : " ");
        used = used && !(breaks && used + 1 + n > width) ? used + 1 + n : n;
        format_latex(out, word);
        text += n + (text[n] == ' ');
    }
    (void)buf_puts(out, breaks ? "}" : "");
}

typedef enum { ROW_HEADS, ROW_CELLS, ROW_WIDEST } row_kind;

static void cell(buf *out, const table *t, size_t r, int c, row_kind kind) {
    if (kind == ROW_HEADS) {
        head(out, t, c);
    } else if (kind == ROW_CELLS) {
        format_latex(out, table_at(t, r, c));
    } else if (!wraps(t, c)) {
        (void)buf_puts(out, "\\hphantom{");
        format_latex(out, table_at(t, widest_row(t, c), c));
        (void)buf_puts(out, "}");
    }
}

/* Writes one row. ROW_WIDEST: the longest cell of each column, invisible. */
static void row(buf *out, const table *t, size_t r, row_kind kind) {
    bool first = true;
    for (int c = 0; c < t->n_columns; c++) {
        if (!t->columns[c].paper)
            continue;
        (void)buf_puts(out, first ? "" : " & ");
        cell(out, t, r, c, kind);
        first = false;
    }
    (void)buf_puts(out, kind == ROW_WIDEST ? " \\\\[-\\normalbaselineskip]\n" : " \\\\\n");
}

static void header(buf *out, const table *t) {
    (void)buf_puts(out, "\\toprule\n");
    if (has_groups(t))
        group_row(out, t);
    row(out, t, 0, ROW_HEADS);
    (void)buf_puts(out, "\\midrule\n");
}

static void caption(buf *out, const table *t) {
    (void)buf_puts(out, "\\caption{");
    format_latex(out, t->caption);
    (void)buf_printf(out, ". ");
    format_latex(out, t->note);
    (void)buf_printf(out, "}\\label{tab:snapmla-%s}", t->id);
}

/* Writes the rows from `first` to `end` - 1. Parts of a table have columns of equal width, because
 * each has the longest cells of the whole table. */
static void write_part(const table *t, size_t first, size_t end, buf *out) {
    size_t parts = (t->n_rows + kPartRows - 1) / kPartRows;
    (void)buf_puts(out, "\\begin{table*}\n\\centering\\small\n");
    if (first == 0)
        caption(out, t);
    else
        (void)buf_printf(out, "Table~\\ref{tab:snapmla-%s}, part %zu of %zu\\par\\smallskip", t->id,
                         first / kPartRows + 1, parts);
    (void)buf_printf(out, "\n%s\\sbox0{%%\n\\begin{tabular}{",
                     parts > 1 ? "\\setlength{\\tabcolsep}{3pt}" : "");
    alignment(out, t);
    (void)buf_puts(out, "}\n");
    header(out, t);
    for (size_t r = first; r < end; r++)
        row(out, t, r, ROW_CELLS);
    if (parts > 1)
        row(out, t, 0, ROW_WIDEST);
    (void)buf_puts(out, "\\bottomrule\n\\end{tabular}}%\n"
                        "\\ifdim\\wd0>\\textwidth\\resizebox{\\textwidth}{!}{\\usebox0}"
                        "\\else\\usebox0\\fi\n\\end{table*}\n");
}

void write_latex(const table *t, buf *out) {
    out->failed |= t->failed;
    (void)buf_printf(out, "%% %d columns; needs \\usepackage{booktabs,graphicx}\n",
                     paper_columns(t));
    size_t first = 0;
    do {
        size_t end = first + kPartRows < t->n_rows ? first + kPartRows : t->n_rows;
        write_part(t, first, end, out);
        first = end;
    } while (first < t->n_rows);
}
