#include "harness/record/run.h"

/* clang-format off */
static const char *const kName[] = {"snapmla.run", NULL};

static const field schema_fields[] = {
    {FIELD_OF(run_schema, name), FIELD_TEXT, .words = kName},
    {FIELD_OF(run_schema, major), FIELD_COUNT, .low = RESULTS_MAJOR, .high = RESULTS_MAJOR},
    {FIELD_OF(run_schema, minor), FIELD_COUNT},
};
static const record_type schema_type = {
    .name = "version", .size = sizeof(run_schema), RECORD_FIELDS(schema_fields)};

#define R(member) FIELD_OF(run_record, member)
static const field fields[] = {
    {R(schema), FIELD_RECORD, .of = &schema_type},
    {R(provenance), FIELD_RECORD, .of = &origin_type},
    {R(sources), FIELD_RECORDS, FIELD_OPTIONAL, .of = &origin_type,
     .about = "of a joined file: the provenance of each file that its rows came from"},
    {R(ceilings), FIELD_RECORDS, .of = &ceiling_type},
    {R(bench), FIELD_RECORDS, .of = &cell_type},
    {R(fidelity), FIELD_RECORDS, .of = &fidelity_type},
    {R(model_fidelity), FIELD_RECORDS, FIELD_OPTIONAL, .of = &model_type},
    {R(e2e), FIELD_RECORDS, .of = &step_type},
    {R(exchange), FIELD_RECORDS, FIELD_OPTIONAL, .of = &exchange_type},
    {R(predicted), FIELD_RECORDS, FIELD_OPTIONAL, .of = &prediction_type},
    {R(evals), FIELD_RECORDS, .of = &eval_type},
    {R(pooled), FIELD_RECORDS, FIELD_OPTIONAL, .of = &pair_type,
     .about = "comparisons over all tasks of a run: the mean difference over all problems"},
    {R(serving), FIELD_RECORDS, FIELD_OPTIONAL, .of = &serving_type},
    {R(verdicts), FIELD_RECORDS, .of = &verdict_type},
};
#undef R
const record_type run_type = {
    .name = "run",
    .about = "The result file of one run of snapmla. A new key raises the minor version, a changed "
             "or removed key the major version. Numbers that do not exist are null. Percentages "
             "are 0..100.",
    .size = sizeof(run_record), RECORD_FIELDS(fields)};
/* clang-format on */

snap_status run_read(run_record *out, const results *r, arena *mem, snap_err *err) {
    return record_read(&run_type, results_document(r), mem, out)
               ? SNAP_OK
               : err_set(err, SNAP_E_NOMEM, "out of memory for the rows of a result file");
}
