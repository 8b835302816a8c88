#include "evals/test/growth.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* CPU time in seconds to grade @bytes of repeated @piece. */
static double grade_seconds(const grader *g, const char *gold, const char *piece, size_t bytes) {
    static char text[1 << 20];
    size_t n = strlen(piece);
    for (size_t i = 0; i < bytes; i++)
        text[i] = piece[i % n];
    clock_t start = clock();
    grade_result r = g->grade(gold, (grade_input){.response = {text, bytes}});
    CU_ASSERT(r.verdict <= GRADE_UNPARSED && r.reason);
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

void growth_is_linear(const grader *g, const char *gold, const char *const *pieces, size_t n) {
    for (size_t i = 0; i < n; i++) {
        double once = grade_seconds(g, gold, pieces[i], 1 << 18);
        double four = grade_seconds(g, gold, pieces[i], 1 << 20);
        if (four > 9 * once + 0.05)
            printf("\n1 MiB of '%s' in %s: %.3f s, a quarter of it %.3f s\n", pieces[i], g->id,
                   four, once);
        CU_ASSERT(four <= 9 * once + 0.05);
    }
}
