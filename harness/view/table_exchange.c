/* table_exchange.c - the table of the section exchange: numbers moved between several GPUs. */
#include "harness/view/pen.h"
#include "harness/view/tables.h"

static void put_row(pen *p, const report_model *m, const report_exchange *x) {
    const exchange_record *row = x->row;
    pen_text(p, row->operation);
    pen_text(p, row->path);
    pen_text(p, row->launch);
    pen_text(p, row->type);
    pen_fixed(p, record_count(row->ranks), 0);
    pen_fixed(p, record_count(row->bytes), 0);
    pen_fixed(p, row->median_ns / 1e3, 2);
    pen_fixed(p, row->p99_ns / 1e3, 2);
    pen_fixed(p, row->algorithm_bytes_s / 1e9, 2);
    pen_fixed(p, row->bus_bytes_s / 1e9, 2);
    pen_fixed(p, record_count(row->wrong), 0);
    if (m->n_files > 1)
        pen_file(p, m, x->file);
}

bool report_table_exchange(const report_model *m, arena *mem, table *t) {
    *t = (table){
        .id = "exchanges",
        .caption = "Exchange of numbers between GPUs",
        .note = "Times in microseconds are those of one operation on the slowest rank. In a graph, "
                "they are the time of the graph divided by its operations. GB/s is the size "
                "divided by the median time, and bus GB/s what each link carries, both as "
                "nccl-tests define them. one_shot: an all-reduce over peer memory in one launch. "
                "step: an exchange over peer memory in the form that a step of a model uses; it "
                "adds sums to FP32 numbers. A row with wrong numbers has no time.",
        .columns = {{"operation", "", TABLE_TEXT, true},
                    {"path", "", TABLE_TEXT, true},
                    {"launch", "", TABLE_TEXT, true},
                    {"type", "", TABLE_TEXT, false},
                    {"ranks", "", TABLE_NUMBER, true},
                    {"bytes", "", TABLE_NUMBER, true},
                    {"µs", "", TABLE_NUMBER, true},
                    {"p99", "", TABLE_NUMBER, false},
                    {"GB/s", "", TABLE_NUMBER, true},
                    {"bus GB/s", "", TABLE_NUMBER, true},
                    {"wrong", "", TABLE_NUMBER, false},
                    {"file", "", TABLE_TEXT, false}}};
    pen_drop_last_unless(t, m->n_files > 1);
    if (!pen_start(t, mem, m->n_exchanges))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < m->n_exchanges; i++)
        put_row(&p, m, &m->exchanges[i]);
    return !p.failed;
}
