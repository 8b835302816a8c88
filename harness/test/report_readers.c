#include "harness/test/report_readers.h"

#include <CUnit/CUnit.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "harness/view/figures.h"
#include "harness/view/outline.h"
#include "harness/view/pages.h"
#include "harness/view/writers.h"

/* ---- XML ---- */

typedef struct {
    const char *p;
    const char *open[64]; /* names of the open elements */
    size_t lengths[64];
    int depth;
    const char *why; /* NULL = well-formed so far */
} xml;

static size_t name_length(const char *p) {
    size_t n = 0;
    while (isalnum((unsigned char)p[n]) || (p[n] && strchr("-:_", p[n])))
        n++;
    return n;
}

static void entity(xml *x) {
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(x->p, known[i], strlen(known[i])) == 0) {
            x->p += strlen(known[i]);
            return;
        }
    x->why = "a bare ampersand";
}

static void attributes(xml *x) {
    while (!x->why && *x->p == ' ') {
        size_t n = name_length(++x->p);
        x->p += n;
        if (!n || strncmp(x->p, "=\"", 2) != 0) {
            x->why = "a malformed attribute";
            return;
        }
        for (x->p += 2; *x->p && *x->p != '"' && !x->why;) {
            if (*x->p == '<')
                x->why = "'<' in an attribute";
            else if (*x->p == '&')
                entity(x);
            else
                x->p++;
        }
        x->p++;
    }
}

static void open_tag(xml *x) {
    const char *name = ++x->p;
    size_t n = name_length(name);
    x->p += n;
    attributes(x);
    if (x->why)
        return;
    if (strncmp(x->p, "/>", 2) == 0) {
        x->p += 2;
    } else if (*x->p == '>' && n && x->depth < 64) {
        x->p++;
        x->open[x->depth] = name;
        x->lengths[x->depth++] = n;
    } else {
        x->why = "a malformed tag";
    }
}

static void close_tag(xml *x) {
    x->p += 2;
    size_t n = name_length(x->p);
    bool matches = x->depth && x->lengths[x->depth - 1] == n &&
                   strncmp(x->open[x->depth - 1], x->p, n) == 0 && x->p[n] == '>';
    if (!matches)
        x->why = "a closing tag that matches none";
    x->depth--;
    x->p += n + 1;
}

const char *xml_fault(const char *text) {
    xml x = {.p = text};
    if (strncmp(x.p, "<!DOCTYPE html>\n", 16) == 0)
        x.p += 16;
    while (*x.p && !x.why) {
        unsigned char c = (unsigned char)*x.p;
        if (c == '<' && x.p[1] == '/')
            close_tag(&x);
        else if (c == '<')
            open_tag(&x);
        else if (c == '&')
            entity(&x);
        else if (c < 0x20 && c != '\n')
            x.why = "a control character";
        else
            x.p++;
    }
    return x.why ? x.why : x.depth ? "an element is not closed" : NULL;
}

void expect_xml(const char *text) {
    const char *why = xml_fault(text);
    if (why)
        printf("\n  XML: %s", why);
    CU_ASSERT_PTR_NULL(why);
    const char *script = strstr(text, "<script"); /* only page.js may follow */
    CU_ASSERT(!script || text_starts(script, "<script>// page.js"));
    CU_ASSERT(!script || !strstr(script + 1, "<script"));
    CU_ASSERT_PTR_NULL(strstr(text, "\"nan"));
    CU_ASSERT_PTR_NULL(strstr(text, "\"inf"));
    CU_ASSERT_PTR_NULL(strstr(text, "\"-nan"));
    CU_ASSERT_PTR_NULL(strstr(text, "\xEF\xBF\xBF"));
}

/* ---- pages and tables ---- */

size_t count_of(const char *text, const char *what) {
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
        n++;
    return n;
}

/* Counts unescaped column separators: '|' in Markdown, '&' in LaTeX. A mark after '$' is text. */
static size_t marks(const char *line, size_t n, char mark) {
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        if (line[i] == '\\')
            i++;
        else if (line[i] == mark && !(i && line[i - 1] == '$'))
            found++;
    }
    return found;
}

/* Checks that all lines of one table have the same number of columns. */
static void check_columns(const char *text, const char *starts, char mark) {
    size_t want = 0;
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n"), got = marks(line, n, mark);
        bool in_table = starts ? line[0] == *starts : got > 0;
        if (in_table && want) {
            CU_ASSERT_EQUAL(got, want);
        }
        want = in_table ? got : 0;
        line += n + (line[n] == '\n');
    }
}

static void check_braces(const char *tex) {
    int depth = 0;
    for (const char *p = tex; *p && depth >= 0; p++) {
        if (*p == '\\' && p[1])
            p++;
        else
            depth += (*p == '{') - (*p == '}');
    }
    CU_ASSERT_EQUAL(depth, 0);
}

void expect_latex(const report_model *m, report_table_fn build) {
    arena mem = {0};
    table t;
    buf out = {0};
    CU_ASSERT(build(m, &mem, &t));
    write_latex(&t, &out);
    check_braces(buf_str(&out));
    const char *body = strstr(buf_str(&out), "\\midrule");
    CU_ASSERT_PTR_NOT_NULL_FATAL(body);
    check_columns(body, NULL, '&');
    CU_ASSERT_PTR_NULL(strstr(body, "\\input"));
    for (const char *p = out.data; *p; p++)
        CU_ASSERT((unsigned char)*p < 0x80 && (*p == '\n' || !iscntrl((unsigned char)*p)));
    buf_release(&out);
    arena_release(&mem);
}

void expect_page(const char *page) {
    expect_xml(page);
    CU_ASSERT_EQUAL(count_of(page, "http://"), count_of(page, "http://www.w3.org/"));
    CU_ASSERT_EQUAL(count_of(page, "https://"), 0);
    CU_ASSERT_EQUAL(count_of(page, "url("), 0);
    CU_ASSERT_EQUAL(count_of(page, "src="), 0);
    CU_ASSERT_EQUAL(count_of(page, "<table "), count_of(page, "<caption "));
    CU_ASSERT_EQUAL(count_of(page, "role=\"img\""), count_of(page, "<desc id="));
}

void expect_well_formed(const report_model *m) {
    buf out = {0};
    write_page(m, &out);
    CU_ASSERT_EQUAL(buf_check(&out, "page", NULL), SNAP_OK);
    expect_page(buf_str(&out));
    buf_clear(&out);
    report_markdown(m, &out);
    CU_ASSERT_PTR_NULL(strstr(buf_str(&out), "<"));
    check_columns(buf_str(&out), "|", '|');
    for (const figure *f = report_figures; f->name; f++)
        for (size_t i = 0; i < FIGURES_MAX; i++) {
            buf_clear(&out);
            if (!f->draw(m, i, true, &out))
                break;
            expect_xml(buf_str(&out));
        }
    buf_release(&out);
    expect_latex(m, report_table_speed);
    expect_latex(m, report_table_parity);
    expect_latex(m, report_table_arms);
}
