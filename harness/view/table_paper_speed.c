/* table_paper_speed.c - the paper's table of the decoding speed of whole models. Each row compares
 * FP8 with BF16: as measured here, as predicted, or as the paper reports. */
#include <string.h>

#include "harness/view/decode_speed.h"
#include "harness/view/paper_pen.h"

static void put_row(pen *p, const decode_speed *s) {
    char layout[LAYOUT_SHORT_MAX];
    pen_put(p, s->predicted ? PAPER_PREDICTED : PAPER_MEASURED);
    pen_text(p, s->model);
    pen_text(p, layout_short(s->layout, layout));
    pen_text(p, s->conditions);
    pen_context(p, s->context);
    for (int arm = 0; arm < SPEED_ARMS; arm++)
        pen_fixed(p, record_count(s->batch[arm]), 0);
    for (int arm = 0; arm < SPEED_ARMS; arm++)
        paper_put_speed(p, s->tokens_s[arm], s->lo[arm], s->hi[arm]);
    paper_put_ratio(p, s->speedup, s->speedup_lo, s->speedup_hi);
    paper_put_name(p, s->source);
}

static void put_quote(pen *p, const report_quote *q) {
    char layout[LAYOUT_SHORT_MAX];
    pen_put(p, PAPER_REPORTED);
    pen_text(p, q->model);
    pen_text(p, q->layout[0] ? layout_short(q->layout, layout) : "");
    pen_text(p, q->what);
    paper_blank(p, 3);
    pen_fixed(p, q->bf16, 0);
    pen_fixed(p, q->fp8, 0);
    pen_times(p, q->speedup);
    pen_text(p, q->source);
}

bool report_table_paper_speed(const report_model *m, arena *mem, table *t) {
    decode_speeds rows;
    *t = (table){
        .id = "paper-speed",
        .caption = "Decoding speed of whole models in tokens/s",
        .note =
            "Measured rows are decode steps of a model with random weights. Layout: how the model "
            "is divided over several GPUs, without parts of one GPU. DP: replicas, TP: GPUs of a "
            "replica, EP: GPUs over which the experts are divided. Batches and tokens/s are those "
            "of all GPUs. The rows of one model, layout and context include the largest batch that "
            "fits into a given memory; it is smaller for BF16. Rows marked 'predicted' were not "
            "measured: bench model --predict computed them from measured parts of a step. Their "
            "intervals are in parentheses." PAPER_REPORTED_NOTE,
        .columns = {{"origin", "", TABLE_TEXT, true},
                    {"model", "", TABLE_TEXT, true},
                    {"layout", "", TABLE_TEXT, true},
                    {"device or conditions", "", TABLE_TEXT, true},
                    {"context", "", TABLE_NUMBER, true},
                    {"BF16", "batch", TABLE_NUMBER, true},
                    {"FP8", "batch", TABLE_NUMBER, true},
                    {"BF16", "tokens/s", TABLE_NUMBER, true},
                    {"FP8", "tokens/s", TABLE_NUMBER, true},
                    {"speed-up", "", TABLE_NUMBER, true},
                    {"source", "", TABLE_TEXT, true}}};
    if (!decode_speeds_find(m, mem, &rows) ||
        !pen_start(t, mem, rows.n + paper_count_quotes(m, "speed")))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; i < rows.n; i++)
        put_row(&p, &rows.at[i]);
    for (size_t i = 0; i < m->n_quotes; i++)
        if (strcmp(m->quotes[i].about, "speed") == 0)
            put_quote(&p, &m->quotes[i]);
    return !p.failed;
}
