#include "harness/view/conditions.h"

#include <string.h>

#include "harness/bench/kind.h"

static const char *const kNames[CONDITIONS] = {
    [CONDITION_INPUT] = "input",     [CONDITION_ARM] = "arm",
    [CONDITION_QUERIES] = "queries", [CONDITION_UNIT] = "unit of P",
    [CONDITION_SUMS] = "FP8 sums",   [CONDITION_SCALE] = "scale rule",
    [CONDITION_FORMAT] = "format",   [CONDITION_LAYOUT] = "layout of the format",
    [CONDITION_COLD] = "cache",      [CONDITION_MODE] = "mode",
};

const char *condition_name(condition c) {
    return kNames[c];
}

static const char *queries_of(const cell_record *row, bench_kind kind) {
    if (row->format.exists)
        return "format";
    return bench_kind_precision(kind) == MLA_FP8 && !bench_kind_plain_queries(kind) ? "fp8"
                                                                                    : "bf16";
}

static const char *unit_of(bench_kind kind) {
    lab_ablation a = bench_kind_ablation(kind);
    return a == LAB_PAGE_UNITS || a == LAB_PAGE_ORDER ? "page" : "kept";
}

const char *condition_value(const cell_record *row, condition c) {
    bench_kind kind = BENCH_BF16;
    (void)bench_kind_parse(row->arm, &kind); /* the record has known kinds only */
    switch (c) {
    case CONDITION_INPUT:
        return row->distribution;
    case CONDITION_ARM:
        return cell_arm_name(row);
    case CONDITION_QUERIES:
        return queries_of(row, kind);
    case CONDITION_UNIT:
        return unit_of(kind);
    case CONDITION_SUMS:
        return bench_kind_ablation(kind) == LAB_IN_PLACE ? "tensor cores" : "FP32";
    case CONDITION_SCALE:
        return strstr(row->options, ",scale=pow2") ? "pow2" : "max";
    case CONDITION_FORMAT:
        return row->format.exists ? row->format.name : "";
    case CONDITION_LAYOUT:
        return row->format.exists ? row->format.sha256 : "";
    case CONDITION_COLD: /* by rotating through copies or by flushing: both are cold */
        return strcmp(row->cold, "none") == 0 ? "warm" : "cold";
    case CONDITION_MODE: /* older files have no mode: their rows are single steps */
        return strcmp(row->mode, "sustained") == 0 ? "sustained" : "burst";
    case CONDITIONS:
        break;
    }
    return "";
}

bool condition_differs(const cell_record *a, const cell_record *b, condition c) {
    return strcmp(condition_value(a, c), condition_value(b, c)) != 0;
}
