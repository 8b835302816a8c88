/* extract_parts.h - a function that the files of the extraction share. */
#ifndef SNAPMLA_EVALS_EXTRACT_PARTS_H
#define SNAPMLA_EVALS_EXTRACT_PARTS_H

#include "evals/extract.h"

/* The part of @text from the last occurrence of @word on; n = 0 if there is none. */
span extract_last_word(span text, const char *word);

#endif
