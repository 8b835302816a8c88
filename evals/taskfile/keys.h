/* keys.h - reads the members of a JSON object whose keys are known. Messages name the file, the
 * line and the member: "my.json:7: 'choices.fields' must be a list of texts". */
#ifndef SNAPMLA_EVALS_TASKFILE_KEYS_H
#define SNAPMLA_EVALS_TASKFILE_KEYS_H

#include "base/arena.h"
#include "base/json.h"

enum { KEYS_DEPTH = 4 };

/* An object of a file. */
typedef struct {
    const char *name, *text; /* the file's name and its text */
    size_t n;
    const char *path[KEYS_DEPTH]; /* keys that lead to the object */
    size_t depth;
    js *object;
    arena *mem; /* receives the texts that are read */
} keys;

/* Returns SNAP_E_INPUT. The error names the file, the line and the member @key, and then has the
 * message @fmt. @key NULL: the error is about the object itself. */
snap_status keys_bad(const keys *k, const char *key, snap_err *err, const char *fmt, ...)
    SNAP_PRINTF(4, 5);

/* SNAP_E_INPUT if the object has a key that is not in the list, which ends with NULL. The message
 * names a known key that is similar, if there is one. */
snap_status keys_check(const keys *k, const char *const *known, snap_err *err) SNAP_CHECK_RESULT;

/* The object under @key, whose depth is one more. *found is false, and *out is not set, if the key
 * is absent. SNAP_E_INPUT if the value is not an object. */
snap_status keys_object(const keys *k, const char *key, keys *out, bool *found,
                        snap_err *err) SNAP_CHECK_RESULT;

/* The object that is element @index of the array under @key; @index is in decimal digits. */
snap_status keys_element(const keys *k, const char *key, const char *index, keys *out,
                         snap_err *err) SNAP_CHECK_RESULT;

/* A text without NULs that is not blank; NULL if the key is absent. */
snap_status keys_text(const keys *k, const char *key, const char **out,
                      snap_err *err) SNAP_CHECK_RESULT;

/* keys_text() for a text that must be one of @words (NULL-terminated). *out becomes its index, or
 * -1 if the key is absent. */
snap_status keys_word(const keys *k, const char *key, const char *const *words, int *out,
                      snap_err *err) SNAP_CHECK_RESULT;

/* One text, or a list of 1 to @cap texts. out[*n] becomes NULL; *n is 0 if the key is absent. @out
 * has room for @cap + 1. */
snap_status keys_texts(const keys *k, const char *key, const char **out, size_t cap, size_t *n,
                       snap_err *err) SNAP_CHECK_RESULT;

/* Values within bounds. If the key is absent, *out keeps its value. */
snap_status keys_int(const keys *k, const char *key, int64_t min, int64_t max, int64_t *out,
                     snap_err *err) SNAP_CHECK_RESULT;
snap_status keys_num(const keys *k, const char *key, double min, double max, double *out,
                     snap_err *err) SNAP_CHECK_RESULT;
snap_status keys_bool(const keys *k, const char *key, bool *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
