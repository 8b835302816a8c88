#include "harness/view/samples.h"

#include <string.h>

#include "base/text.h"
#include "evals/task.h"
#include "harness/view/format.h"

/* The kinds that a reader can choose. "all" comes before them. */
static const char *const kKinds[] = {"differs", "wrong", "unparsed", "truncated", "failed"};
enum { KINDS = sizeof kKinds / sizeof *kKinds };

typedef struct {
    const report_samples *of;
    const sample_index *index;
    size_t room; /* bytes that the current task may still use */
    buf *out;
} page;

/* ---- an answer ---- */

static const char *outcome(const sample_row *r) {
    return r->failed ? "failed" : r->verdict ? r->verdict : "not judged";
}

static const char *badge(const sample_row *r) {
    if (r->failed || !r->verdict)
        return "badge";
    return strcmp(r->verdict, "correct") == 0 ? "badge v-equivalent"
           : strcmp(r->verdict, "wrong") == 0 ? "badge v-different"
                                              : "badge v-open";
}

/* The last @keep bytes of a text, or fewer, so that they begin with a whole character. */
static const char *tail_of(const char *s, size_t n, size_t keep) {
    const char *from = s + n - keep;
    while (((unsigned char)*from & 0xC0) == 0x80)
        from++;
    return from;
}

/* Writes a text. Of a long text, only the beginning and the end are written; the end usually has
 * the answer. */
static void put_text(buf *out, const char *s) {
    size_t n = strlen(s), head = SAMPLES_TEXT / 4;
    if (n <= SAMPLES_TEXT) {
        format_xml(out, s);
        return;
    }
    while (head && ((unsigned char)s[head] & 0xC0) == 0x80)
        head--;
    const char *tail = tail_of(s, n, SAMPLES_TEXT - head);
    buf first = {0};
    (void)buf_append(&first, s, head);
    format_xml(out, buf_str(&first));
    (void)buf_printf(out, "\n\n[… %zu bytes left out …]\n\n", n - head - strlen(tail));
    format_xml(out, tail);
    out->failed |= first.failed;
    buf_release(&first);
}

static void put_fact(buf *out, const char *name, const char *value) {
    if (!value || !*value)
        return;
    (void)buf_printf(out, "<dt>%s</dt><dd>", name);
    format_xml_cut(out, value, 300);
    (void)buf_puts(out, "</dd>");
}

static void put_answer(page *p, const sample_row *r, bool hidden) {
    buf *out = p->out;
    js *row = sample_index_read(p->index, r, NULL);
    const char *text = js_get_str(row, "response"), *reasoning = js_get_str(row, "reasoning");
    (void)buf_puts(out, "<div><h4>");
    format_xml(out, p->index->arms[r->arm]);
    (void)buf_puts(out, "</h4><dl>");
    put_fact(out, "verdict", outcome(r));
    put_fact(out, "found", js_get_str(row, "extracted"));
    put_fact(out, "rule", js_get_str(row, "rule"));
    put_fact(out, "reason", js_get_str(row, "reason"));
    put_fact(out, "ended by", js_get_str(row, "finish_reason"));
    put_fact(out, "error", hidden ? NULL : js_get_str(row, "error"));
    if (r->tokens >= 0)
        (void)buf_printf(out, "<dt>tokens</dt><dd>%lld</dd>", (long long)r->tokens);
    if (reasoning)
        (void)buf_printf(out, "<dt>reasoning</dt><dd>%zu bytes, not shown</dd>", strlen(reasoning));
    (void)buf_puts(out, "</dl>");
    if (text && !hidden) {
        (void)buf_puts(out, "<pre tabindex=\"0\">");
        put_text(out, text);
        (void)buf_puts(out, "</pre>");
    }
    (void)buf_puts(out, "</div>\n");
    js_free(row);
}

/* ---- a question ---- */

static void put_summary(page *p, const sample_question *q) {
    buf *out = p->out;
    (void)buf_puts(out, "<summary><b>");
    format_xml_cut(out, q->rows->problem, 40);
    (void)buf_printf(out, "</b> <span>sample %d</span> <span>gold ", q->rows->sample);
    format_xml_cut(out, q->rows->gold ? q->rows->gold : "–", 40);
    (void)buf_puts(out, "</span>");
    for (size_t i = 0; i < q->n; i++) {
        const sample_row *r = &q->rows[i];
        (void)buf_puts(out, " <span class=\"arm\">");
        format_xml(out, p->index->arms[r->arm]);
        (void)buf_printf(out, " <span class=\"%s\">%s</span> ", badge(r), outcome(r));
        format_xml_cut(out, r->extracted ? r->extracted : "", 40);
        (void)buf_printf(out, "%s</span>", r->truncated ? " (truncated)" : "");
    }
    (void)buf_puts(out, "</summary>\n");
}

static void put_question(page *p, const sample_question *q, bool hidden) {
    (void)buf_puts(p->out, "<li class=\"q");
    for (size_t i = 0; i < KINDS; i++)
        if (sample_question_is(q, kKinds[i]))
            (void)buf_printf(p->out, " %s", kKinds[i]);
    (void)buf_puts(p->out, "\"><details>");
    put_summary(p, q);
    (void)buf_puts(p->out, "<div class=\"answers\">\n");
    for (size_t i = 0; i < q->n; i++)
        put_answer(p, &q->rows[i], hidden);
    (void)buf_puts(p->out, "</div></details></li>\n");
}

/* ---- a task ---- */

/* The order of questions: 0 = the arms differ, 1 = an answer of any arm was wrong, unparsed, cut
 * off or failed, 2 = the rest. */
static int rank_of(const sample_question *q) {
    if (q->differs)
        return 0;
    for (size_t i = 1; i < KINDS; i++)
        if (sample_question_is(q, kKinds[i]))
            return 1;
    return 2;
}

static bool is_hidden(const page *p, int task) {
    return task_is_confidential(p->index->tasks[task]) && !p->of->confidential;
}

/* Writes the questions for which rank_of() returns @rank: at most @most, and only while p->room
 * suffices. Returns how many it has written. */
static size_t put_rank(page *p, int task, int rank, size_t most, bool hidden) {
    size_t shown = 0;
    for (size_t i = 0; i < p->index->n_questions && shown < most; i++) {
        const sample_question *q = &p->index->questions[i];
        size_t before = p->out->len;
        if (q->rows->task != task || rank_of(q) != rank)
            continue;
        if (!p->room)
            break;
        put_question(p, q, hidden);
        size_t took = p->out->len - before;
        p->room -= took < p->room ? took : p->room;
        shown++;
    }
    return shown;
}

static size_t count_task(const sample_index *x, int task) {
    size_t n = 0;
    for (size_t i = 0; i < x->n_questions; i++)
        n += x->questions[i].rows->task == task;
    return n;
}

static void put_task(page *p, int task) {
    bool hidden = is_hidden(p, task);
    size_t all = count_task(p->index, task), shown = 0;
    (void)buf_puts(p->out, "<h3>");
    format_xml(p->out, p->index->tasks[task]);
    (void)buf_puts(p->out, "</h3>\n<ol class=\"qs\">\n");
    for (int rank = 0; rank < 3; rank++)
        shown += put_rank(p, task, rank, SAMPLES_QUESTIONS - shown, hidden);
    (void)buf_printf(p->out, "</ol>\n<p class=\"note\">%zu of %zu questions%s%s.</p>\n", shown, all,
                     shown < all ? "; 'snapmla eval show' shows all of them" : "",
                     hidden ? "; the authors of this set ask that its text is not published, so "
                              "the answers, which may quote it, are left out"
                            : "");
}

/* ---- writing the section of samples ---- */

static size_t count_kind(const report_samples *all, const char *kind) {
    size_t n = 0;
    for (const report_samples *s = all; s; s = s->next)
        for (size_t i = 0; i < s->index.n_questions; i++)
            n += !kind || sample_question_is(&s->index.questions[i], kind);
    return n;
}

static void put_choice(const report_samples *all, const char *kind, buf *out) {
    const char *name = kind ? kind : "all";
    (void)buf_printf(out,
                     /* a space at which no line can end */
                     "<input type=\"radio\" name=\"kind\" id=\"k-%s\"%s/>&#160;"
                     "<label for=\"k-%s\">%s "
                     "<small>%zu</small></label>\n",
                     name, kind ? "" : " checked=\"checked\"", name, name, count_kind(all, kind));
}

static int count_tasks(const report_samples *all) {
    int n = 0;
    for (const report_samples *s = all; s; s = s->next)
        n += s->index.n_tasks;
    return n;
}

void write_samples(const report_samples *all, buf *out) {
    int tasks = count_tasks(all);
    if (!count_kind(all, NULL))
        return;
    (void)buf_puts(
        out, "<p class=\"note\">Open a line to see the answers. The counts include all samples."
             "</p>\n<div class=\"samples\" role=\"group\" aria-label=\"Samples by kind\">"
             "\n");
    put_choice(all, NULL, out);
    for (size_t i = 0; i < KINDS; i++)
        put_choice(all, kKinds[i], out);
    for (const report_samples *s = all; s; s = s->next) {
        page p = {.of = s, .index = &s->index, .out = out};
        if (all->next) {
            (void)buf_puts(out, "<p class=\"note run\">");
            format_xml(out, s->name);
            (void)buf_puts(out, "</p>\n");
        }
        for (int t = 0; t < s->index.n_tasks; t++) {
            p.room = SAMPLES_BYTES / (size_t)tasks;
            put_task(&p, t);
        }
    }
    (void)buf_puts(out, "</div>\n");
}
