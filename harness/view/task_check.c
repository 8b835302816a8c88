#include "harness/view/task_check.h"

#include <string.h>

#include "base/text.h"

/* Appends a text with each line indented and made harmless. */
static void put_lines(buf *out, const char *text) {
    while (*text) {
        size_t n = strcspn(text, "\n");
        buf line = {0};
        (void)buf_append(&line, text, n);
        (void)buf_puts(out, n ? "    " : "");
        text_append_shown(out, buf_str(&line));
        (void)buf_puts(out, "\n");
        out->failed = out->failed || line.failed;
        buf_release(&line);
        text += n + (text[n] == '\n');
    }
}

/* Appends a line of the head: a name, and a text that is made harmless. */
static void put_head(buf *out, const char *name, const char *text) {
    (void)buf_printf(out, "%-11s", name);
    text_append_shown(out, text);
    (void)buf_puts(out, "\n");
}

static void put_answer(buf *out, const js *answer) {
    const char *response = js_get_str(answer, "response"), *rule = js_get_str(answer, "rule");
    const char *reason = js_get_str(answer, "reason");
    const js *scores = js_get_object(answer, "scores");
    (void)buf_printf(out, "  %-8s  ", js_get_str(answer, "verdict"));
    text_append_shown_printf(out, response[0] ? "'%.60s'" : "(empty)", response);
    if (rule)
        text_append_shown_printf(out, ", extracted '%.60s' (%s)", js_get_str(answer, "extracted"),
                                 rule);
    if (reason)
        text_append_shown_printf(out, ": %s", reason);
    for (void *it = js_first(scores); it; it = js_next(scores, it))
        text_append_shown_printf(out, "; %s %g", js_key(it), js_num(js_value(it)));
    (void)buf_puts(out, "\n");
}

static void put_problem(buf *out, const js *problem) {
    const js *messages = js_get_array(problem, "messages");
    const js *answers = js_get_array(problem, "answers");
    const char *gold = js_get_str(problem, "gold");
    (void)buf_puts(out, "\n");
    text_append_shown_printf(out, "problem %s", js_get_str(problem, "id"));
    if (gold)
        text_append_shown_printf(out, ", gold '%.60s'", gold);
    (void)buf_puts(out, "\n");
    for (size_t i = 0; i < js_len(messages); i++) {
        (void)buf_printf(out, "  %s:\n", js_get_str(js_at(messages, i), "role"));
        put_lines(out, js_get_str(js_at(messages, i), "content"));
    }
    for (size_t i = 0; i < js_len(answers); i++)
        put_answer(out, js_at(answers, i));
}

snap_status task_check_text(const js *check, buf *out, snap_err *err) {
    const char *sha256 = js_get_str(check, "file_sha256"), *data = js_get_str(check, "data");
    const char *note = js_get_str(check, "note");
    const js *shown = js_get_array(check, "shown");
    double margin = js_get_num(check, "margin_pp", 0);
    put_head(out, "task", js_get_str(check, "task"));
    put_head(out, "title", js_get_str(check, "title"));
    if (sha256)
        put_head(out, "SHA-256", sha256);
    put_head(out, "grader", js_get_str(check, "grader"));
    (void)buf_printf(out, "%-11s%lld per problem\n", "samples",
                     (long long)js_get_int(check, "samples", 0));
    if (margin > 0)
        (void)buf_printf(out, "%-11s%g percentage points\n", "margin", margin);
    if (data)
        put_head(out, "data", data);
    if (data)
        (void)buf_printf(out, "%-11s%lld, from %lld rows\n", "problems",
                         (long long)js_get_int(check, "problems", 0),
                         (long long)js_get_int(check, "rows", 0));
    if (note)
        put_head(out, "note", note);
    for (size_t i = 0; i < js_len(shown); i++)
        put_problem(out, js_at(shown, i));
    return buf_check(out, "the check", err);
}
