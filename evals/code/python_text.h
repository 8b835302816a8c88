/* python_text.h - reads Python source text without running it. */
#ifndef SNAPMLA_EVALS_CODE_PYTHON_TEXT_H
#define SNAPMLA_EVALS_CODE_PYTHON_TEXT_H

#include "base/buf.h"
#include "evals/pattern.h"

/**
 * python_bare - appends @code with spaces in place of comments and strings
 *
 * Line ends stay, so each byte keeps its offset and its line. The replacement fields of an f-string
 * are code and stay, too. A string without an end becomes spaces up to the end of its line or, if
 * it has triple quotes, of the code. Any text is allowed. Returns false if memory is exhausted.
 */
bool python_bare(span code, buf *out);

/* A line of bare code. */
typedef struct {
    span text;     /* without the indentation and the white space at its end */
    size_t indent; /* bytes of white space before the text */
} python_line;

/* Sets *line to the next line of bare code that is not blank, and moves *at past it. Returns false
 * if there is none. */
bool python_next_line(span bare, size_t *at, python_line *line);

/* The smallest indentation of a line that is not blank; 0 if there is none. */
size_t python_indent(span bare);

/* True for characters of names: letters, digits, "_" and all bytes above 0x7f. */
bool python_in_name(char c);

#endif
