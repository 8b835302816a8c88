/* grade.h - is a response right? A step of its own: it reads stored responses and golds, and can be
 * run again at any time without generating anything.
 *
 * Every verdict says what was extracted, by which rule, and why. Graders are pure functions and
 * may run in several threads. A grader's id carries its version: results of different versions are
 * never compared. */
#ifndef SNAPMLA_EVALS_GRADE_H
#define SNAPMLA_EVALS_GRADE_H

#include <stdbool.h>

#include "base/err.h"
#include "evals/pattern.h"

typedef enum {
    GRADE_CORRECT,
    GRADE_WRONG,
    GRADE_UNPARSED, /* no answer was found, or none that can be read; counts as not correct */
} grade_verdict;
const char *grade_verdict_name(grade_verdict v); /* "correct", "wrong", "unparsed" */

/* A set may measure more than what its verdict says (IFEval by instruction, ZebraLogic by cell): up to
 * this many values, the verdict's first. */
enum { GRADE_EXTRACTED_MAX = 256, GRADE_METRICS = 4 };

/* One such value of a response, 0..1, and how much it weighs in the mean over problems: how many
 * instructions, how many cells. */
typedef struct {
    double value, weight;
} grade_score;

typedef struct {
    span response;  /* what the model said; n = 0: an empty answer */
    bool extracted; /* the response is the bare answer already: nothing is searched in it */
    bool truncated; /* the model was stopped by its length limit */
} grade_input;

typedef struct {
    grade_verdict verdict;
    char
        extracted[GRADE_EXTRACTED_MAX]; /* what was compared, UTF-8, cut if longer; "" if nothing */
    const char *rule;                   /* static; how it was found: "boxed", ...; NULL if not */
    const char *reason;                 /* static; why the verdict is what it is */
    bool open_box;                      /* the last \boxed is cut off */
    grade_score also[GRADE_METRICS - 1]; /* of the grader's metrics after the first */
} grade_result;

typedef struct grader grader;
struct grader {
    const char *id; /* "aime-1": name, policy where there are several, version */
    /* SNAP_E_INPUT when this can't be a gold of the task. */
    snap_status (*check_gold)(const char *gold, snap_err *err);
    /* @gold has passed check_gold. NULL: the response is a program, which must be run
     * (evals/code/judge.h). */
    grade_result (*grade)(const char *gold, grade_input in);
    bool by_model; /* another model judges, which must be asked (evals/arena.h); grade is NULL */
    const char
        *metrics[GRADE_METRICS + 1]; /* names, NULL-terminated, the verdict's first; none: the
                                               verdict alone, accuracy */
};

/* How many values a grader gives: 1 for the verdict alone. */
int grade_metrics(const grader *g);

/* Integer equality (AIME): extract.h's rules in their order, the boxed answer first. Stated
 * answers count whether they stand in a box, behind "final answer is" or behind "answer:"; the
 * last formula and the last number of the text only when the response was not cut off by its
 * length limit. */
extern const grader grader_aime;

/* The same, with "#### 18" as another way to state an answer; golds may be whole worked answers. */
extern const grader grader_gsm8k;
const char *grade_gsm8k_gold(const char *answer); /* the part behind "####"; borrowed */

/* Mathematical equality (MATH, HMMT) under one of math_equal.h's policies; the answer is found as
 * for AIME, boxes that are joined are a list. An answer that can't be read is unparsed, with what it
 * was. */
extern const grader grader_math_field, grader_math_strict;

/* One letter of A..D (GPQA): a box or the last "Answer: X", whichever comes later; else, where the
 * response was not cut off, the last line, a letter in bold, a letter in parentheses. */
extern const grader grader_letter;

/* The same with ten options, A..J (MMLU-Pro). */
extern const grader grader_ten_letters;

/* One letter of A..D in the last field "answer": "C" (rule "answer_field"), else as grader_letter finds it
 * (MMLU-Redux). */
extern const grader grader_letter_field;

/* A grid as JSON (ZebraLogic): the last object with a "solution" (rule "last_json"; "inner_json" where the
 * braces of prose are in the way). A gold is the solution, {"header", "rows"}, as JSON. Metrics: puzzle, cell. */
extern const grader grader_zebra;

/* Instructions that can be checked (IFEval; evals/ifeval/instruction.h). A gold is {"instruction_id_list",
 * "kwargs"} as JSON. Metrics: by prompt and by instruction, strict and loose; the verdict is
 * prompt_strict. The second one is for a machine without the language profiles of langdetect. */
extern const grader grader_ifeval, grader_ifeval_plain;

/* Open answers (Arena-Hard), which another model judges: evals/arena.h. Metric: win_rate. */
extern const grader grader_arena;

/* Programs (evals/code): LiveCodeBench's under either judge, and programs with assertions behind them
 * (HumanEval, MBPP). A gold is the SHA-256 of the tests. */
extern const grader grader_code_real, grader_code_lcb, grader_assertions;

#endif
