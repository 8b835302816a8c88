#include "generator/local/tokenizer/normalize.h"

enum { kMostGrowth = 64, kRoom = 64 << 10 }; /* the NFKD of a text has up to 11 times its bytes */

static snap_status replace_all(const normalize_step *step, regex_work *w, const buf *in, buf *out,
                               snap_err *err) {
    const char *s = buf_str(in);
    size_t done = 0;
    bool found = true;
    snap_status st = SNAP_OK;
    while (done <= in->len) {
        regex_match m;
        TRY(regex_find(step->re, w, s, in->len, done, &m, &found, err));
        if (!found || m.start == m.end) /* read_normalizer() refuses patterns with empty matches */
            break;
        (void)buf_append(out, s + done, m.start - done);
        (void)buf_append(out, step->with, step->n);
        done = m.end;
    }
    (void)buf_append(out, s + done, in->len - done);
cleanup:
    return st;
}

snap_status normalize_text(const normalizer *nm, regex_work *w, const char *s, size_t n, buf *out,
                           buf *spare, snap_err *err) {
    snap_status st = SNAP_OK;
    buf_clear(out);
    out->limit = spare->limit = kMostGrowth * n + kRoom;
    (void)buf_append(out, s, n);
    for (int i = 0; i < nm->n && !out->failed; i++) {
        const normalize_step *step = &nm->steps[i];
        buf swap = *out;
        *out = *spare;
        *spare = swap;
        buf_clear(out);
        if (step->form != FORM_NONE) {
            TRY(form_apply(step->form, buf_str(spare), spare->len, out, err));
            continue;
        }
        if (step->re) {
            TRY(replace_all(step, w, spare, out, err));
            continue;
        }
        if (spare->len)
            (void)buf_append(out, step->with, step->n);
        (void)buf_append(out, buf_str(spare), spare->len);
    }
    if (out->too_long)
        TRY(err_set(err, SNAP_E_INPUT,
                    "the tokenizer's normalizers turn %zu bytes into more than %zu: its file is "
                    "damaged or hostile",
                    n, out->limit));
    TRY(buf_check(out, "a normalised text", err));
cleanup:
    return st;
}

void normalizer_release(normalizer *nm) {
    for (int i = 0; i < nm->n; i++)
        regex_free(nm->steps[i].re);
    *nm = (normalizer){0};
}
