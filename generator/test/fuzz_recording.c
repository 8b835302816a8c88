/* Reads arbitrary bytes as a recording. It must give an error or at least one row, and every row
 * that was read must be found again. */
#include <stdint.h>
#include <stdlib.h>

#include "generator/replay/recording.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    recording r;
    snap_err err = {0};
    snap_status st = recording_read(&r, (const char *)data, size, "f", NULL, &err);
    if ((st == SNAP_OK) != (err.code == SNAP_OK) || (st == SNAP_OK && !r.count))
        abort();
    for (size_t i = 0; i < r.size; i++) {
        const recorded *row = &r.table[i];
        if (row->task && recording_find(&r, row->task, row->problem, row->sample) != row)
            abort();
    }
    recording_release(&r);
    return 0;
}
