#include "generator/local/tokenizer/normalize.h"

static snap_status replace_all(const normalize_step *step, regex_work *w, const buf *in, buf *out,
                               snap_err *err) {
    const char *s = buf_str(in);
    size_t done = 0;
    bool found = true;
    snap_status st = SNAP_OK;
    while (done <= in->len) {
        regex_match m;
        TRY(regex_find(step->re, w, s, in->len, done, &m, &found, err));
        if (!found || m.start == m.end) /* a pattern that matches the empty string replaces nothing
                                           from here on */
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
    (void)buf_append(out, s, n);
    for (int i = 0; i < nm->n; i++) {
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
    TRY(buf_check(out, "a normalised text", err));
cleanup:
    return st;
}

void normalizer_release(normalizer *nm) {
    for (int i = 0; i < nm->n; i++)
        regex_free(nm->steps[i].re);
    *nm = (normalizer){0};
}
