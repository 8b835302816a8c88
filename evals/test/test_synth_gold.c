/* Compares the golds of generated problems with other ways to the same result: GMP, enumeration,
 * substitution. These oracles use only `params` and the gold. Programs are checked by running those
 * of the solutions (test_synth.c). */
#include <CUnit/CUnit.h>
#include <gmp.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evals/synth/synth.h"

enum { kProblems = 400, kNumbers = 64, kText = 2048 };

typedef struct {
    const synth_problem *p;
    const char *params; /* the text after the family's name */
    const char *gold;   /* for options: the text of the right one */
    long v[kNumbers];   /* the numbers in params, signs included */
    int n;
} given;

static void read_numbers(given *g) {
    for (const char *s = g->params; *s && g->n < kNumbers;) {
        if (strchr("0123456789", *s) || ((*s == '-' || *s == '+') && s[1] >= '0' && s[1] <= '9')) {
            char *end;
            g->v[g->n++] = strtol(s, &end, 10);
            s = end;
        } else {
            s++;
        }
    }
}

/* ---- integers ---- */

static bool oracle_power(const given *g) {
    mpz_t x, m;
    mpz_init_set_si(x, g->v[0]);
    mpz_init_set_si(m, g->v[2]);
    mpz_powm_ui(x, x, (unsigned long)g->v[1], m);
    bool ok = mpz_get_si(x) == atol(g->gold);
    mpz_clears(x, m, NULL);
    return ok;
}

/* v = b, c, a_1, a_2, n, m. Computes the terms exactly and reduces once at the end. */
static bool oracle_recurrence(const given *g) {
    mpz_t x, y, z;
    mpz_init_set_si(x, g->v[2]);
    mpz_init_set_si(y, g->v[3]);
    mpz_init(z);
    for (long k = 3; k <= g->v[4]; k++) {
        mpz_mul_si(z, y, g->v[0]);
        mpz_addmul_ui(z, x, (unsigned long)g->v[1]);
        mpz_set(x, y);
        mpz_set(y, z);
    }
    bool ok = mpz_fdiv_ui(y, (unsigned long)g->v[5]) == (unsigned long)atol(g->gold);
    mpz_clears(x, y, z, NULL);
    return ok;
}

static void paths_between(mpz_t out, const long *from, const long *to) {
    long dx = to[0] - from[0], dy = to[1] - from[1];
    mpz_set_ui(out, 0);
    if (dx >= 0 && dy >= 0)
        mpz_bin_uiui(out, (unsigned long)(dx + dy), (unsigned long)dx);
}

/* Counts paths by binomials and subtracts the paths that meet each hole first. Holes are sorted by
 * row. */
static bool oracle_paths(const given *g) {
    long stop[8][2];
    int n = (g->n - 2) / 2;
    const long origin[2] = {0, 0};
    mpz_t first[8], x;
    mpz_init(x);
    for (int i = 0; i <= n; i++) {
        stop[i][0] = g->v[i == n ? 0 : 2 + 2 * i];
        stop[i][1] = g->v[i == n ? 1 : 3 + 2 * i];
        mpz_init(first[i]);
        paths_between(first[i], origin, stop[i]);
        for (int j = 0; j < i; j++) {
            paths_between(x, stop[j], stop[i]);
            mpz_submul(first[i], x, first[j]);
        }
    }
    bool ok = mpz_fdiv_ui(first[n], 1000) == (unsigned long)atol(g->gold);
    for (int i = 0; i <= n; i++)
        mpz_clear(first[i]);
    mpz_clear(x);
    return ok;
}

static bool oracle_sieve(const given *g) {
    long count = 0;
    for (long x = 1; x <= g->v[0]; x++) {
        bool divides = false;
        for (int i = 1; i < g->n; i++)
            divides = divides || x % g->v[i] == 0;
        count += !divides;
    }
    return count == atol(g->gold);
}

static bool oracle_remainders(const given *g) {
    for (long x = 0;; x++) {
        bool all = true;
        for (int i = 0; i < g->n; i += 2)
            all = all && x % g->v[i + 1] == g->v[i];
        if (all)
            return x == atol(g->gold);
    }
}

/* ---- LaTeX ---- */

static bool oracle_fractions(const given *g) {
    mpq_t sum, x;
    mpq_inits(sum, x, NULL);
    for (int i = 0; i < g->n; i += 2) {
        mpq_set_si(x, g->v[i], (unsigned long)g->v[i + 1]);
        mpq_canonicalize(x);
        mpq_add(sum, sum, x);
    }
    char want[kText], digits[2][64];
    mpz_t top;
    mpz_init(top);
    mpz_abs(top, mpq_numref(sum));
    (void)mpz_get_str(digits[0], 10, top);
    (void)mpz_get_str(digits[1], 10, mpq_denref(sum));
    const char *sign = mpq_sgn(sum) < 0 ? "-" : "";
    if (strcmp(digits[1], "1") == 0)
        (void)snprintf(want, sizeof want, "%s%s", sign, digits[0]);
    else
        (void)snprintf(want, sizeof want, "%s\\frac{%s}{%s}", sign, digits[0], digits[1]);
    mpz_clear(top);
    mpq_clears(sum, x, NULL);
    return strcmp(want, g->gold) == 0;
}

static bool has_square(long n) {
    for (long d = 2; d * d <= n; d++)
        if (n % (d * d) == 0)
            return true;
    return false;
}

/* The value of "3\sqrt{5}" or "\sqrt{5}"; *inside: the number under the root. */
static double read_radical(const char *s, long *inside) {
    char *end;
    double k = *s == '\\' ? 1 : (double)strtol(s, &end, 10);
    *inside = strtol(strchr(s, '{') + 1, NULL, 10);
    return k * sqrt((double)*inside);
}

static bool oracle_radicals(const given *g) {
    double sum = 0;
    long inside;
    for (int i = 0; i < g->n; i += 2)
        sum += (double)g->v[i] * sqrt((double)g->v[i + 1]);
    return fabs(read_radical(g->gold, &inside) - sum) < 1e-9 && !has_square(inside);
}

/* Parses "-3+2\sqrt{5}", the same divided by 2 as "\frac{-3+2\sqrt{5}}{2}", or an integer, and
 * compares the value with the larger root. */
static bool oracle_roots(const given *g) {
    bool half = g->gold[0] == '\\';
    const char *s = g->gold + (half ? strlen("\\frac{") : 0);
    char *end;
    long inside = 1;
    double x = (double)strtol(s, &end, 10), b = (double)g->v[0], c = (double)g->v[1];
    if (*end == '+')
        x += read_radical(end + 1, &inside);
    return fabs(x / (half ? 2 : 1) - (-b + sqrt(b * b - 4 * c)) / 2) < 1e-9 && !has_square(inside);
}

/* The value of "9x^3-x+5" at x; also for one side of an equation in x, y, z. */
static long evaluate(const char *s, const char *end, const long at[3]) {
    long sum = 0;
    while (s < end) {
        long sign = *s == '-' ? -1 : 1, k = 1;
        char *next;
        s += *s == '-' || *s == '+';
        if (*s >= '0' && *s <= '9') {
            k = strtol(s, &next, 10);
            s = next;
        }
        if (s < end && *s >= 'x' && *s <= 'z') {
            long x = at[*s++ - 'x'], power = 1;
            if (*s == '^') {
                power = strtol(s + 1, &next, 10);
                s = next;
            }
            while (power--)
                k *= x;
        }
        sum += sign * k;
    }
    return sum;
}

/* Factors are written " 2x-3 1x+4". Compares at enough points to determine a polynomial of this
 * degree. */
static bool oracle_expand(const given *g) {
    bool ok = true;
    for (long x = -5; x <= 5; x++) {
        long at[3] = {x, 0, 0}, product = 1;
        for (const char *s = g->params; *s;) {
            size_t n = strcspn(++s, " ");
            product *= evaluate(s, s + n, at);
            s += n;
        }
        ok = ok && product == evaluate(g->gold, g->gold + strlen(g->gold), at);
    }
    return ok;
}

static bool oracle_system(const given *g) {
    long at[3] = {0, 0, 0};
    char *end;
    int n = 0;
    for (const char *s = g->gold + 1; n < 3; s = end + 1) {
        at[n++] = strtol(s, &end, 10);
        if (*end == ')')
            break;
    }
    bool ok = true;
    for (const char *s = g->params + 1; *s; s += *s ? 3 : 0) {
        const char *equal = strchr(s, '=');
        ok = ok && evaluate(s, equal, at) == strtol(equal + 1, &end, 10);
        s = end;
    }
    return ok;
}

/* ---- options ---- */

static bool oracle_mass(const given *g) {
    static const struct {
        const char *symbol;
        long mass;
    } table[] = {{"H", 1},   {"C", 12}, {"N", 14}, {"O", 16}, {"F", 19},  {"Na", 23}, {"Mg", 24},
                 {"Si", 28}, {"P", 31}, {"S", 32}, {"K", 39}, {"Ca", 40}, {"Fe", 56}, {"Br", 80}};
    long sum = 0;
    for (const char *s = g->params + 1; *s;) {
        size_t n = s[1] >= 'a' && s[1] <= 'z' ? 2 : 1;
        long mass = 0;
        for (size_t i = 0; i < sizeof table / sizeof *table; i++)
            if (strlen(table[i].symbol) == n && strncmp(table[i].symbol, s, n) == 0)
                mass = table[i].mass;
        char *end = (char *)(uintptr_t)(s + n);
        long count = *end >= '0' && *end <= '9' ? strtol(s + n, &end, 10) : 1;
        sum += mass * count;
        s = end;
    }
    return sum == atol(g->gold);
}

/* Combines all gametes of one parent with all of the other. */
static bool oracle_cross(const given *g) {
    char parent[2][16], want[16], made[16];
    CU_ASSERT_EQUAL_FATAL(sscanf(g->params, " %15s %15s %15s", parent[0], parent[1], want), 3);
    int loci = (int)strlen(want) / 2, n = 0;
    for (int a = 0; a < 1 << loci; a++)
        for (int b = 0; b < 1 << loci; b++) {
            for (int i = 0; i < loci; i++) {
                char x = parent[0][2 * i + (a >> i & 1)], y = parent[1][2 * i + (b >> i & 1)];
                made[2 * i] = x < y ? x : y;
                made[2 * i + 1] = x < y ? y : x;
            }
            n += strncmp(made, want, 2 * (size_t)loci) == 0;
        }
    char text[32];
    (void)snprintf(text, sizeof text, "%d/%d", n, 1 << 2 * loci);
    return strcmp(text, g->gold) == 0;
}

/* Computes the area under the velocity curve from trapezia, with times in hundredths of seconds. */
static bool oracle_motion(const given *g) {
    double v = (double)g->v[0], s = 0;
    for (int i = 1; i + 1 < g->n; i += 2)
        for (long k = 0; k < 100 * g->v[i + 1]; k++) {
            double next = v + (double)g->v[i] / 100;
            s += (v + next) / 200;
            v = next;
        }
    return fabs(s - (double)atol(g->gold)) < 1e-6;
}

/* One text for each amino acid that a problem may count. It has the letter of the amino acid before
 * each of its codons of messenger RNA. */
static const char *const codons[] = {"LUUALUUGLCUULCUCLCUALCUG",
                                     "SUCUSUCCSUCASUCGSAGUSAGC",
                                     "RCGURCGCRCGARCGGRAGARAGG",
                                     "GGGUGGGCGGGAGGGG",
                                     "AGCUAGCCAGCAAGCG",
                                     "VGUUVGUCVGUAVGUG",
                                     "PCCUPCCCPCCAPCCG",
                                     "TACUTACCTACATACG",
                                     "KAAAKAAG",
                                     "EGAAEGAG",
                                     "DGAUDGAC",
                                     "NAAUNAAC",
                                     "QCAAQCAG",
                                     "IAUUIAUCIAUA"};

static bool oracle_strand(const given *g) {
    const char *s = g->params + 3, *list = "";
    char acid = g->params[1];
    long count = 0;
    for (size_t i = 0; i < sizeof codons / sizeof *codons; i++)
        if (codons[i][0] == acid)
            list = codons[i];
    for (; *s; s += 3)
        for (const char *c = list; *c; c += 4) {
            bool same = true;
            for (int k = 0; k < 3; k++) {
                char pair[3] = {s[k], c[1 + k], '\0'};
                same = same && strstr("AU TA GC CG", pair);
            }
            count += same;
        }
    return count == atol(g->gold);
}

/* ---- the table of oracles ---- */

static const struct {
    const char *family;
    bool (*agrees)(const given *g);
} oracles[] = {{"power", oracle_power},
               {"recurrence", oracle_recurrence},
               {"paths", oracle_paths},
               {"sieve", oracle_sieve},
               {"remainders", oracle_remainders},
               {"fractions", oracle_fractions},
               {"radicals", oracle_radicals},
               {"roots", oracle_roots},
               {"expand", oracle_expand},
               {"system", oracle_system},
               {"mass", oracle_mass},
               {"cross", oracle_cross},
               {"motion", oracle_motion},
               {"strand", oracle_strand}};
enum { kOracles = sizeof oracles / sizeof *oracles };

/* The text of the right option. */
static bool find_option(const synth_problem *p, char out[64]) {
    char mark[8];
    (void)snprintf(mark, sizeof mark, "\n%s) ", buf_str(&p->answer));
    const char *s = strstr(buf_str(&p->problem), mark);
    if (!s)
        return false;
    s += strlen(mark);
    (void)snprintf(out, 64, "%.*s", (int)strcspn(s, "\n"), s);
    return true;
}

static void check(const synth_problem *p, long seen[kOracles]) {
    char option[64];
    const char *params = buf_str(&p->params);
    given g = {.p = p, .params = params + strlen(p->family), .gold = buf_str(&p->answer)};
    if (p->style == SYNTH_GPQA) {
        CU_ASSERT_FATAL(find_option(p, option));
        g.gold = option;
    }
    read_numbers(&g);
    for (int i = 0; i < kOracles; i++) {
        if (strcmp(oracles[i].family, p->family) != 0)
            continue;
        bool ok = oracles[i].agrees(&g);
        if (!ok)
            printf("\n%s: %s: not %s\n", p->id, params, g.gold);
        CU_ASSERT(ok);
        seen[i]++;
    }
}

static void test_golds(void) {
    long seen[kOracles] = {0};
    synth_problem p = {0};
    for (int style = SYNTH_AIME; style <= SYNTH_GPQA; style++)
        for (int level = 1; level <= SYNTH_LEVELS; level++)
            for (uint64_t i = 0; i < kProblems; i++) {
                synth_split split = i % 2 ? SYNTH_HELDOUT : SYNTH_TRAIN;
                CU_ASSERT_EQUAL_FATAL(synth_make((synth_style)style, level, split, 5, i, &p, NULL),
                                      SNAP_OK);
                check(&p, seen);
            }
    synth_release(&p);
    for (int i = 0; i < kOracles; i++)
        CU_ASSERT(seen[i] > kProblems / 2);
}

CU_TestInfo tests_synth_gold[] = {{"golds of every family", test_golds}, CU_TEST_INFO_NULL};
