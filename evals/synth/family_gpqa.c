/* family_gpqa.c - problems with four options: molar masses, offspring of a cross, motion in stages,
 * amino acids of a DNA strand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evals/synth/family.h"

#define LL(x) ((long long)(x))

/* Makes options from the right number and three wrong ones. False if a number is negative or two
 * are equal. */
static bool number_options(synth_problem *p, rng *r, int64_t right, const int64_t wrong[3],
                           const char *unit) {
    char option[FAMILY_OPTIONS][FAMILY_OPTION_MAX];
    for (int i = 0; i < FAMILY_OPTIONS; i++) {
        int64_t x = i ? wrong[i - 1] : right;
        if (x < 0)
            return false;
        (void)snprintf(option[i], sizeof option[i], "%lld%s%s", LL(x), *unit ? " " : "", unit);
    }
    return family_options(p, r, option);
}

/* ---- molar mass ---- */

typedef struct {
    const char *symbol;
    int mass;
} element;

static const element elements[] = {{"C", 12},  {"H", 1},   {"N", 14},  {"O", 16},  {"S", 32},
                                   {"P", 31},  {"F", 19},  {"K", 39},  {"Na", 23}, {"Mg", 24},
                                   {"Ca", 40}, {"Fe", 56}, {"Si", 28}, {"Br", 80}};
enum { kElements = sizeof elements / sizeof *elements, kParts = 6 };

static bool mass(synth_problem *p, rng *r) {
    int n = (int)BY_LEVEL(p, 2, 3, 4, 6, 0), chosen[kParts] = {0};
    int64_t count[kParts], sum = 0, last = 0, lightest = 0;
    say(&p->params, " ");
    for (int i = 0; i < n; i++) {
        chosen[i] = (int)draw(r, 0, kElements - 1);
        count[i] = draw(r, 1, BY_LEVEL(p, 6, 9, 14, 25, 0));
        for (int j = 0; j < i; j++)
            if (chosen[j] == chosen[i])
                return false;
        say(&p->params, count[i] > 1 ? "%s%lld" : "%s", elements[chosen[i]].symbol, LL(count[i]));
    }
    say(&p->problem, "What is the molar mass of%s in g/mol, with",
        strchr(buf_str(&p->params), ' '));
    for (int i = 0; i < n; i++) {
        const element *e = &elements[chosen[i]];
        say(&p->problem, "%s %s=%d", i ? "," : "", e->symbol, e->mass);
        say(&p->solution, "%s: ", e->symbol);
        last = work_multiply(&p->solution, e->mass, count[i]);
        say(&p->solution, "\n");
        if (i)
            say(&p->solution, "%lld+%lld=%lld\n", LL(sum), LL(last), LL(sum + last));
        sum += last;
        lightest = i == 0 || e->mass < lightest ? e->mass : lightest;
    }
    say(&p->problem, "?");
    int64_t wrong[] = {sum - last, sum + elements[chosen[0]].mass, sum - lightest + (n > 2)};
    return number_options(p, r, sum, wrong, "g/mol");
}

/* ---- a genetic cross: each locus contributes a fraction ---- */

enum { kLoci = 6, kLetters = 12 };

typedef struct {
    int dominant[3][kLoci]; /* number of dominant alleles (0, 1 or 2) of both parents and of the
                               requested offspring */
    char letter[kLoci];
    int n;
} genotypes;

/* Number of offspring with `want` dominant alleles among the four of g1 x g2. */
static int64_t quarter(int g1, int g2, int want) {
    int64_t n = 0;
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++)
            n += (a < g1 ? 1 : 0) + (b < g2 ? 1 : 0) == want;
    return n;
}

static void say_locus(buf *out, const genotypes *g, int who, int i) {
    char upper = g->letter[i], lower = (char)(upper + 'a' - 'A');
    int dominant = g->dominant[who][i];
    say(out, "%c%c", dominant > 0 ? upper : lower, dominant > 1 ? upper : lower);
}

static bool draw_genotypes(genotypes *g, rng *r) {
    static const char letters[kLetters + 1] = "ABDEGHKLMQRT";
    bool taken[kLetters] = {false};
    for (int i = 0; i < g->n; i++) {
        int at;
        do {
            at = (int)draw(r, 0, kLetters - 1);
        } while (taken[at]);
        taken[at] = true;
        g->letter[i] = letters[at];
        for (int k = 0; k < 2; k++) /* mostly heterozygous parents */
            g->dominant[k][i] = draw(r, 0, 2) ? 1 : (int)(2 * draw(r, 0, 1));
        g->dominant[2][i] = (int)draw(r, 0, 2);
        if (!quarter(g->dominant[0][i], g->dominant[1][i], g->dominant[2][i]))
            return false;
    }
    return true;
}

static bool cross(synth_problem *p, rng *r) {
    static const char *const before[] = {"Parents ", " and ",
                                         " are crossed. What share of the offspring is "};
    genotypes g = {.n = (int)BY_LEVEL(p, 2, 3, 4, 6, 0)};
    int64_t total = 1, whole = 1;
    if (!draw_genotypes(&g, r))
        return false;
    for (int k = 0; k < 3; k++) {
        say(&p->params, " ");
        say(&p->problem, "%s", before[k]);
        for (int i = 0; i < g.n; i++) {
            say_locus(&p->params, &g, k, i);
            say_locus(&p->problem, &g, k, i);
        }
    }
    say(&p->problem, ", with loci that are inherited independently?");
    for (int i = 0; i < g.n; i++) {
        int64_t share = quarter(g.dominant[0][i], g.dominant[1][i], g.dominant[2][i]);
        for (int k = 0; k < 3; k++) {
            say(&p->solution, k == 1 ? " x " : k == 2 ? " gives " : "");
            say_locus(&p->solution, &g, k, i);
        }
        say(&p->solution, " in %lld/4\n", LL(share));
        if (i)
            say(&p->solution, "%lld*%lld=%lld, %lld*4=%lld\n", LL(total), LL(share),
                LL(total * share), LL(whole), LL(4 * whole));
        total *= share;
        whole *= 4;
    }
    char option[FAMILY_OPTIONS][FAMILY_OPTION_MAX];
    int64_t shares[] = {total, total * 2, total > 1 ? total - 1 : 3, total > 1 ? total + 1 : 4};
    for (int i = 0; i < FAMILY_OPTIONS; i++)
        (void)snprintf(option[i], sizeof option[i], "%lld/%lld", LL(shares[i]), LL(whole));
    return family_options(p, r, option);
}

/* ---- motion: stages of constant acceleration ---- */

enum { kFastest = 99 }; /* m/s */

static bool motion(synth_problem *p, rng *r) {
    int n = (int)draw(r, BY_LEVEL(p, 1, 2, 4, 7, 16, 25), BY_LEVEL(p, 1, 3, 6, 10, 24, 28));
    int64_t v = draw(r, 0, 20), s = 0, final = 0, unhalved = 0;
    say(&p->params, " v=%lld", LL(v));
    say(&p->problem, "A body starts at %lld m/s and accelerates by stages:", LL(v));
    for (int i = 0; i < n; i++) {
        int64_t a, t;
        do {
            a = draw(r, -5, 6);
            t = draw(r, 1, BY_LEVEL(p, 5, 8, 9, 9, 9, 9));
        } while (a * t % 2 || v + a * t < 0 || v + a * t > kFastest);
        say(&p->params, " %lld,%lld", LL(a), LL(t));
        say(&p->problem, "%s %lld m/s^2 for %lld s", i ? "," : "", LL(a), LL(t));
        int64_t change = a * t, way = v * t, more = change * t / 2;
        say(&p->solution, "%d: %lld*%lld=%lld, %lld*%lld=%lld, %lld*%lld/2=%lld, %lld%+lld=%lld\n",
            i + 1, LL(a), LL(t), LL(change), LL(v), LL(t), LL(way), LL(change), LL(t), LL(more),
            LL(way), LL(more), LL(way + more));
        say(&p->solution, "%lld+%lld=%lld, %lld%+lld=%lld\n", LL(s), LL(way + more),
            LL(s + way + more), LL(v), LL(change), LL(v + change));
        unhalved += change * t;
        final = v * t;
        s += way + more;
        v += change;
    }
    say(&p->problem, ". How far does it go?");
    int64_t wrong[] = {s + unhalved - unhalved / 2, s + final, s > 20 ? s - 10 : s + 10};
    return number_options(p, r, s, wrong, "m");
}

/* ---- a strand translated to amino acids ---- */

/* Indexed by the first, second and third base in the order U C A G. */
static const char kAmino[] = "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG";
static const char kBases[] = "UCAG", kTemplate[] = "AGTC"; /* the bases that are transcribed to U C
                                                              A G */

static bool strand(synth_problem *p, rng *r) {
    int n = (int)draw(r, BY_LEVEL(p, 2, 4, 8, 18, 118, 151), BY_LEVEL(p, 4, 7, 15, 30, 150, 168));
    int64_t count = 0;
    char acid = "LSRGAVPTKEDNQI"[draw(r, 0, 13)];
    say(&p->params, " %c ", acid);
    say(&p->problem, "The template strand ");
    for (int i = 0; i < n; i++) {
        int code = (int)draw(r, 0, 63);
        if (draw(r, 0, 3) == 0) /* often the amino acid that is counted */
            code = (int)(strchr(kAmino, acid) - kAmino);
        if (kAmino[code] == '*')
            code = 0;
        int base[3] = {code / 16, code / 4 % 4, code % 4};
        for (int k = 0; k < 3; k++) {
            say(&p->params, "%c", kTemplate[base[k]]);
            say(&p->problem, "%c", kTemplate[base[k]]);
            say(&p->solution, "%c", kTemplate[base[k]]);
        }
        say(&p->solution, " %c%c%c %c", kBases[base[0]], kBases[base[1]], kBases[base[2]],
            kAmino[code]);
        if (kAmino[code] == acid)
            say(&p->solution, " %lld", LL(++count));
        say(&p->solution, "\n");
    }
    say(&p->problem,
        " is transcribed and translated from its first base. How often is %c (one-letter "
        "code) in the chain?",
        acid);
    int64_t wrong[] = {count + 1, count ? count - 1 : 3, count + 2};
    say(&p->solution, "%c: %lld\n", acid, LL(count));
    return number_options(p, r, count, wrong, "");
}

const synth_family synth_gpqa_families[] = {{"mass", mass, 1, 4},
                                            {"cross", cross, 1, 4},
                                            {"motion", motion, 1, 6},
                                            {"strand", strand, 1, 6},
                                            {NULL, NULL, 0, 0}};
