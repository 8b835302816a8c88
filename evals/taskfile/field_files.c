/* field_files.c - fields whose text is in a file of its own, in or below the folder of the data
 * file. */
#include <string.h>

#include "base/fs.h"
#include "base/text.h"
#include "evals/taskfile/parts.h"

enum { kTextLimit = 1 << 20 };

/* The path of the file with the text of a row's field. */
static snap_status make_path(const task_rows *r, const field_file *f, const js *row, buf *out,
                             const char *where, snap_err *err) {
    const template_values values = {.row = row};
    const char *file = r->set->file, *slash = strrchr(file, '/');
    buf name = {0};
    snap_status st;
    TRY(template_render(f->path, &values, &name, where, err));
    if (!path_is_inside(buf_str(&name)))
        TRY(err_set(err, SNAP_E_INPUT, "%s: '%.80s' must be a relative path without '..'", where,
                    buf_str(&name)));
    (void)buf_append(out, file, slash ? (size_t)(slash - file) + 1 : 0);
    (void)buf_puts(out, buf_str(&name));
    TRY(buf_check(out, where, err));
cleanup:
    buf_release(&name);
    return st;
}

/* Cuts white space at the end. */
static void trim_end(buf *text) {
    while (text->len && text_is_blank(text->data + text->len - 1, 1))
        text->data[--text->len] = '\0';
}

static snap_status add_field(task_rows *r, const field_file *f, js *row, const char *where,
                             snap_err *err) {
    buf path = {0}, text = {.limit = kTextLimit};
    snap_status st;
    TRY(make_path(r, f, row, &path, where, err));
    TRY(fs_read_regular(buf_str(&path), &text, err));
    if (strlen(buf_str(&text)) != text.len || text_is_blank(buf_str(&text), text.len) ||
        !text_is_utf8(buf_str(&text), text.len))
        TRY(err_set(err, SNAP_E_INPUT, "%s: the file must hold a text in UTF-8", buf_str(&path)));
    TRY(task_rows_also(r, &text, err));
    trim_end(&text);
    if (!js_set_str(row, f->field, buf_str(&text)))
        TRY(err_set(err, SNAP_E_NOMEM, "%s: out of memory", where));
cleanup:
    buf_release(&text);
    buf_release(&path);
    return st;
}

/* True if a prompt of the task can be written without the files. */
static bool needs_no_file(const task_file *f, const js *row) {
    const template_values values = {.row = row, .examples = ""};
    for (size_t i = 0; i < f->n_prompts; i++)
        if (!template_lacks(f->prompts[i], &values))
            return true;
    return false;
}

snap_status field_files_add(task_rows *r, js *row, const char *where, snap_err *err) {
    const task_file *f = file_of(r);
    char number[TEMPLATE_NUMBER_MAX];
    snap_status st = SNAP_OK;
    if (f->n_files && needs_no_file(f, row))
        return SNAP_OK;
    for (size_t i = 0; i < f->n_files && st == SNAP_OK; i++)
        if (!value_text(js_get(row, f->files[i].field), number))
            st = add_field(r, &f->files[i], row, where, err);
    return st;
}
