/* family_code.c - problems whose answers are programs. A problem describes a sequence of steps over
 * a list, or it gives the first values of a function of n, whose rule has to be found. */
#include <stdio.h>
#include <stdlib.h>

#include "evals/synth/family.h"

#define LL(x) ((long long)(x))

/* ---- a pipeline over a list ---- */

enum { kItems = 40, kSteps = 12 };

typedef struct {
    int64_t x[kItems];
    int n;
} list;

typedef enum {
    OP_ADD,
    OP_MULTIPLY,
    OP_MODULO,
    OP_KEEP_MULTIPLES,
    OP_DROP_MULTIPLES,
    OP_KEEP_ABOVE,
    OP_KEEP_BELOW,
    OP_FIRST,
    OP_SKIP,
    OP_REVERSE,
    OP_SORT,
    OP_DISTINCT,
    OP_SUMS,
    OPS
} op_kind;

typedef struct {
    const char *name, *prose, *python; /* %lld is the step's operand, such as 3 in "add 3"; some
                                          steps have none */
    int from, to;                      /* range of the operand; 0, 0: no operand */
} op_form;

static const op_form forms[OPS] = {
    [OP_ADD] = {"add", "add %lld to every number", "xs=[x+%lld for x in xs]", 1, 20},
    [OP_MULTIPLY] = {"mul", "multiply every number by %lld", "xs=[x*%lld for x in xs]", 2, 9},
    [OP_MODULO] = {"mod", "replace every number by its remainder modulo %lld",
                   "xs=[x%%%lld for x in xs]", 5, 60},
    [OP_KEEP_MULTIPLES] = {"keep", "keep only the multiples of %lld",
                           "xs=[x for x in xs if x%%%lld==0]", 2, 4},
    [OP_DROP_MULTIPLES] = {"drop", "remove the multiples of %lld",
                           "xs=[x for x in xs if x%%%lld!=0]", 2, 9},
    [OP_KEEP_ABOVE] = {"above", "keep only the numbers greater than %lld",
                       "xs=[x for x in xs if x>%lld]", 5, 40},
    [OP_KEEP_BELOW] = {"below", "keep only the numbers less than %lld",
                       "xs=[x for x in xs if x<%lld]", 40, 200},
    [OP_FIRST] = {"first", "keep only the first %lld numbers", "xs=xs[:%lld]", 3, 30},
    [OP_SKIP] = {"skip", "remove the first %lld numbers", "xs=xs[%lld:]", 1, 3},
    [OP_REVERSE] = {"reverse", "reverse the list", "xs=xs[::-1]", 0, 0},
    [OP_SORT] = {"sort", "sort the list", "xs=sorted(xs)", 0, 0},
    [OP_DISTINCT] = {"distinct", "of equal numbers keep only the first",
                     "xs=list(dict.fromkeys(xs))", 0, 0},
    [OP_SUMS] = {"sums", "replace every number by the sum of all numbers up to it",
                 "xs=[sum(xs[:i+1]) for i in range(len(xs))]", 0, 0},
};

/* The format comes from the table above. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void say_form(buf *out, const char *form, int64_t k) {
    say(out, form, LL(k));
}
#pragma GCC diagnostic pop

static bool keeps(op_kind op, int64_t k, int64_t x) {
    switch (op) {
    case OP_KEEP_MULTIPLES:
        return x % k == 0;
    case OP_DROP_MULTIPLES:
        return x % k != 0;
    case OP_KEEP_ABOVE:
        return x > k;
    case OP_KEEP_BELOW:
        return x < k;
    default:
        return true;
    }
}

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool holds(const list *l, int64_t x) {
    for (int i = 0; i < l->n; i++)
        if (l->x[i] == x)
            return true;
    return false;
}

static list apply(op_kind op, int64_t k, const list *in) {
    list out = {.n = 0};
    int64_t sum = 0;
    for (int i = 0; i < in->n; i++) {
        int64_t x = in->x[op == OP_REVERSE ? in->n - 1 - i : i];
        if (!keeps(op, k, x) || (op == OP_FIRST && i >= k) || (op == OP_SKIP && i < k) ||
            (op == OP_DISTINCT && holds(&out, x)))
            continue;
        sum += x;
        out.x[out.n++] = op == OP_ADD        ? x + k
                         : op == OP_MULTIPLY ? x * k
                         : op == OP_MODULO   ? x % k
                         : op == OP_SUMS     ? sum
                                             : x;
    }
    if (op == OP_SORT)
        qsort(out.x, (size_t)out.n, sizeof *out.x, by_value);
    return out;
}

static void say_list(buf *out, const list *l) {
    for (int i = 0; i < l->n; i++)
        say(out, "%s%lld", i ? " " : "", LL(l->x[i]));
}

/* Writes what a step computes from each number (for steps that add, multiply, take remainders or
 * sum up), and then the resulting list. */
static void trace(buf *w, op_kind op, int64_t k, const list *in, const list *out) {
    for (int i = 0; i < in->n; i++) {
        if (op == OP_ADD)
            say(w, "%lld+%lld=%lld\n", LL(in->x[i]), LL(k), LL(in->x[i] + k));
        else if (op == OP_MULTIPLY)
            say(w, "%lld*%lld=%lld\n", LL(in->x[i]), LL(k), LL(in->x[i] * k));
        else if (op == OP_MODULO)
            say(w, "%lld%%%lld=%lld\n", LL(in->x[i]), LL(k), LL(in->x[i] % k));
        else if (op == OP_SUMS && i)
            say(w, "%lld+%lld=%lld\n", LL(out->x[i - 1]), LL(in->x[i]), LL(out->x[i]));
    }
    say_list(w, out);
    say(w, "\n");
}

typedef enum { END_LIST, END_SUM, END_COUNT, END_LARGEST, ENDS } end_kind;

static const char *const end_prose[ENDS] = {
    [END_LIST] = "print the numbers on one line with spaces between them",
    [END_SUM] = "print their sum",
    [END_COUNT] = "print how many there are",
    [END_LARGEST] = "print the largest, or 0 if there is none"};
static const char *const end_python[ENDS] = {[END_LIST] = "print(*xs)",
                                             [END_SUM] = "print(sum(xs))",
                                             [END_COUNT] = "print(len(xs))",
                                             [END_LARGEST] = "print(max(xs,default=0))"};

static void say_end(buf *out, end_kind end, const list *l) {
    int64_t sum = 0, largest = 0;
    for (int i = 0; i < l->n; i++) {
        sum += l->x[i];
        largest = l->x[i] > largest ? l->x[i] : largest;
    }
    if (end == END_LIST)
        say_list(out, l);
    else
        say(out, "%lld", LL(end == END_SUM ? sum : end == END_COUNT ? l->n : largest));
}

static list draw_list(rng *r, int low, int high) {
    list l = {.n = (int)draw(r, low, high)};
    for (int i = 0; i < l.n; i++)
        l.x[i] = draw(r, 1, 99);
    return l;
}

typedef struct {
    op_kind op[kSteps];
    int64_t k[kSteps];
    int n;
    end_kind end;
} pipeline;

static list run(const pipeline *p, list l) {
    for (int i = 0; i < p->n; i++)
        l = apply(p->op[i], p->k[i], &l);
    return l;
}

/* Draws steps. No step follows one of the same kind. Without a modulo step between them, at most
 * two steps multiply or sum up, which keeps the numbers small. */
static pipeline draw_pipeline(const synth_problem *p, rng *r) {
    pipeline l = {
        .n = (int)draw(r, BY_LEVEL(p, 1, 2, 4, 6, 8, 11), BY_LEVEL(p, 2, 3, 5, 7, 10, kSteps)),
        .end = (end_kind)draw(r, 0, ENDS - 1)};
    int growing = 0;
    for (int i = 0; i < l.n; i++) {
        do {
            l.op[i] = (op_kind)draw(r, 0, OPS - 1);
        } while ((i && l.op[i] == l.op[i - 1]) ||
                 (growing > 1 && (l.op[i] == OP_MULTIPLY || l.op[i] == OP_SUMS)));
        growing =
            l.op[i] == OP_MODULO ? 0 : growing + (l.op[i] == OP_MULTIPLY || l.op[i] == OP_SUMS);
        l.k[i] = draw(r, forms[l.op[i]].from, forms[l.op[i]].to);
    }
    return l;
}

/* Makes the tests: the list that the problem shows, then lists of several lengths. */
static void make_tests(synth_problem *p, rng *r, const pipeline *l, const list *shown) {
    for (p->n_tests = 0; p->n_tests < SYNTH_TESTS; p->n_tests++) {
        list in = p->n_tests ? draw_list(r, 2, 12 * p->n_tests - 8) : *shown;
        list out = run(l, in);
        say_list(&p->input[p->n_tests], &in);
        say_end(&p->output[p->n_tests], l->end, &out);
        say(&p->input[p->n_tests], "\n");
        say(&p->output[p->n_tests], "\n");
    }
}

static bool steps(synth_problem *p, rng *r) {
    pipeline l = draw_pipeline(p, r);
    list shown = draw_list(r, (int)BY_LEVEL(p, 4, 5, 6, 9, 28, 28),
                           (int)BY_LEVEL(p, 5, 6, 8, 14, 38, 38)),
         x;
    x = run(&l, shown);
    if (x.n == 0 || (p->level >= SYNTH_LONG && x.n < 8))
        return false;
    say(&p->problem, "The input is a line of integers. Do the following, one after the other:\n");
    for (int i = 0; i < l.n; i++) {
        const op_form *f = &forms[l.op[i]];
        say(&p->params, f->to ? " %s %lld;" : " %s;", f->name, LL(l.k[i]));
        say(&p->problem, "%d. ", i + 1);
        say_form(&p->problem, f->prose, l.k[i]);
        say(&p->problem, "\n");
    }
    say(&p->params, " end %d", (int)l.end);
    say(&p->problem, "%d. %s\nInput: ", l.n + 1, end_prose[l.end]);
    say_list(&p->problem, &shown);
    say(&p->problem, "\nOutput: ");
    say_end(&p->problem, l.end, &x);
    if (p->level > 2) {
        x = shown;
        for (int i = 0; i < l.n; i++) {
            list next = apply(l.op[i], l.k[i], &x);
            say(&p->solution, "%d. ", i + 1);
            say_form(&p->solution, forms[l.op[i]].prose, l.k[i]);
            say(&p->solution, ":\n");
            trace(&p->solution, l.op[i], l.k[i], &x, &next);
            x = next;
        }
    }
    say(&p->solution, "```python\nxs=list(map(int,input().split()))\n");
    for (int i = 0; i < l.n; i++) {
        say_form(&p->solution, forms[l.op[i]].python, l.k[i]);
        say(&p->solution, "\n");
    }
    say(&p->solution, "%s\n```", end_python[l.end]);
    make_tests(p, r, &l, &shown);
    return true;
}

/* ---- a rule found from its values: Newton's differences for each class of n modulo m ---- */

enum { kDegreeMax = 4, kClasses = 11 };

static int64_t newton(const int64_t *d, int degree, int64_t n) {
    int64_t sum = 0, binomial = 1;
    for (int i = 0; i <= degree; i++) {
        sum += d[i] * binomial;
        binomial = binomial * (n - i) / (i + 1);
    }
    return sum;
}

/* Writes the rows of differences, computed from the first degree + 1 values. d[i] is the first
 * number of row i; row 0 is the values. */
static void work_differences(buf *w, const int64_t *d, int degree) {
    int64_t row[kDegreeMax + 1];
    for (int i = 0; i <= degree; i++)
        row[i] = newton(d, degree, i);
    for (int n = degree; n > 0; n--) {
        for (int i = 0; i < n; i++) {
            say(w, "%lld-%lld=%lld\n", LL(row[i + 1]), LL(row[i]), LL(row[i + 1] - row[i]));
            row[i] = row[i + 1] - row[i];
        }
    }
}

static void say_newton(buf *w, const int64_t *d, int degree) {
    static const char *const binomial[] = {"", "*q", "*q*(q-1)//2", "*q*(q-1)*(q-2)//6",
                                           "*q*(q-1)*(q-2)*(q-3)//24"};
    for (int i = 0; i <= degree; i++)
        say(w, i ? "%+lld%s" : "%lld%s", LL(d[i]), binomial[i]);
}

static void rule_text(synth_problem *p, int64_t d[kClasses][kDegreeMax + 1], int m, int degree) {
    if (m > 1)
        say(&p->problem,
            "For n=%d*q+r with r from 0 to %d, f(n) is for each r a polynomial of degree at most "
            "%d "
            "in q.",
            m, m - 1, degree);
    else
        say(&p->problem, "f(q) is a polynomial of degree at most %d in q.", degree);
    for (int i = 0; i < m; i++) {
        say(&p->params, " :");
        say(&p->problem, m > 1 ? "\nr=%d:" : "\n", i);
        say(&p->solution, m > 1 ? "r=%d\n" : "", i);
        for (int q = 0; q <= degree; q++) {
            say(&p->params, " %lld", LL(d[i][q]));
            say(&p->problem, "%s%lld", m > 1 || q ? " " : "", LL(newton(d[i], degree, q)));
        }
        say(&p->problem, m > 1 ? "" : " for q=0,1,...");
        work_differences(&p->solution, d[i], degree);
        say_newton(&p->solution, d[i], degree);
        say(&p->solution, "\n");
    }
    say(&p->problem, m > 1 ? "\nThe values are those for q=0,1,... Read n and print f(n)."
                           : "\nRead q and print f(q).");
    say(&p->solution,
        m > 1 ? "```python\nq,r=divmod(int(input()),%d)\nprint(["
              : "```python\nq=int(input())\nprint(",
        m);
    for (int i = 0; i < m; i++) {
        say(&p->solution, i ? ",\n" : "");
        say_newton(&p->solution, d[i], degree);
    }
    say(&p->solution, m > 1 ? "][r])\n```" : ")\n```");
}

static bool rule(synth_problem *p, rng *r) {
    int degree = (int)BY_LEVEL(p, 1, 2, 3, 4, 4, 4),
        m = (int)draw(r, 1, BY_LEVEL(p, 1, 1, 1, 2, 4, 2));
    int64_t d[kClasses][kDegreeMax + 1] = {{0}};
    m += (int)BY_LEVEL(p, 0, 0, 0, 0, 5, 9);
    for (int i = 0; i < m; i++)
        for (int j = 0; j <= degree; j++)
            d[i][j] = draw_nonzero(r, -BY_LEVEL(p, 9, 9, 9, 12, 9, 9), 20);
    say(&p->params, " %d", m);
    rule_text(p, d, m, degree);
    for (p->n_tests = 0; p->n_tests < SYNTH_TESTS; p->n_tests++) {
        int64_t n = draw(r, 0, 60);
        n = p->n_tests ? n : 0;
        say(&p->input[p->n_tests], "%lld\n", LL(n));
        say(&p->output[p->n_tests], "%lld\n", LL(newton(d[n % m], degree, n / m)));
    }
    return true;
}

const synth_family synth_code_families[] = {
    {"steps", steps, 1, 6}, {"rule", rule, 1, 6}, {NULL, NULL, 0, 0}};
