/* columns.h - texts of any length side by side on a terminal.
 *
 * Texts come from models: what could move a cursor, or turn the direction of writing, is shown as
 * U+FFFD. */
#ifndef SNAPMLA_HARNESS_EVAL_COLUMNS_H
#define SNAPMLA_HARNESS_EVAL_COLUMNS_H

#include "base/buf.h"

/* Appends @n texts as columns of together at most @width characters, broken between words where that
 * is possible; below one another where a column would have fewer than 32. Lines end without spaces. */
void columns_write(const char *const *texts, size_t n, int width, buf *out);

#endif
