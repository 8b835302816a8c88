#include "harness/bench/arm_format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static const char kText[] = "the format of the plugin";
enum { kFileLimit = 1 << 20 };

static snap_status parse(js **out, const char *text, const char *where, snap_err *err) {
    *out = js_parse(text, strlen(text), where, err);
    return *out ? SNAP_OK : err && err->code != SNAP_OK ? err->code : SNAP_E_INPUT;
}

/* Reads the file of a format. cache_format_load() reads it, too, and reports what is wrong. */
static snap_status read_source(js **out, const char *name, snap_err *err) {
    char *path = cache_format_path(name);
    *out = path ? js_parse_file(path, kFileLimit, err) : NULL;
    free(path);
    return *out ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a format");
}

static snap_status keep_text(arm_format *f, const js *doc, snap_err *err) {
    buf text = {0};
    snap_status st = js_write(doc, JS_COMPACT, &text, err);
    if (st == SNAP_OK)
        st = hash_bytes(text.data, text.len, f->sha256, err);
    f->json = st == SNAP_OK ? strdup(buf_str(&text)) : NULL;
    buf_release(&text);
    if (st == SNAP_OK && !f->json)
        st = err_set(err, SNAP_E_NOMEM, "out of memory for a format");
    return st;
}

snap_status arm_format_load(arm_format **out, const char *name, int d_c, int d_r, snap_err *err) {
    snap_status st = SNAP_OK;
    js *doc = NULL;
    arm_format *f = calloc(1, sizeof *f);
    *out = NULL;
    if (!f)
        return err_set(err, SNAP_E_NOMEM, "out of memory for a format");
    if (name[0] == '{') {
        TRY(parse(&doc, name, kText, err));
        TRY(cache_format_read(&f->format, doc, kText, d_c, d_r, err));
    } else {
        TRY(cache_format_load(&f->format, name, d_c, d_r, err));
        TRY(read_source(&doc, name, err));
    }
    TRY(keep_text(f, doc, err));
    *out = f;
    f = NULL;
cleanup:
    js_free(doc);
    arm_format_free(f);
    return st;
}

void arm_format_free(arm_format *f) {
    if (f)
        free(f->json);
    free(f);
}

snap_status arm_format_parse(cache_format *out, const char *json, const char *where, int d_c,
                             int d_r, snap_err *err) {
    js *doc = NULL;
    snap_status st = parse(&doc, json, where, err);
    if (st == SNAP_OK)
        st = cache_format_read(out, doc, where, d_c, d_r, err);
    js_free(doc);
    return st;
}

bench_kind arm_format_kind(const cache_format *f) {
    element_type t = f->content.plane.type;
    bool float8 = t == ELEMENT_E4M3FN || t == ELEMENT_E4M3FNUZ || t == ELEMENT_E5M2;
    return float8 && f->queries == QUERIES_FORMAT && f->pv == REF_P_E4M3 ? BENCH_FP8 : BENCH_BF16;
}

ref_pv arm_format_pv(const cache_format *f) {
    return f->pv == REF_P_E4M3 ? REF_P_EXACT : f->pv;
}

/* The least bound of any kernel. Rounding numbers to BF16 has a relative L2 error of 1.66e-3. A
 * kernel may round P, the partial results of a split and the output: 2.9e-3 for all three.
 * It may use approximations of exp2 and log2, whose errors are also in the log-sum-exp. An error of
 * 5e-4 in it changes merged results by less than one rounding does. */
static judge_bound any_kernel(judge_bound b) {
    return (judge_bound){fmax(b.out_rel, 3e-3), fmax(b.row_rel, 6e-3), fmax(b.lse_err, 5e-4)};
}

judge_bound arm_format_bound(const arm_format *f) {
    judge_bound bound = f->format.pv == REF_P_E4M3 ? judge_bound_of(MLA_FP8, REF_P_EXACT)
                                                   : cache_format_bound(&f->format);
    bound = any_kernel(bound);
    if (f->format.hadamard) /* a kernel may round the queries before or after their rotation */
        bound.lse_err *= 4;
    return bound;
}
