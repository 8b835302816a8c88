#include "evals/votes.h"

#include <stdlib.h>

static int ascending(const void *x, const void *y) {
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

static void sort(uint64_t *h, size_t n) {
    if (n)
        qsort(h, n, sizeof *h, ascending);
}

size_t votes_repeats(uint64_t *h, size_t n) {
    size_t repeats = 0;
    sort(h, n);
    for (size_t i = 1; i < n; i++)
        repeats += h[i] == h[i - 1];
    return repeats;
}

double votes_majority(uint64_t *h, size_t n, uint64_t correct) {
    size_t most = 0, leaders = 0;
    double leads = 0;
    sort(h, n);
    for (size_t i = 0, run; i < n; i += run) {
        for (run = 1; i + run < n && h[i + run] == h[i];)
            run++;
        if (run < most)
            continue;
        leaders = run > most ? 1 : leaders + 1;
        leads = (run > most ? 0 : leads) + (h[i] == correct ? 1 : 0);
        most = run;
    }
    return leaders ? leads / (double)leaders : 0;
}
