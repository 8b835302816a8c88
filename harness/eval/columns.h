/* columns.h - prints texts of any length side by side on a terminal.
 *
 * The texts come from models. U+FFFD replaces characters that could move the cursor or change the
 * direction of writing, and malformed UTF-8. A tab becomes four spaces. What a CI system would take
 * as a command is escaped (text_append_shown()). */
#ifndef SNAPMLA_HARNESS_EVAL_COLUMNS_H
#define SNAPMLA_HARNESS_EVAL_COLUMNS_H

#include "base/buf.h"

/* Appends @n texts (at most 64) as columns that together take at most @width cells of the terminal.
 * Lines are broken between words if possible. If a column would have fewer than 32 cells, the texts
 * follow one another instead, in lines of at most @width cells or 32, whichever is more. Lines have
 * no trailing spaces. */
void columns_write(const char *const *texts, size_t n, int width, buf *out);

#endif
