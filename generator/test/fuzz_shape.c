/* Reads arbitrary bytes as a config.json. It must give an error, or a shape whose inventory lists
 * tensors with names and possible sizes (the first kEnough are checked). */
#include <stdint.h>
#include <stdlib.h>

#include "generator/local/checkpoint/inventory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { kEnough = 1000 };

static snap_status count_tensor(void *ctx, const char *name, int64_t rows, int64_t cols,
                                snap_err *err) {
    int *n = ctx;
    if (!name[0] || rows < 1 || cols < 0 || rows > INT64_MAX / (cols + 1) / 4)
        abort();
    return ++*n < kEnough ? SNAP_OK : err_set(err, SNAP_E_CANCELLED, "enough");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    model_shape s;
    snap_err err = {0};
    int n = 0;
    if (model_shape_parse(&s, (const char *)data, size, "fuzz", &err) == SNAP_OK)
        (void)!inventory_each(&s, count_tensor, &n, NULL);
    else if (!err.text[0])
        abort();
    return 0;
}
