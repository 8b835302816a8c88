/* words.h - the words of a field that several record types share. */
#ifndef SNAPMLA_HARNESS_RECORD_WORDS_H
#define SNAPMLA_HARNESS_RECORD_WORDS_H

/* "measured" by this program, or "reported" by others. NULL-terminated. */
extern const char *const record_origins[];

#endif
