#include "harness/record/ceiling.h"

#include "harness/record/words.h"

const char *const record_origins[] = {"measured", "reported", NULL};

/* clang-format off */
static const char *const kUnits[] = {"B/s", "FLOP/s", "ns", NULL};

#define C(member) FIELD_OF(ceiling_record, member)
static const field fields[] = {
    {C(name), FIELD_TEXT, FIELD_NAME, .csv = "name"},
    {C(value), FIELD_NUMBER, FIELD_ABOVE_0, .csv = "value", .about = "in the unit `unit`"},
    {C(unit), FIELD_TEXT, .words = kUnits, .csv = "unit"},
    {C(method), FIELD_TEXT, FIELD_NULLABLE, .csv = "method"},
    {C(samples), FIELD_NUMBERS, FIELD_ABOVE_0, .csv = "samples",
     .about = "one for each repetition"},
    {C(origin), FIELD_TEXT, .words = record_origins, .csv = "origin"},
    {C(source), FIELD_TEXT, FIELD_NULLABLE | FIELD_OPTIONAL | FIELD_OMITTED},
    {C(arm), FIELD_TEXT, FIELD_OPTIONAL | FIELD_NAME, .csv = "arm",
     .about = "the arm of --arm on whose backend it was measured"},
};
const record_type ceiling_type = {
    .name = "ceiling", .size = sizeof(ceiling_record), RECORD_FIELDS(fields)};
/* clang-format on */
