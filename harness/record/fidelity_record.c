#include "harness/record/fidelity_record.h"

#include "harness/record/words.h"

enum { FROM_0 = FIELD_NULLABLE | FIELD_FROM_0 };

/* clang-format off */
#define F(member) FIELD_OF(fidelity_record, member)
static const field fields[] = {
    {F(kind), FIELD_TEXT, FIELD_NAME, .csv = "name"},
    {F(config), FIELD_TEXT, FIELD_NAME, .csv = "config"},
    {F(source), FIELD_TEXT, FIELD_NAME, .csv = "kernel"},
    {F(distribution), FIELD_TEXT, FIELD_NAME, .csv = "distribution"},
    {F(context), FIELD_COUNT, .csv = "context"},
    {F(heads), FIELD_COUNT, .csv = "heads"},
    {F(seed), FIELD_INTEGER, .csv = "seed"},
    {F(bytes_per_token), FIELD_NUMBER, FIELD_ABOVE_0 | FIELD_OPTIONAL, .csv = "bytes_per_token"},
    {F(rmse), FIELD_NUMBER, FROM_0, .csv = "rmse"},
    {F(cosine_diff), FIELD_NUMBER, FIELD_NULLABLE, .csv = "cosine_diff"},
    {F(rel_l2), FIELD_NUMBER, FROM_0, .csv = "rel_l2"},
    {F(lse_error), FIELD_NUMBER, FROM_0, .csv = "lse_error"},
    {F(max_abs), FIELD_NUMBER, FROM_0, .csv = "max_abs"},
    {F(rows), FIELD_COUNT, .csv = "rows_checked", .about = "query tokens x heads"},
    {F(origin), FIELD_TEXT, .words = record_origins, .csv = "origin"},
};
#undef F
const record_type fidelity_type = {
    .name = "fidelity", .size = sizeof(fidelity_record), RECORD_FIELDS(fields)};
/* clang-format on */
