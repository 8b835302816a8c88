/* bench_tables.h - the output of `snapmla bench`: one table for each verb, and JSON for the verbs
 * that write no result file. The caller releases the tables and frees the JSON, which is NULL if
 * memory is exhausted. */
#ifndef SNAPMLA_HARNESS_VIEW_BENCH_TABLES_H
#define SNAPMLA_HARNESS_VIEW_BENCH_TABLES_H

#include "harness/bench/exchange_bench.h"
#include "harness/bench/grading.h"
#include "harness/bench/model_bench.h"
#include "harness/bench/tokenizing.h"
#include "harness/view/table.h"

table bench_table(const js *rows); /* @rows: the "bench" section */
table exchange_table(const exchange_record *rows, int n);
table model_bench_table(const model_bench *m);
table grading_table(const grading_row *rows); /* [GRADING_ROWS] */
table tokenizer_table(const tokenizing_row *row);

js *grading_json(const grading_row *rows);
js *tokenizer_json(const tokenizing_row *row);

#endif
