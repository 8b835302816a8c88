/* words.h - words that several record types admit. */
#ifndef SNAPMLA_HARNESS_RECORD_WORDS_H
#define SNAPMLA_HARNESS_RECORD_WORDS_H

/* "measured": by this program; "reported": by others. NULL at the end. */
extern const char *const record_origins[];

#endif
