#include "harness/record/power_record.h"

/* clang-format off */
enum { NUL = FIELD_NULLABLE };

#define P(member) FIELD_OF(power_record, member)
static const field fields[] = {
    {P(task), FIELD_TEXT, FIELD_NAME},
    {P(source), FIELD_TEXT, FIELD_NAME},
    {P(problems), FIELD_COUNT},
    {P(samples), FIELD_COUNT},
    {P(margin_pp), FIELD_NUMBER, FIELD_ABOVE_0},
    {P(within), FIELD_NUMBER, FIELD_FROM_0},
    {P(between), FIELD_NUMBER, FIELD_FROM_0},
    {P(se_pp), FIELD_NUMBER, NUL},
    {P(ci95_pp), FIELD_NUMBER, NUL},
    {P(power), FIELD_NUMBER, NUL},
    {P(power_wanted), FIELD_NUMBER},
    {P(samples_needed), FIELD_COUNT, NUL},
    {P(problems_needed), FIELD_COUNT, NUL},
};
#undef P
const record_type power_type = {
    .name = "power", .size = sizeof(power_record), RECORD_FIELDS(fields)};
/* clang-format on */
