/* template.h - texts with placeholders, for prompts that a task file describes.
 *
 *   {{question}}                  the row's field
 *   {{problem or question}}       the first of these fields that the row has
 *   {{doc.title}}, {{turns.0}}    a member of an object, an element of a list
 *   {{answer | after '####'}}     filters; the last paragraph lists them
 *   {{#options}}..{{/options}}    the text between them once for each element of a list; once
 *                                 for a field that is text, a number, true or false
 *   {{'{{'}}                      two braces (any quoted text; '' stands for ')
 *
 * Inside a list, {{item}} is the element, {{item.text}} a member of it, {{number}} its number from
 * 1, and {{letter}} its letter (A, B, ...). Lists cannot be nested. Some names have values that are
 * not from the row: choices, examples and gold (template_values). A template cannot run code.
 *
 * Filters: after 'X' (the part after the last X; everything if there is no X), without 'X' (a
 * prefix X is removed), trim, line (a line end is added unless the text ends in one), optional (a
 * field that the row does not have counts as empty; otherwise that is an error). */
#ifndef SNAPMLA_EVALS_TASKFILE_TEMPLATE_H
#define SNAPMLA_EVALS_TASKFILE_TEMPLATE_H

#include "base/arena.h"
#include "base/json.h"

enum {
    TEMPLATE_MAX = 1 << 16,
    TEMPLATE_OUTPUT_MAX = 32 << 20,
    TEMPLATE_NUMBER_MAX = 32,
    TEMPLATE_NAMES = 8
};

typedef struct template template;

/* The values of a template's names. */
typedef struct {
    const js *row;
    const js *choices;    /* the list "choices": texts; NULL: the row's field of that name */
    const char *examples; /* the value of "examples"; NULL: the row's field */
    const char *gold;     /* the value of "gold"; NULL: the row's field */
} template_values;

/* Compiles a template into the arena. SNAP_E_INPUT with the reason; SNAP_E_NOMEM. */
snap_status template_compile(const char *text, arena *mem, template **out,
                             snap_err *err) SNAP_CHECK_RESULT;

/* True if a placeholder or a list of the template has that name. */
bool template_uses(const template *t, const char *name);

/* The names of the first placeholder or list for which the row has no value; NULL-terminated,
 * borrowed from the template. NULL if there is none. What stands inside a list, or is optional, is
 * not checked. */
const char *const *template_lacks(const template *t, const template_values *values);

/* Appends the text for a row. SNAP_E_INPUT with @where if the row lacks a value, a list has an
 * element that cannot be shown, or @out exceeds TEMPLATE_OUTPUT_MAX bytes; SNAP_E_NOMEM. */
snap_status template_render(const template *t, const template_values *values, buf *out,
                            const char *where, snap_err *err) SNAP_CHECK_RESULT;

/* The value of a field of a row; dots lead into objects and lists. NULL if there is none. */
js *row_field(const js *row, const char *name);

/* The text of a value: a text without NULs that is not blank, a number, or true or false. NULL for
 * other values. @number holds the digits of a number. */
const char *value_text(const js *value, char number[TEMPLATE_NUMBER_MAX]);

/* Fails with SNAP_E_INPUT: the row lacks these fields (NULL-terminated). The message also names a
 * field of the row whose name is similar to the first of them, if there is one. */
snap_status row_lacks(const js *row, const char *const *names, const char *where, snap_err *err);

#endif
