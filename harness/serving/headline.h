/* headline.h - the result of a serving comparison in one sentence that says no more than was shown.
 *
 *   "fp8 serves 1.6x (1.4 to 1.8) the requests of bf16 within the targets at equal quality (margin
 *   2 points)" */
#ifndef SNAPMLA_HARNESS_SERVING_HEADLINE_H
#define SNAPMLA_HARNESS_SERVING_HEADLINE_H

#include "base/buf.h"
#include "harness/serving/knee.h"

typedef struct {
    const char *baseline, *arm; /* names */
    knee_step knee[2];          /* the knees of the baseline and of the arm; from finished searches,
                                   or from all loads that were measured */
    /* The comparison of the answers: "equivalent", "not shown", "different"; "" = not measured. It
     * must come from answers that were given under the load. */
    const char *quality;
    double margin_pp;            /* percentage points */
    double delta_pp, ci95_pp[2]; /* accuracy of the arm minus that of the baseline */
} headline_facts;

/* Appends the sentence, without a full stop. If ends of the knees are in doubt, it begins with
 * "inconclusive" and states these loads and their flags. A ratio is stated if both knees have both
 * ends, "at least" or "at most" if the ends that were found show a difference. Otherwise the
 * sentence says which knee lacks an end. Equal quality is stated only for the verdict
 * "equivalent". */
void serving_headline(const headline_facts *f, buf *out);

#endif
