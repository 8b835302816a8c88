#include "harness/test/report_fixture.h"

#include <CUnit/CUnit.h>
#include <string.h>

const char kEvil[] = "]]>--><script>alert(1)</script>&amp;\"'|`*_[x](y)#%$&{}~^\\ \x01\x1b[31m"
                     "\xEF\xBF\xBF\xE2\x80\xAE\n\\input{x}, =1+1";

report_model *fixture_model(const results *r) {
    report_model *m;
    const char *name = "run.json";
    results *runs[1];
    memcpy(runs, &r, sizeof r);
    CU_ASSERT_EQUAL_FATAL(report_model_new(&m, runs, &name, 1, NULL), SNAP_OK);
    return m;
}

results *fixture_load(void) {
    results *r;
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(results_load(&r, "harness/test/fixtures/run.json", &err), SNAP_OK);
    return r;
}

results *fixture_sweep(int rows) {
    results *r;
    CU_ASSERT_EQUAL_FATAL(results_new(&r, "bench", NULL, 0, NULL), SNAP_OK);
    results *fixture = fixture_load();
    js *all = results_section(r, "bench"), *row = js_at(results_section(fixture, "bench"), 0);
    CU_ASSERT_EQUAL(
        results_add_all(r, "ceilings", js_copy(results_section(fixture, "ceilings")), NULL),
        SNAP_OK);
    for (int i = 0; i < rows; i++) {
        js *copy = js_copy(row), *shape = js_get_object(copy, "shape");
        CU_ASSERT(js_set_str(copy, "arm", i % 2 ? "bf16" : "fp8"));
        CU_ASSERT(js_set_str(copy, "scope", i / 2 % 2 ? "kernel" : "served"));
        CU_ASSERT(js_set_int(shape, "context", (int64_t)1024 << (i / 4 % 8)));
        CU_ASSERT(js_set_int(shape, "batch", (int64_t)1 << (i / 32 % 8)));
        CU_ASSERT(js_set_int(shape, "s_q", 1 + i / 256 % 2));
        CU_ASSERT(js_set_int(shape, "heads", (int64_t)16 << (i / 512)));
        CU_ASSERT(js_set_num(js_get_object(copy, "performance"), "median_ns", 1e7 + i));
        CU_ASSERT(js_push_new(all, copy));
    }
    results_free(fixture);
    return r;
}
