/* html_table.c - writes a table as HTML: caption, heads, rows, note. */
#include <string.h>

#include "base/text.h"
#include "harness/view/format.h"
#include "harness/view/writers.h"

enum { kCellMax = 300 }; /* longer cells are cut after so many characters */

static void text(buf *out, const char *s) {
    format_xml(out, s);
}

static bool is_wide(const table *t, int c) {
    static const char *const wide[] = {"reason", "method", "model", "file", "source", "command"};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (strcmp(t->columns[c].head, wide[i]) == 0)
            return true;
    return false;
}

static const char *class_of(const table *t, int c) {
    if (t->columns[c].kind == TABLE_NUMBER)
        return "";
    return is_wide(t, c) ? " class=\"t w\"" : " class=\"t\"";
}

static void group_row(buf *out, const table *t) {
    bool any = false;
    for (int c = 0; c < t->n_columns; c++)
        any |= t->columns[c].group[0] != '\0';
    if (!any)
        return;
    (void)buf_puts(out, "<tr class=\"g\">");
    for (int c = 0, n; c < t->n_columns; c += n) {
        const char *group = t->columns[c].group;
        for (n = 1; c + n < t->n_columns && strcmp(t->columns[c + n].group, group) == 0;)
            n++;
        if (group[0]) {
            (void)buf_printf(out, "<th scope=\"colgroup\" colspan=\"%d\">", n);
            text(out, group);
            (void)buf_puts(out, "</th>");
        } else {
            (void)buf_printf(out, "<td colspan=\"%d\"></td>", n);
        }
    }
    (void)buf_puts(out, "</tr>\n");
}

static void head_row(buf *out, const table *t) {
    (void)buf_puts(out, "<tr>");
    for (int c = 0; c < t->n_columns; c++) {
        (void)buf_printf(out, "<th scope=\"col\"%s>", class_of(t, c));
        text(out, t->columns[c].head);
        (void)buf_puts(out, "</th>");
    }
    (void)buf_puts(out, "</tr>\n");
}

static const char *verdict_class(const char *verdict) {
    static const char *const classes[][2] = {{"equivalent", "badge v-equivalent"},
                                             {"not shown", "badge v-open"},
                                             {"different", "badge v-different"},
                                             {"sees damage", "badge v-equivalent"},
                                             {"blind", "badge v-open"}};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (text_starts(verdict, classes[i][0]))
            return classes[i][1];
    return "badge";
}

static void cell(buf *out, const table *t, size_t row, int c) {
    const char *s = table_at(t, row, c);
    (void)buf_printf(out, c ? "<td%s>" : "<th scope=\"row\"%s>", c ? class_of(t, c) : "");
    if (t->columns[c].kind == TABLE_VERDICT)
        (void)buf_printf(out, "<span class=\"%s\">", verdict_class(s));
    else if (t->columns[c].kind == TABLE_FLAGS && s[0])
        (void)buf_puts(out, "<span class=\"flag\">");
    format_xml_cut(out, s, kCellMax);
    if (t->columns[c].kind == TABLE_VERDICT || (t->columns[c].kind == TABLE_FLAGS && s[0]))
        (void)buf_puts(out, "</span>");
    (void)buf_puts(out, c ? "</td>" : "</th>");
}

void write_html(const table *t, buf *out) {
    out->failed |= t->failed;
    (void)buf_printf(
        out,
        "<div class=\"scroll%s\" tabindex=\"0\" role=\"region\" "
        "aria-labelledby=\"%s-caption\">\n<table id=\"%s\"><caption id=\"%s-caption\"><span>",
        t->whole ? " whole" : "", t->id, t->id, t->id);
    text(out, t->caption);
    (void)buf_puts(out, "</span></caption>\n<thead>\n");
    group_row(out, t);
    head_row(out, t);
    (void)buf_puts(out, "</thead>\n<tbody>\n");
    for (size_t r = 0; r < t->n_rows; r++) {
        (void)buf_puts(out, "<tr>");
        for (int c = 0; c < t->n_columns; c++)
            cell(out, t, r, c);
        (void)buf_puts(out, "</tr>\n");
    }
    (void)buf_puts(out, "</tbody></table></div>\n");
    if (!t->note[0])
        return;
    (void)buf_puts(out, "<p class=\"note\">");
    text(out, t->note);
    (void)buf_puts(out, "</p>\n");
}
