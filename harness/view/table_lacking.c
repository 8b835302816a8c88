/* table_lacking.c - the cells that one file of a comparison lacks and another one has, with the
 * command that measures them. */
#include "harness/view/gaps.h"
#include "harness/view/pen.h"

bool report_table_lacking(const report_model *m, arena *mem, table *t) {
    size_t n = 0;
    gap *gaps = gaps_find(m, mem, &n);
    *t = (table){
        .id = "lacking",
        .caption = "What each file lacks",
        .note = "Cells that another file has, without those that this file has as skipped. "
                "The command measures them on the file's "
                "device. For many shapes, it names a shipped configuration that has them. Named "
                "arms keep their names, and run on this device's backend.",
        .columns = {{"#", "", TABLE_NUMBER, true},
                    {"device", "", TABLE_TEXT, true},
                    {"cells", "", TABLE_NUMBER, true},
                    {"command", "", TABLE_TEXT, true}}};
    if (!gaps || !pen_start(t, mem, m->n_compared ? n : 0))
        return false;
    pen p = {t, mem, false};
    for (size_t i = 0; m->n_compared && i < n; i++) {
        pen_fixed(&p, gaps[i].file + 1, 0);
        pen_device(&p, m, gaps[i].file);
        pen_fixed(&p, (double)gaps[i].n_cells, 0);
        buf command = {0};
        gap_command(m, &gaps[i], &command);
        p.failed |= command.failed;
        pen_put(&p, buf_str(&command));
        buf_release(&command);
    }
    return !p.failed;
}
