/* rule.h - graders that a task file describes: how the answer is found in a response, and how it is
 * compared with the gold. */
#ifndef SNAPMLA_EVALS_TASKFILE_RULE_H
#define SNAPMLA_EVALS_TASKFILE_RULE_H

#include "evals/grade.h"
#include "evals/math/math_equal.h"

/* How the answer is found in the visible part of a response. */
typedef enum {
    FIND_OWN, /* as the grader itself does */
    FIND_BOXED,
    FIND_LAST_NUMBER,
    FIND_REGEX,
    FIND_WHOLE, /* all of it */
} find_kind;

/* How the answer is compared. */
typedef enum {
    SAME_BY, /* by another grader */
    SAME_LETTER,
    SAME_TEXT,
    SAME_REGEX, /* the gold is a regular expression that must match the whole answer */
} same_kind;

typedef struct {
    find_kind find;
    pattern regex; /* FIND_REGEX; released by rule_release() */
    int group;     /* FIND_REGEX: the group of the match that is the answer; 0: all of it */
    bool first;    /* FIND_REGEX: the first match counts, not the last */
    same_kind same;
    const grader *by[MATH_STRICT + 1];    /* SAME_BY: under each math_policy */
    char last;                            /* SAME_LETTER: the options are 'A'..last */
    bool ignore_case, ignore_punctuation; /* SAME_TEXT: of ASCII characters */
    bool any_line;                        /* SAME_TEXT: each line of the gold is a right answer */
} rule;

void rule_release(rule *r);

/* A grader for one to GRADE_METRICS rules, one for each metric. The verdict is the first rule's. */
typedef struct {
    grader base; /* must be the first member: base.grade_by() gets the address of `base` */
    rule *rules;
    int n;
    math_policy policy;
    char id[160];
} rule_grader;

/* Fills *out. @metrics: the names of the metrics; NULL if there is one rule. The rules and the
 * names must live as long as the grader. */
void rule_grader_init(rule_grader *out, rule *rules, int n, math_policy policy,
                      const char *const *metrics);

#endif
