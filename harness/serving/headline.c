#include "harness/serving/headline.h"

#include <math.h>
#include <string.h>

/* Appends why there is no ratio, such as "no ratio of the requests within the targets: fp8 met the
 * targets at the highest load that was decided". */
static void missing(const headline_facts *f, buf *out) {
    const char *names[2] = {f->baseline, f->arm};
    int said = 0;
    (void)buf_puts(out, "no ratio of the requests within the targets: ");
    for (int i = 0; i < 2; i++) {
        const knee_step *k = &f->knee[i];
        bool low = k->lo > 0, high = isfinite(k->hi);
        if (low && high)
            continue;
        (void)buf_printf(out, "%s%s %s", said++ ? "; " : "", names[i],
                         !low && !high ? "was neither shown to meet nor to miss the targets"
                         : low         ? "met the targets at the highest load that was decided"
                                       : "missed the targets at the lowest load that was decided");
    }
}

static bool is_doubtful(const knee_step *k) {
    return k->doubt[0] || k->doubt[1];
}

/* Appends which loads at the ends of the knees are in doubt. */
static void say_doubts(const headline_facts *f, buf *out) {
    const char *names[2] = {f->baseline, f->arm};
    int said = 0;
    (void)buf_printf(out,
                     "inconclusive: no ratio of the requests within the targets of %s and %s, "
                     "because loads at the ends of the knees have flags: ",
                     f->arm, f->baseline);
    for (int i = 0; i < 2; i++)
        for (int end = 0; end < 2; end++)
            if (f->knee[i].doubt[end])
                (void)buf_printf(out, "%s%s at load %.4g is %s", said++ ? ", " : "", names[i],
                                 end ? f->knee[i].hi : f->knee[i].lo, f->knee[i].doubt[end]);
}

/* Appends the part about the loads. Returns whether it states a difference. */
static bool say_ratio(const headline_facts *f, buf *out) {
    knee_ratio r = knee_ratio_of(&f->knee[0], &f->knee[1]);
    if (is_doubtful(&f->knee[0]) || is_doubtful(&f->knee[1])) {
        say_doubts(f, out);
        return false;
    }
    if (!isnan(r.ratio) && (r.lo > 1 || r.hi < 1))
        (void)buf_printf(out,
                         "%s serves %.2gx (%.2g to %.2g) the requests of %s within the targets",
                         f->arm, r.ratio, r.lo, r.hi, f->baseline);
    else if (!isnan(r.ratio))
        (void)buf_printf(out,
                         "no difference between %s and %s in the requests within the targets is "
                         "shown: %.2gx (%.2g to %.2g)",
                         f->arm, f->baseline, r.ratio, r.lo, r.hi);
    else if (r.lo > 1)
        (void)buf_printf(out, "%s serves at least %.2gx the requests of %s within the targets",
                         f->arm, r.lo, f->baseline);
    else if (r.hi < 1)
        (void)buf_printf(out, "%s serves at most %.2gx the requests of %s within the targets",
                         f->arm, r.hi, f->baseline);
    else
        missing(f, out);
    return r.lo > 1 || r.hi < 1;
}

void serving_headline(const headline_facts *f, buf *out) {
    bool stated = say_ratio(f, out);
    if (strcmp(f->quality, "equivalent") == 0)
        (void)buf_printf(out, "%s at equal quality (margin %.3g points)", stated ? "" : ";",
                         f->margin_pp);
    else if (strcmp(f->quality, "different") == 0)
        (void)buf_printf(out, "; its answers differ in quality: %+.1f points (%+.1f to %+.1f)",
                         f->delta_pp, f->ci95_pp[0], f->ci95_pp[1]);
    else if (strcmp(f->quality, "not shown") == 0)
        (void)buf_printf(out, "; equal quality (margin %.3g points) is not shown", f->margin_pp);
    else
        (void)buf_puts(out, "; quality was not measured");
}
