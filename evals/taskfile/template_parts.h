/* template_parts.h - a compiled template. */
#ifndef SNAPMLA_EVALS_TASKFILE_TEMPLATE_PARTS_H
#define SNAPMLA_EVALS_TASKFILE_TEMPLATE_PARTS_H

#include "evals/taskfile/template.h"

enum { TEMPLATE_PARTS = 1024, TEMPLATE_NAME_MAX = 100 };

typedef enum { PART_TEXT, PART_VALUE, PART_LIST, PART_END } part_kind;

/* A piece of a template. Strings live in the arena of the template. */
typedef struct {
    part_kind kind;
    const char *text;                      /* PART_TEXT */
    const char *names[TEMPLATE_NAMES + 1]; /* all other kinds; NULL-terminated */
    const char *after, *without;           /* arguments of filters; NULL: not given */
    bool trim, line, optional;
    size_t end; /* PART_LIST: the index of its PART_END */
} part;

struct template {
    part *parts; /* [n] */
    size_t n;
};

#endif
