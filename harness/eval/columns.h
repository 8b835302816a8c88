/* columns.h - prints texts of any length side by side on a terminal.
 *
 * The texts come from models. Characters that could move the cursor or change the direction of
 * writing are replaced by U+FFFD. */
#ifndef SNAPMLA_HARNESS_EVAL_COLUMNS_H
#define SNAPMLA_HARNESS_EVAL_COLUMNS_H

#include "base/buf.h"

/* Appends @n texts as columns of at most @width characters together. Lines are broken between words
 * if possible. If a column would have fewer than 32 characters, the texts follow one another
 * instead. Lines have no trailing spaces. */
void columns_write(const char *const *texts, size_t n, int width, buf *out);

#endif
