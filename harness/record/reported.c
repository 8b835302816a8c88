#include "harness/record/reported.h"

/* clang-format off */
static const char *const kAbout[] = {"speed", "kernel", "granularity", "quality", NULL};
enum { NUMBER = FIELD_NULLABLE | FIELD_OPTIONAL | FIELD_FROM_0 };

#define R(member) FIELD_OF(reported_record, member)
static const field fields[] = {
    {R(about), FIELD_TEXT, .words = kAbout, .csv = "name"},
    {R(what), FIELD_TEXT, FIELD_NAME, .csv = "what"},
    {R(model), FIELD_TEXT, FIELD_OPTIONAL | FIELD_NAME, .csv = "model"},
    {R(where), FIELD_TEXT, FIELD_OPTIONAL | FIELD_NAME},
    {R(layout), FIELD_TEXT, FIELD_OPTIONAL | FIELD_NAME, .csv = "layout"},
    {R(bf16), FIELD_NUMBER, NUMBER, .csv = "bf16"},
    {R(fp8), FIELD_NUMBER, NUMBER, .csv = "fp8"},
    {R(speedup), FIELD_NUMBER, NUMBER, .csv = "speedup"},
    {R(peak_pct), FIELD_NUMBER, NUMBER, .csv = "peak_pct"},
};
#undef R
const record_type reported_type = {
    .name = "reported", .size = sizeof(reported_record), RECORD_FIELDS(fields)};
/* clang-format on */
