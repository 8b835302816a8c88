/* grade.h - decides whether a response is right.
 *
 * Grading is a separate step: it reads stored responses and golds and can be repeated at any
 * time without generating them again. A verdict records what was extracted, by which rule, and why.
 * Graders are thread-safe. A grader's id contains its version. */
#ifndef SNAPMLA_EVALS_GRADE_H
#define SNAPMLA_EVALS_GRADE_H

#include <stdbool.h>

#include "base/err.h"
#include "evals/pattern.h"

typedef enum {
    GRADE_CORRECT,
    GRADE_WRONG,
    GRADE_UNPARSED, /* no answer, or none that can be parsed; counts as not correct */
} grade_verdict;
const char *grade_verdict_name(grade_verdict v); /* "correct", "wrong", "unparsed" */

/* Some tasks have more metrics than the verdict (IFEval: per instruction; ZebraLogic: per cell).
 * GRADE_METRICS is the largest number of metrics, including the first. */
enum { GRADE_EXTRACTED_MAX = 256, GRADE_METRICS = 4 };

/* The value of one metric for one response, 0..1, and its weight in the mean over problems: 1, or
 * the number of instructions, cells or battles. */
typedef struct {
    double value, weight;
} grade_score;

typedef struct {
    span response;  /* the model's text; n = 0: an empty response */
    bool extracted; /* the response is the bare answer, without reasoning and other text */
    bool truncated; /* the length limit stopped the model */
} grade_input;

typedef struct {
    grade_verdict verdict;
    char extracted
        [GRADE_EXTRACTED_MAX]; /* what was compared (IFEval: the broken instructions): UTF-8,
                                  cut if longer; "" = nothing */
    const char *rule;          /* the rule that found it: "boxed", ...; NULL = none;
                                  static, or borrowed from a stored row */
    const char *reason;        /* the reason for the verdict; static, or points into a
                                  code_grade */
    bool open_box;             /* the last \boxed is not closed */
    bool undecided; /* an answer was found, but the rules neither show that it equals the gold nor
                       that it differs; the verdict is then not GRADE_CORRECT */
    grade_score also[GRADE_METRICS - 1]; /* the grader's metrics after the first; if a model judges,
                                            also[0] is the first */
} grade_result;

typedef struct grader grader;
struct grader {
    const char *id; /* "aime-6": name, policy if there are several, version */
    /* Call check_gold() and grade() through grade_check_gold() and grade_response(), which handle
     * faults. */
    snap_status (*check_gold)(const char *gold, snap_err *err);
    /* NULL in these cases: the response is a program that must be run (evals/code/judge.h),
     * by_model or recorded is set, or there is a grade_by() */
    grade_result (*grade)(const char *gold, grade_input in);
    /* Used instead of check_gold() and grade() by graders that have data of their own
     * (evals/taskfile/rule.h). */
    snap_status (*check_by)(const grader *g, const char *gold, snap_err *err);
    grade_result (*grade_by)(const grader *g, const char *gold, grade_input in);
    bool mathematical; /* may leave an answer undecided (evals/opinion.h) */
    bool by_model;     /* a judge model decides (evals/arena.h); grade is NULL */
    bool recorded;     /* the verdict comes with a recorded answer, from another program */
    const char
        *metrics[GRADE_METRICS + 1]; /* metric names, NULL-terminated. The first is the metric of
                                        the verdict or, if by_model, of the games (evals/arena.h).
                                        Empty: accuracy only */
};

/* SNAP_E_INPUT if @gold cannot be a gold answer of the grader's task; SNAP_E_NOMEM. */
snap_status grade_check_gold(const grader *g, const char *gold, snap_err *err) SNAP_CHECK_RESULT;

/**
 * grade_response - grade a response that is neither a program nor judged by a model or by another
 * program
 *
 * @gold: accepted by grade_check_gold()
 * @out:  valid only if the result is SNAP_OK
 *
 * Every response gets a verdict. A failure inside the program is not a verdict: SNAP_E_NOMEM if
 * memory is exhausted, or if a regular expression exceeds its limit (pattern.h).
 */
snap_status grade_response(const grader *g, const char *gold, grade_input in, grade_result *out,
                           snap_err *err) SNAP_CHECK_RESULT;

/* True if responses are programs that must be run. */
bool grade_runs_programs(const grader *g);

/* Number of metrics of a grader; 1 = there are no further metrics. */
int grade_metrics(const grader *g);

/* Integer equality (AIME). answer_find() finds the answer; a statement without a digit counts as
 * none. The answer may be an expression, such as 70+3. */
extern const grader grader_aime;

/* Like grader_aime, but if there is no box, "#### 18" states the answer. Golds may be whole worked
 * solutions. */
extern const grader grader_gsm8k;
const char *grade_gsm8k_gold(const char *answer); /* the part after the last "####"; without "####",
                                                     all of it; borrowed */

/* Mathematical equality (MATH, HMMT) under a policy of math_equal.h. answer_find() finds the
 * answer, and a statement needs no digit. Joined boxes are a list. An answer that cannot be parsed
 * is recorded and gets the verdict unparsed, or wrong if the gold cannot be parsed either. */
extern const grader grader_math_field, grader_math_strict, grader_math_truth;

/* One letter A..D (GPQA), found by extract_letter(): the last declared one, for example in a box or
 * after "Answer:". Without a declared letter, and if neither the response nor its reasoning was cut
 * off, a guess counts, for example the last line. If boxes are opened but none is closed, there is
 * no answer. */
extern const grader grader_letter;

/* Like grader_letter with ten options, A..J (MMLU-Pro). */
extern const grader grader_ten_letters;

/* One letter A..D in the last JSON field "answer": "C" (rule "answer_field"), otherwise like
 * grader_letter (MMLU-Redux). */
extern const grader grader_letter_field;

/* A grid as JSON (ZebraLogic): the last outermost object, if it has a "solution" (rule
 * "last_json"). Otherwise, as when braces in prose surround it, an object that starts before the
 * last "solution" (rule "inner_json"). The gold is the solution, {"header", "rows"}, as JSON.
 * Metrics: puzzle, cell. */
extern const grader grader_zebra;

/* Instructions that can be checked by a program (IFEval; evals/ifeval/instruction.h). The gold is
 * {"instruction_id_list", "kwargs"} as JSON. Metrics: per prompt and per instruction, strict and
 * loose; the verdict is prompt_strict. The graders with "plain" in their names are for machines
 * without the language profiles of langdetect. Those with "punkt" use the parameters of
 * punkt_installed(), which must exist. */
extern const grader grader_ifeval, grader_ifeval_plain, grader_ifeval_punkt,
    grader_ifeval_plain_punkt;

/* Open questions (Arena-Hard): a judge model compares each answer with a reference answer
 * (evals/arena.h). Metric: win_rate. */
extern const grader grader_arena;

/* Texts that must be repeated (MRCR). The gold is a prefix, a line end and the right text; the
 * answer must begin with the prefix. It is correct if its similarity_ratio() with the right text is
 * at least 0.9. Metrics: found, ratio. */
extern const grader grader_similarity;

/* Programs (evals/code): those with inputs and outputs (LiveCodeBench, synth_code) with each of the
 * two judges, and programs that are tested by assertions (HumanEval, MBPP). The gold is the SHA-256
 * of the row with the tests. */
extern const grader grader_code_real, grader_code_lcb, grader_assertions;

#endif
