#include "harness/record/step.h"

/* clang-format off */
static const char *const kSteps[] = {"decode", "prompt", NULL};
enum { FROM_0 = FIELD_NULLABLE | FIELD_FROM_0 };

#define S(member) FIELD_OF(step_record, member)
static const field fields[] = {
    {S(model_config), FIELD_TEXT, FIELD_NAME | FIELD_OMITTED},
    {S(arm), FIELD_TEXT, FIELD_NAME},
    {S(step), FIELD_TEXT, .words = kSteps},
    {S(context), FIELD_COUNT},
    {S(batch), FIELD_COUNT},
    {S(fp8_over_bf16), FIELD_NUMBER, FIELD_OPTIONAL | FIELD_ABOVE_0},
    {S(samples), FIELD_COUNT, 0, STEP_TIMED},
    {S(median_ns), FIELD_NUMBER, FIELD_ABOVE_0, STEP_TIMED},
    {S(best_ns), FIELD_NUMBER, FIELD_ABOVE_0, STEP_TIMED},
    {S(worst_ns), FIELD_NUMBER, FIELD_ABOVE_0, STEP_TIMED},
    {S(tokens_s), FIELD_NUMBER, FIELD_ABOVE_0, STEP_TIMED, .about = "tokens per second"},
    {S(weight_bytes), FIELD_NUMBER, FROM_0, STEP_TIMED},
    {S(cache_bytes), FIELD_NUMBER, FROM_0, STEP_TIMED},
    {S(flop), FIELD_NUMBER, FROM_0, STEP_TIMED},
    {S(cublaslt), FIELD_COUNT, 0, STEP_TIMED},
    {S(roofline_pct), FIELD_NUMBER, FROM_0, STEP_TIMED},
    {S(layout), FIELD_TEXT, FIELD_NAME | FIELD_OPTIONAL | FIELD_OMITTED,
     .about = "how the model is divided over several GPUs; absent = one GPU"},
    {S(rank_median_ns), FIELD_NUMBERS, FIELD_OPTIONAL | FIELD_FROM_0, STEP_TIMED,
     .about = "median time of each rank"},
    {S(attention_ns), FIELD_NUMBER, FIELD_OPTIONAL | FIELD_FROM_0, STEP_TIMED,
     .about = "part of a decode step on rank 0, timed with events between the parts"},
    {S(exchange_ns), FIELD_NUMBER, FIELD_OPTIONAL | FIELD_FROM_0, STEP_TIMED,
     .about = "what the ranks exchange; without waiting for slower ranks, except in older files"},
    {S(experts_ns), FIELD_NUMBER, FIELD_OPTIONAL | FIELD_FROM_0, STEP_TIMED},
    {S(rest_ns), FIELD_NUMBER, FIELD_OPTIONAL | FIELD_FROM_0, STEP_TIMED},
    {S(waiting_ns), FIELD_NUMBER, FIELD_OPTIONAL | FIELD_FROM_0, STEP_TIMED,
     .about = "how long rank 0 waits for slower ranks in the exchanges of a step"},
    {S(energy_steps), FIELD_COUNT, FIELD_OPTIONAL, STEP_TIMED, .low = 1,
     .about = "steps in the loop that measured the energy"},
    {S(energy_s), FIELD_NUMBER, FIELD_OPTIONAL | FIELD_ABOVE_0, STEP_TIMED,
     .about = "seconds of that loop, on the slowest rank"},
    {S(joules_step), FIELD_NUMBER, FIELD_OPTIONAL | FIELD_ABOVE_0, STEP_TIMED,
     .about = "energy of one step, summed over the GPUs"},
    {S(joules_token), FIELD_NUMBER, FIELD_OPTIONAL | FIELD_ABOVE_0, STEP_TIMED,
     .about = "joules_step divided by the tokens of a step"},
    {S(rank_joules), FIELD_NUMBERS, FIELD_OPTIONAL | FIELD_ABOVE_0, STEP_TIMED,
     .about = "energy of one step on the GPU of each rank"},
};
#undef S
const record_type step_type = {
    .name = "e2e",
    .about = "a step of a whole model with random weights; a row without median_ns: the memory was "
             "too small",
    .size = sizeof(step_record), RECORD_FIELDS(fields), .parts = RECORD_MEMBER(step_record, parts)};
/* clang-format on */
