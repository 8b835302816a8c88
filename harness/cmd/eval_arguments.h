/* eval_arguments.h - the options of `snapmla eval` and their values */
#ifndef SNAPMLA_HARNESS_CMD_EVAL_ARGUMENTS_H
#define SNAPMLA_HARNESS_CMD_EVAL_ARGUMENTS_H

#include "harness/eval/eval_run.h"
#include "harness/opt.h"

typedef struct {
    eval_options options;
    int64_t in_flight;
    bool stream;
} eval_arguments;

extern eval_arguments cmd_eval_given; /* the parser of options writes the values here */
extern const opt cmd_eval_options[];

#endif
