/* generate_arguments.h - the options of `snapmla generate` and their values */
#ifndef SNAPMLA_HARNESS_CMD_GENERATE_ARGUMENTS_H
#define SNAPMLA_HARNESS_CMD_GENERATE_ARGUMENTS_H

#include "generator/local/answer.h"
#include "harness/opt.h"

/* The parser fills all members but @model and @answer. The command then sets these from the others.
 */
typedef struct {
    const char *prompt_text, *prompt_file, *system_text;
    bool stats, thinking, no_thinking;
    opt_list stops;
    int64_t max_tokens, cache_mb, threads, top_k;
    local_options model;
    answer_options answer;
} generate_arguments;

extern generate_arguments cmd_generate_given; /* the parser of options writes the values here */
extern const opt cmd_generate_options[];

#endif
