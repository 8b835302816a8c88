/* math_judge.h - declarations that the files of the tree comparison share: the state of a grading,
 * the parts of an answer, and the rules that call each other. */
#ifndef SNAPMLA_EVALS_MATH_MATH_JUDGE_H
#define SNAPMLA_EVALS_MATH_MATH_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "evals/math/math_eval.h"

/* The state of one grading. */
typedef struct {
    math_tree gold, answer;
    bool strict;    /* MATH_STRICT */
    bool truth;     /* MATH_TRUTH */
    bool ordered;   /* lists, too, are compared in order */
    bool named;     /* math_judge_answer() removed the left side of the gold or of the answer, and
                     math_is_short_naming() does not accept that gold or answer */
    bool listed;    /* inside a list, set, union or chain: two relations are equal only if their
                       sides are */
    bool undecided; /* a comparison was refused without evidence of a difference */
    int work;
    const char *reason; /* reason of the last comparison that decided */
} judge;

/* A part of an answer: a node, and the sign that \pm stands for in it. */
typedef struct {
    const math_tree *t;
    uint16_t i;
    int pm;
} part;

/* True if the parsed answer equals the gold; sets the reason. */
bool math_judge_answer(judge *j);

/* Compares any two parts. */
bool math_judge_parts(judge *j, part g, part a);

/* Compares two expressions by value. */
bool math_judge_values(judge *j, part g, part a);

/* Compares the members of lists, sets, unions and chains of relations, in order or as multisets.
 * Any other part counts as its own only member. */
bool math_judge_members(judge *j, part g, part a, bool ordered);

/* Compares an inequality, or several, with an interval or a union: x > 2 is (2,\infty). True, and
 * *equal is set, if both sides are sets of numbers of these kinds and at least one of them has an
 * inequality, \mathbb{R} or a set difference, or if the gold is a union and the answer a list. */
bool math_judge_intervals(judge *j, part g, part a, bool *equal);

/* The sign of an infinity, +1 or -1; 0 for other expressions. */
int math_infinity(part p);

bool math_is_empty_set(part p);

/* True if two members of @p are equal. */
bool math_has_repeats(judge *j, part p);

/* Compares two relations. */
bool math_judge_relations(judge *j, part g, part a);

/* Removes a name: x = 5 becomes 5, (x,y) = (1,2) becomes (1,2), x \in [0,1] becomes [0,1]. Returns
 * @p itself if it is not a relation that only names its right side. With @any, a constant may have
 * any left side (2+3 = 5). Words have no names, except for MATH_TRUTH. */
part math_without_name(part p, bool any);

/* The reason why values could not be compared. */
const char *math_undecided(math_eval_status st);

/* True for a number, possibly with minus signs and percent signs. */
bool math_is_numeral(part p);

static inline bool decide(judge *j, bool equal, const char *reason) {
    j->reason = reason;
    return equal;
}

/* Refuses a comparison although the two parts may be equal. */
static inline bool leave_undecided(judge *j, const char *reason) {
    j->undecided = true;
    return decide(j, false, reason);
}

static inline const math_node *at(part p) {
    return math_at(p.t, p.i);
}

static inline part child(part p, int k) {
    uint16_t i = at(p)->first;
    for (; i && k > 0; k--)
        i = math_at(p.t, i)->next;
    return (part){p.t, i, p.pm};
}

static inline part next(part p) {
    return (part){p.t, at(p)->next, p.pm};
}

static inline bool is_kind(part p, math_node_kind kind) {
    return at(p)->kind == kind;
}

static inline bool is_expression(part p) {
    return math_is_expression(p.t, p.i);
}

static inline bool is_relation(part p) {
    return is_kind(p, NODE_REL) || is_kind(p, NODE_AND);
}

static inline math_reading reading(judge *j, part p, bool percent) {
    return (math_reading){.t = p.t, .pm = p.pm, .percent = percent, .work = &j->work};
}

/* True if two parts are written the same way, ignoring percent signs. */
static inline bool same_tree(part g, part a) {
    return math_same_tree(g.t, g.i, a.t, a.i);
}

#endif
