/* Reads arbitrary bytes as a trace. It must be refused with a message, or give requests in order
 * whose lengths are in range. */
#include <stdint.h>

#include "harness/serving/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    trace t;
    snap_err err = {0};
    snap_status st = trace_parse((const char *)data, size, "trace", &t, &err);
    if ((st == SNAP_OK) != (err.code == SNAP_OK) || (st != SNAP_OK && !err.text[0]) ||
        (st == SNAP_OK && !t.n))
        __builtin_trap();
    double last = 0;
    for (size_t i = 0; i < t.n && st == SNAP_OK; i++) {
        const trace_row *r = &t.rows[i];
        if (!(r->time_s >= last) || r->input_length < 1 || r->input_length > TRACE_MOST_TOKENS ||
            r->output_length < 1 || r->output_length > TRACE_MOST_TOKENS || r->prefix < -1 ||
            r->prefix_length < -1 || r->prefix_length > r->input_length)
            __builtin_trap();
        last = r->time_s;
    }
    trace_release(&t);
    return 0;
}
