#include "harness/serving/batch_means.h"

#include <math.h>
#include <stdbool.h>

#include "evals/distributions.h"

typedef struct {
    double mean, error; /* standard error of the mean; NAN: not known */
} batch_mean;

static batch_mean mean_of(const double *x, size_t n) {
    double count = (double)n, mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        mean += x[i] / count;
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    bool known = n >= 2 && isfinite(squares);
    return (batch_mean){mean, known ? sqrt(squares / (count - 1) / count) : (double)NAN};
}

void batch_interval(const double *x, size_t n, double level, double out[2]) {
    batch_mean m = mean_of(x, n);
    out[0] = out[1] = (double)NAN;
    if (isnan(m.error))
        return;
    double half = student_quantile(0.5 + level / 2, (double)n - 1) * m.error;
    out[0] = m.mean - half;
    out[1] = m.mean + half;
}

double batch_p(const double *x, size_t n) {
    batch_mean m = mean_of(x, n);
    if (isnan(m.error))
        return (double)NAN;
    if (!(m.error > 0))
        return fabs(m.mean) > 0 ? 0 : 1;
    return 2 * student_cdf(-fabs(m.mean) / m.error, (double)n - 1);
}

void batch_widen(double ci[2], const double other[2]) {
    ci[0] = isnan(ci[0]) || isnan(other[0]) ? (double)NAN : fmin(ci[0], other[0]);
    ci[1] = isnan(ci[1]) || isnan(other[1]) ? (double)NAN : fmax(ci[1], other[1]);
}
