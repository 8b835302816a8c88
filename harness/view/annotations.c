/* annotations.c - a gate's verdicts in the formats that GitHub and GitLab show next to a change. */
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "harness/gate/verdicts.h"
#include "harness/view/gate_verdicts.h"

/* Escapes text for a GitHub workflow command: % CR LF everywhere, and also : , in properties.
 * Before that, text_append_shown() makes the text printable, because the log prints it without the
 * escapes of the command. */
static void put_escaped(buf *out, const char *text, bool property) {
    buf shown = {0};
    text_append_shown(&shown, text);
    out->failed |= shown.failed;
    for (const char *s = buf_str(&shown); *s; s++) {
        bool special = *s == '%' || *s == '\r' || *s == '\n';
        if (special || (property && (*s == ':' || *s == ',')))
            (void)buf_printf(out, "%%%02X", (unsigned)(unsigned char)*s);
        else
            (void)buf_append(out, s, 1);
    }
    buf_release(&shown);
}

void verdicts_github(const js *rows, buf *out) {
    arena mem = {0};
    verdict_list all = verdict_read(rows, &mem, &out->failed);
    for (size_t i = 0; i < all.n; i++) {
        const verdict_record *row = &all.at[i];
        bool noise = strcmp(row->verdict, "noise") == 0;
        buf message = {0}, title = {0};
        if (!verdict_is_bad(row) && !noise)
            continue;
        verdict_message(row, &message);
        verdict_title(row, &title);
        out->failed |= message.failed || title.failed;
        (void)buf_printf(out, "::%s title=", verdict_is_failure(row) ? "error" : "warning");
        put_escaped(out, "snapmla gate: ", true);
        put_escaped(out, buf_str(&title), true);
        (void)buf_puts(out, "::");
        put_escaped(out, buf_str(&message), false);
        (void)buf_puts(out, "\n");
        buf_release(&message);
        buf_release(&title);
    }
    arena_release(&mem);
}

static js *issue_of(const verdict_record *row, const char *file) {
    buf message = {0};
    char fingerprint[HASH_HEX];
    text_append_shown_printf(&message, "%s ", row->kind);
    verdict_title(row, &message);
    (void)buf_puts(&message, ": ");
    bool ok = hash_bytes(buf_str(&message), message.len, fingerprint, NULL) == SNAP_OK;
    verdict_message(row, &message);
    js *issue = js_new_object(), *location = js_new_object(), *lines = js_new_object();
    ok = ok && lines && js_set_int(lines, "begin", 1);
    ok = location && js_set_str(location, "path", file) && ok;
    ok = js_set_new(location, "lines", lines) && ok;
    ok = issue && js_set_str(issue, "description", buf_str(&message)) &&
         js_set_str(issue, "check_name", "snapmla-gate") &&
         js_set_str(issue, "fingerprint", fingerprint) &&
         js_set_str(issue, "severity", verdict_is_failure(row) ? "major" : "minor") && ok;
    ok = js_set_new(issue, "location", location) && ok;
    buf_release(&message);
    if (ok)
        return issue;
    js_free(issue);
    return NULL;
}

void verdicts_gitlab(const js *rows, const char *file, buf *out) {
    arena mem = {0};
    verdict_list all = verdict_read(rows, &mem, &out->failed);
    js *issues = js_new_array();
    bool ok = issues != NULL;
    for (size_t i = 0; i < all.n && ok; i++)
        if (verdict_is_bad(&all.at[i]))
            ok = js_push_new(issues, issue_of(&all.at[i], file));
    if (!ok || js_write(issues, JS_PRETTY, out, NULL) != SNAP_OK)
        out->failed = true;
    (void)buf_puts(out, "\n");
    js_free(issues);
    arena_release(&mem);
}
