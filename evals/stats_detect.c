/* stats_detect.c - which true loss a comparison would have shown. */
#include <math.h>

#include "evals/distributions.h"
#include "evals/stats.h"

/* The chance that the 95 % interval lies below 0 if the true loss is @x. */
static double chance_of(const stats_paired *p, double step, double x) {
    double n = (double)p->n, df = n - 1, implied = fmax(step * x - x * x, 0) / n;
    double se = sqrt(p->se * p->se + implied);
    return se > 0 ? student_cdf(x / se - student_quantile(0.975, df), df) : 1;
}

double stats_detectable_loss(const stats_paired *p, double step, double chance) {
    enum { kHalvings = 50 };
    double low = 0, high = 1;
    if (p->n < 2 || !(p->se >= 0) || (!(p->se > 0) && !(step > 0)) ||
        chance_of(p, step, high) < chance)
        return NAN;
    for (int i = 0; i < kHalvings; i++) {
        double middle = (low + high) / 2;
        if (chance_of(p, step, middle) < chance)
            low = middle;
        else
            high = middle;
    }
    return high;
}
