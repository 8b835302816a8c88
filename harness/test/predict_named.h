/* predict_named.h - for tests of predictions: shapes of models in configs/models and layouts, by
 * name, and measured exchanges. An unknown name ends the test. */
#ifndef SNAPMLA_HARNESS_TEST_PREDICT_NAMED_H
#define SNAPMLA_HARNESS_TEST_PREDICT_NAMED_H

#include <CUnit/CUnit.h>

#include "harness/bench/model_config.h"
#include "harness/bench/predict_work.h"
#include "harness/record/exchange_record.h"

static inline model_shape shape_named(const char *name) {
    model_shape s = {0};
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(model_config_open(&s, name, &err), SNAP_OK);
    return s;
}

static inline predict_layout layout_named(const char *text) {
    predict_layout l;
    CU_ASSERT_EQUAL_FATAL(predict_layout_parse(&l, text, NULL), SNAP_OK);
    return l;
}

/* An exchange of FP32 numbers between two ranks, inside a graph. @ns: the median; the best time is
 * half of it, and the 99th percentile twice. */
static inline exchange_record exchange_row(const char *operation, const char *path, int64_t bytes,
                                           double ns) {
    exchange_record r;
    record_init(&exchange_type, &r);
    r.parts = EXCHANGE_TIMED;
    r.operation = operation;
    r.path = path;
    r.launch = "graph";
    r.type = "fp32";
    r.ranks = 2;
    r.bytes = bytes;
    r.nccl = r.checked = r.wrong = 0;
    r.samples = r.operations = 1;
    r.median_ns = ns;
    r.best_ns = ns / 2;
    r.p99_ns = ns * 2;
    r.algorithm_bytes_s = r.bus_bytes_s = 1;
    return r;
}

#endif
