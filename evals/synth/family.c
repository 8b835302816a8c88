#include "evals/synth/family.h"

#include <string.h>

int64_t draw(rng *r, int64_t low, int64_t high) {
    return low + rng_below(r, (uint32_t)(high - low + 1));
}

int64_t draw_nonzero(rng *r, int64_t low, int64_t high) {
    int64_t x = draw(r, low, high - 1);
    return x < 0 ? x : x + 1;
}

void family_box(synth_problem *p) {
    say(&p->solution, "The answer is \\boxed{%s}.", buf_str(&p->answer));
}

bool family_options(synth_problem *p, rng *r, char option[FAMILY_OPTIONS][FAMILY_OPTION_MAX]) {
    int order[FAMILY_OPTIONS], right = 0;
    for (int i = 0; i < FAMILY_OPTIONS; i++) {
        order[i] = i;
        for (int j = 0; j < i; j++)
            if (strcmp(option[i], option[j]) == 0)
                return false;
    }
    for (int i = FAMILY_OPTIONS - 1; i > 0; i--) {
        int j = (int)draw(r, 0, i), was = order[i];
        order[i] = order[j];
        order[j] = was;
    }
    say(&p->problem, "\n");
    for (int i = 0; i < FAMILY_OPTIONS; i++) {
        say(&p->problem, "\n%c) %s", 'A' + i, option[order[i]]);
        right = order[i] == 0 ? i : right;
    }
    say(&p->answer, "%c", 'A' + right);
    say(&p->solution, "That is option %c.\nAnswer: %c", 'A' + right, 'A' + right);
    return true;
}
