/* json_line.h - the line of a member in a JSON text, for messages about a file whose syntax is
 * right but whose values are not. */
#ifndef SNAPMLA_BASE_JSON_LINE_H
#define SNAPMLA_BASE_JSON_LINE_H

#include <stddef.h>

/**
 * json_line - the line, counted from 1, where a member or element begins
 *
 * @text: a JSON text that js_parse() accepts
 * @path: [depth] keys from the outermost value inwards; for an element of an array, its index as
 *        decimal digits
 *
 * If the text has no such member, the line of the innermost value of the path that it has. A key
 * that the text writes with escapes is not found.
 */
long json_line(const char *text, size_t n, const char *const *path, size_t depth);

#endif
