#include "harness/bench/kind.h"

#include <string.h>

static const struct {
    const char *name;
    mla_precision precision;
    lab_ablation ablation;
    bool served_only, plain_queries;
} kinds[BENCH_ARMS] = {
    [BENCH_BF16] = {"bf16", MLA_BF16, LAB_WHOLE, false, false},
    [BENCH_FP8] = {"fp8", MLA_FP8, LAB_WHOLE, false, false},
    [BENCH_WIDENED] = {"fp8-widened", MLA_FP8, LAB_WIDENED, false, true},
    [BENCH_IN_PLACE] = {"fp8-in-place", MLA_FP8, LAB_IN_PLACE, false, false},
    [BENCH_SHALLOW] = {"fp8-shallow", MLA_FP8, LAB_SHALLOW, false, false},
    [BENCH_PAGE_UNITS] = {"fp8-page-units", MLA_FP8, LAB_PAGE_UNITS, false, false},
    [BENCH_PAGE_ORDER] = {"fp8-page-order", MLA_FP8, LAB_PAGE_ORDER, false, false},
    [BENCH_UNFUSED] = {"fp8-unfused", MLA_FP8, LAB_WHOLE, true, false},
    [BENCH_COPIED] = {"fp8-copied", MLA_FP8, LAB_WHOLE, true, true},
};

const char *bench_scope_name(bench_scope s) {
    return s == BENCH_KERNEL ? "kernel" : "served";
}

const char *bench_kind_name(bench_kind k) {
    return kinds[k].name;
}

bool bench_kind_parse(const char *name, bench_kind *out) {
    for (int k = 0; k < BENCH_ARMS; k++)
        if (strcmp(name, kinds[k].name) == 0) {
            *out = (bench_kind)k;
            return true;
        }
    return false;
}

mla_precision bench_kind_precision(bench_kind k) {
    return kinds[k].precision;
}

lab_ablation bench_kind_ablation(bench_kind k) {
    return kinds[k].ablation;
}

bool bench_kind_has(bench_kind k, bench_scope s) {
    return s == BENCH_SERVED || !kinds[k].served_only;
}

bool bench_kind_plain_queries(bench_kind k) {
    return kinds[k].plain_queries;
}

judge_bound bench_kind_bound(bench_kind k, ref_pv pv) {
    judge_bound b = judge_bound_of(kinds[k].precision, pv);
    double factor = k == BENCH_IN_PLACE ? 4 : 1;
    return (judge_bound){factor * b.out_rel, factor * b.row_rel, b.lse_err};
}
