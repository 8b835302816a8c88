/* eval_place.h - a folder with problems and recordings of two arms, for tests of evaluations. */
#ifndef SNAPMLA_HARNESS_TEST_EVAL_PLACE_H
#define SNAPMLA_HARNESS_TEST_EVAL_PLACE_H

#include "base/buf.h"
#include "base/test/temp_folder.h"
#include "harness/audit/audit.h"
#include "harness/eval/eval_run.h"

/* Problems, samples of each problem, and rows of both arms. */
enum { PROBLEMS = 9, SAMPLES = 3, ROWS = 2 * PROBLEMS * SAMPLES };

/* The folder and paths in it. arm_a and arm_b are values of --arm. */
typedef struct {
    char dir[TEMP_FOLDER];
    char data[80], run[80], samples[100], arm_a[120], arm_b[120];
} eval_place;

void eval_write_text(const char *path, const buf *text);

/* Arm a is wrong on sample 0 of every third problem. Arm b is also wrong on samples 1 and 2. */
void eval_record_arm(const char *path, const char *arm, bool worse);

/* Makes the folder, the problems q0, q1, ... and the recordings of both arms. */
void eval_place_open(eval_place *p);

void eval_place_close(eval_place *p);

/* A path in the RUN folder, in static memory. */
const char *eval_in_run(const eval_place *p, const char *name);

/* The options that compare both arms with --samples SAMPLES. */
eval_options eval_options_of(const eval_place *p);

/* eval_run() without a configuration. */
snap_status eval_evaluate(const eval_options *o, results **out, snap_err *err);

/* Evaluates, which must succeed. The caller frees the result. */
results *eval_complete(const eval_options *o);

/* Evaluates, which must fail with a status and a message that contains a text. */
void eval_expect(const eval_options *o, snap_status status, const char *message);

/* The content of a file. The caller frees it. */
char *eval_text_of(const char *path);

/* A number of an object; -1e9 if there is none. */
double eval_number(const js *o, const char *key);

/* The first comparison of the first task. */
js *eval_pair_of(const results *r);

/* The audit of a result: SNAP_OK if it is consistent. */
snap_status eval_audit(const results *r);

/* Writes the problems again, with another wording of the questions and @add in the answers. */
void eval_write_problems(const eval_place *p, const char *wording, int add);

#endif
