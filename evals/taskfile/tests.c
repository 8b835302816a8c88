/* tests.c - the tests of a row whose answer is a program. */
#include <string.h>

#include "evals/taskfile/parts.h"

static bool is_name(const char *s) {
    for (; *s; s++)
        if (!((*s | 0x20) >= 'a' && (*s | 0x20) <= 'z') && !(*s >= '0' && *s <= '9') && *s != '_')
            return false;
    return true;
}

/* Renders a text into the tests' memory; *out stays NULL if there is no template. */
static snap_status render(const template *t, const js *row, code_tests *tests, const char **out,
                          const char *where, snap_err *err) {
    const template_values values = {.row = row};
    buf text = {0};
    snap_status st = t ? template_render(t, &values, &text, where, err) : SNAP_OK;
    if (t && st == SNAP_OK && !(*out = arena_strdup(&tests->mem, buf_str(&text))))
        st = err_set(err, SNAP_E_NOMEM, "%s: out of memory", where);
    buf_release(&text);
    return st;
}

static snap_status read_assertions(const task_file *f, const js *row, code_tests *out,
                                   const char *where, snap_err *err) {
    snap_status st;
    *out = (code_tests){.n = 1};
    TRY(render(f->before, row, out, &out->before, where, err));
    TRY(render(f->after, row, out, &out->after, where, err));
    TRY(render(f->entry, row, out, &out->entry, where, err));
    if (out->entry && !is_name(out->entry))
        TRY(err_set(err, SNAP_E_INPUT, "%s: 'entry' must be the name of a function", where));
cleanup:
    return st;
}

snap_status file_read_tests(const task_spec *t, const js *row, code_tests *out, const char *where,
                            snap_err *err) {
    const task_file *f = t->own;
    return f->grader == GRADER_STDIN ? tests_read(row, out, where, err)
                                     : read_assertions(f, row, out, where, err);
}
