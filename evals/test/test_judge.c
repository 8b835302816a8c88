/* Tests the two judges, programs with assertions, the tasks whose answers are programs, and the
 * grading of samples. The expected verdicts of `lcb` were obtained from LiveCodeBench's own checker
 * (commit 28fef95), except where `lcb` differs on purpose (judge.h). */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/fs.h"
#include "base/parallel.h"
#include "base/test/temp_folder.h"
#include "evals/code/grade_code.h"
#include "evals/code/judge.h"
#include "evals/samples.h"
#include "evals/test/task_of.h"

/* NULL if this machine cannot isolate programs. The first time, a message is printed. */
static code_judge *open_judge(judge_kind kind, double seconds) {
    static bool reported;
    code_judge *j = NULL;
    snap_err err = {0};
    const judge_options o = {.kind = kind, .seconds = seconds};
    if (judge_open(&j, &o, &err) == SNAP_OK)
        return j;
    CU_ASSERT_EQUAL(err.code, SNAP_E_ENV);
    if (!reported)
        printf("\nskipped: %s\n", err.text);
    reported = true;
    return NULL;
}

typedef struct {
    const char *name, *program, *fn;
    const char *inputs[4], *outputs[4]; /* NULL-terminated */
    code_outcome real, lcb;
} program;

enum {
    P = CODE_PASSED,
    W = CODE_WRONG_ANSWER,
    T = CODE_TIMEOUT,
    E = CODE_ERROR,
    C = CODE_CRASHED,
};

#define STDIN(...)                                                                                 \
    NULL, {                                                                                        \
        __VA_ARGS__                                                                                \
    }
#define METHOD(...)                                                                                \
    "f", {                                                                                         \
        __VA_ARGS__                                                                                \
    }

static const program programs[] = {
    {"adds", "print(int(input()) + int(input()))", STDIN("3\n4\n", "1\n2"), {"7", "3\n"}, P, P},
    {"second test wrong", "print(1)", STDIN("", ""), {"1", "2"}, W, W},
    {"raises", "print(1)\n1 / 0", STDIN(""), {"1"}, E, E},
    {"does not compile", "print(", STDIN(""), {""}, E, E},
    {"never ends", "while True: pass", STDIN(""), {"1"}, T, T},
    {"sleeps", "import time\ntime.sleep(1000)", STDIN(""), {"1"}, T, T},
    {"exits", "print(1)\nexit()", STDIN(""), {"1"}, P, P},
    {"exits with a code", "import sys\nprint(1)\nsys.exit(3)", STDIN(""), {"1"}, P, P},
    {"crashes", "import ctypes\nctypes.string_at(0)", STDIN(""), {"1"}, E, C},
    {"ends the process", "import os\nprint(1, flush=True)\nos._exit(0)", STDIN(""), {"1"}, P, C},
    {"promised names",
     "print(gcd(4, 6), deque([1])[0], List)",
     STDIN(""),
     {"2 1 typing.List"},
     P,
     P},
    {"main at the end",
     "def main():\n    print(input())\nif __name__ == '__main__':\n    main()",
     STDIN("x"),
     {"x"},
     P,
     P},
    {"main, then more", "if __name__ == '__main__':\n    print(1)\nx = 1", STDIN(""), {"1"}, P, W},
    {"iterates",
     "import sys\nfor line in sys.stdin: print(line.strip())",
     STDIN("a\nb"),
     {"a\nb"},
     P,
     E},
    {"reads bytes", "import sys\nprint(sys.stdin.buffer.read().decode())", STDIN("a"), {"a"}, P, P},
    {"reads lines of bytes",
     "import sys\nr = sys.stdin.buffer.readline\nprint(r().strip() + r().strip())",
     STDIN("a\nb\n"),
     {"b'ab'"},
     P,
     W},
    {"opens file 0", "print(open(0).read())", STDIN("a"), {"a"}, P, W},
    {"imports stdin",
     "from sys import stdin\nprint(int(stdin.readline()))",
     STDIN("5\n"),
     {"5"},
     P,
     P},
    {"imports stdin, reads to the end",
     "from sys import stdin\nwhile True:\n    s = stdin.readline()\n    if not s: break\n"
     "    print(s.strip())",
     STDIN("a\n\nb\n"),
     {"a\n\nb"},
     P,
     W},
    {"imports stdout", "from sys import stdout\nstdout.write('1')", STDIN(""), {"1"}, P, W},
    {"writes bytes", "import sys\nsys.stdout.buffer.write(b'1')", STDIN(""), {"1"}, P, E},
    {"an empty line", "input()\nprint(input())", STDIN("\na"), {"a"}, P, P},
    {"global", "n = 0\ndef f():\n    global n\n    n += 1\nf()\nprint(n)", STDIN(""), {"1"}, P, E},
    {"a class Solution",
     "class Solution:\n    def run(self): print(1)\nSolution().run()",
     STDIN(""),
     {"1"},
     P,
     E},
    {"__future__", "from __future__ import annotations\nprint(1)", STDIN(""), {"1"}, P, E},
    {"builtins.open", "import builtins\nprint(builtins.open('x').read())", STDIN("a"), {"a"}, E, P},
    {"working folder", "import os\nprint(os.getcwd())", STDIN(""), {"/tmp"}, P, E},
    {"shared state",
     "import math\nmath.n = getattr(math, 'n', 0) + 1\nprint(math.n)",
     STDIN("", ""),
     {"1", "1"},
     P,
     W},
    {"deep recursion",
     "def f(n): return n and 1 + f(n - 1)\nprint(f(40000))",
     STDIN(""),
     {"40000"},
     P,
     P},
    {"long integers", "print(10 ** 5000)\nprint(len(str(10 ** 5000)))", STDIN(""), {"5"}, W, W},
    {"looks for the answer",
     "import gc, os, re\nseen = repr(dict(os.environ))\n"
     "for o in gc.get_objects():\n"
     "    if isinstance(o, (list, tuple, dict)) and len(o) < 20: seen += repr(o)[:1000]\n"
     "for p in ('/box', '/tmp'):\n    for f in os.listdir(p): seen += io.open(p + '/' + f).read()\n"
     "found = re.search('needle[0-9]' + '+', seen)\nprint(found and found.group())",
     STDIN(""),
     {"needle4711"},
     W,
     W},
    {"a function", "def f(a): return a + 1", METHOD("1", "2"), {"2", "3.0"}, P, P},
    {"a method",
     "class Solution:\n    def f(self, a: List[int], b): return [x + b for x in a]",
     METHOD("[1, 2]\n3"),
     {"[4, 5]"},
     P,
     P},
    {"a tuple", "def f(a): return (1, 2)", METHOD("1"), {"[1, 2]"}, P, P},
    {"a tuple within", "def f(a): return [(1, 2)]", METHOD("1"), {"[[1, 2]]"}, W, W},
    {"a set", "def f(a): return {1}", METHOD("1"), {"[1]"}, W, W},
    {"a counter", "def f(a): return Counter('aab')", METHOD("1"), {"{\"a\": 2, \"b\": 1}"}, P, P},
    {"nearly", "def f(a): return 0.1 + 0.2", METHOD("1"), {"0.3"}, W, W},
    {"a fraction",
     "def f(a):\n    from fractions import Fraction\n    return Fraction(1, 2)",
     METHOD("1"),
     {"0.5"},
     P,
     P},
    {"equal to everything",
     "class A:\n    def __eq__(self, o): return True\ndef f(a): return A()",
     METHOD("1"),
     {"1"},
     W,
     W},
    {"prints, too", "def f(a):\n    print('x')\n    return a", METHOD("1"), {"1"}, P, P},
    {"a method that raises", "def f(a): raise ValueError('\\0\\ud800')", METHOD("1"), {"1"}, E, E},
    {"a method that exits", "def f(a): raise SystemExit", METHOD("1"), {"1"}, E, C},
    {"a method that hangs", "def f(a):\n    while True: pass", METHOD("1"), {"1"}, T, T},
    {"no such method", "def g(a): return a", METHOD("1"), {"1"}, E, E},
    {"an object's state",
     "class Solution:\n    n = 0\n    def f(self, a):\n        self.n += 1\n        return self.n",
     METHOD("1", "1"),
     {"1", "1"},
     P,
     W},
    {"no JSON expected", "def f(a): return a", METHOD("1"), {"abc"}, E, E},
    {"writes into the channel",
     "import os\ndef f(a):\n    os.write(3, b'V1\\nP' * 99)\n    return 7",
     METHOD("1"),
     {"1"},
     W,
     W},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

/* `hasty` is for programs that hang, with a time limit of one second. `judge`, for the others, has
 * 60. */
typedef struct {
    code_judge *judge, *hasty;
    code_result results[PROGRAMS];
    snap_status status[PROGRAMS];
} trial;

static code_tests tests_of(const program *p, code_test cases[4]) {
    code_tests t = {.tests = cases, .fn_name = p->fn};
    for (; p->outputs[t.n]; t.n++) {
        const char *input = p->inputs[t.n], *output = p->outputs[t.n];
        cases[t.n] = (code_test){{input, strlen(input)}, {output, strlen(output)}};
    }
    return t;
}

static void try_one(void *ctx, int worker, int64_t i) {
    trial *t = ctx;
    code_test cases[4];
    code_tests tests = tests_of(&programs[i], cases);
    (void)worker;
    code_judge *j = programs[i].real == CODE_TIMEOUT ? t->hasty : t->judge;
    t->status[i] = judge_program(j, (span){programs[i].program, strlen(programs[i].program)},
                                 &tests, &t->results[i], NULL);
}

static void try_all(judge_kind kind) {
    trial t = {.judge = open_judge(kind, 60)};
    parallel *pool;
    if (!t.judge)
        return;
    t.hasty = open_judge(kind, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t.hasty);
    CU_ASSERT_EQUAL_FATAL(parallel_create(&pool, 6, NULL), SNAP_OK);
    parallel_for(pool, PROGRAMS, try_one, &t);
    parallel_free(pool);
    for (int i = 0; i < PROGRAMS; i++) {
        const program *p = &programs[i];
        code_outcome expected = kind == JUDGE_LCB ? p->lcb : p->real;
        if (t.results[i].outcome != expected)
            printf("\n%s, %s: %d (%s)\n", kind == JUDGE_LCB ? "lcb" : "real", p->name,
                   t.results[i].outcome, t.results[i].reason);
        CU_ASSERT_EQUAL(t.status[i], SNAP_OK);
        CU_ASSERT_EQUAL(t.results[i].outcome, expected);
        CU_ASSERT_TRUE(t.results[i].outcome == CODE_PASSED ||
                       strstr(t.results[i].reason, "test ") == t.results[i].reason);
    }
    judge_close(t.hasty);
    judge_close(t.judge);
}

static void test_real(void) {
    try_all(JUDGE_REAL);
}

static void test_lcb(void) {
    try_all(JUDGE_LCB);
}

/* A limit below a second ends the first of two endless tests. */
static void test_short_limit(void) {
    static const judge_kind kinds[] = {JUDGE_REAL, JUDGE_LCB};
    static const char endless[] = "while True:\n    pass\n";
    code_test cases[] = {{{"1", 1}, {"1", 1}}, {{"2", 1}, {"2", 1}}};
    const code_tests tests = {.tests = cases, .n = 2};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        code_result r;
        code_judge *j = open_judge(kinds[i], 0.5);
        if (!j)
            return;
        CU_ASSERT_EQUAL(judge_program(j, (span){endless, sizeof endless - 1}, &tests, &r, NULL),
                        SNAP_OK);
        CU_ASSERT_EQUAL(r.outcome, CODE_TIMEOUT);
        CU_ASSERT_EQUAL(r.test, 0);
        judge_close(j);
    }
}

/* ---- assertions ---- */

static void test_assertions(void) {
    static const struct {
        const char *program;
        code_outcome outcome;
    } cases[] = {
        {"    return a + one()\n", P},
        {"def add(a):\n    return a + 1\n", P},
        {"def helper(a): return a + 1\ndef add (a): return helper(a)\n", P},
        {"    return a\n", W},
        {"    return 1 / 0\n", E},
        {"    while True: pass\n", T},
        {"    raise SystemExit(0)\n", E},
        {"    import os\n    os._exit(0)\n", C},
        {"    import os\n    os.write(3, b'P0123')\n    os._exit(0)\n", C},
        {"  this is no program", E},
    };
    code_judge *patient = open_judge(JUDGE_REAL, 60), *hasty = open_judge(JUDGE_REAL, 1);
    const code_tests t = {.n = 1,
                          .before =
                              "def one():\n    return 1\n\ndef add(a):\n    \"\"\"a + 1\"\"\"\n",
                          .after = "def check(f):\n    assert f(1) == 2\ncheck(add)\n",
                          .entry = "add"};
    for (size_t i = 0; patient && hasty && i < sizeof cases / sizeof *cases; i++) {
        code_result r;
        span p = {cases[i].program, strlen(cases[i].program)};
        code_judge *j = cases[i].outcome == CODE_TIMEOUT ? hasty : patient;
        CU_ASSERT_EQUAL(judge_program(j, p, &t, &r, NULL), SNAP_OK);
        CU_ASSERT_EQUAL(r.outcome, cases[i].outcome);
    }
    judge_close(hasty);
    judge_close(patient);
}

/* Programs that pass the assertions without computing an answer. "The word" is the random word that
 * the driver sends at the end of a program that passes (judge_unit.c). */
static const char *const deceivers[] = {
    /* reads the word in the driver's frames */
    "import os, sys\nf = sys._getframe()\nwhile f:\n    w = f.f_locals.get('word')\n"
    "    if isinstance(w, bytes): os.write(3, b'P' + w); os._exit(0)\n    f = f.f_back\n",
    /* reads the word in the memory of the process */
    "import os, re\nfound = set()\nfor line in open('/proc/self/maps'):\n"
    "    a, b = (int(x, 16) for x in line.split()[0].split('-'))\n"
    "    if ' rw' not in line or b - a > 1 << 26: continue\n"
    "    try:\n        m = open('/proc/self/mem', 'rb')\n        m.seek(a)\n"
    "        text = m.read(b - a)\n    except (OSError, OverflowError): continue\n"
    "    found |= set(re.findall(rb'(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])', text))\n"
    "os.write(3, b'P' + found.pop())\nos._exit(0)\n",
    /* replaces the output function: whatever the driver reports becomes success */
    "import sys, os\nf = sys._getframe()\nwhile 'say' not in f.f_globals or 'word' not in "
    "f.f_locals: f = "
    "f.f_back\nw = f.f_locals['word']\nf.f_globals['say'] = lambda data: os.write(3, b'P' + w)\n",
    /* reads the expected value in the text of the tests */
    "import re\ndef add(a):\n    text = open('/box/program.py').read()\n"
    "    return int(re.findall(r'f\\(%d\\) == (\\d+)' % a, text)[-1])\n",
    /* returns objects that equal everything */
    "class Any:\n    def __eq__(self, other): return True\n    __ne__ = __eq__\n"
    "def add(a): return Any()\n",
    "class Any(int):\n    def __eq__(self, other): return True\n    __hash__ = int.__hash__\n"
    "def add(a): return Any(7)\n",
    /* makes AssertionError another class, removes the output function, and writes the word at
     * exit */
    "import builtins\nclass Sly(dict):\n    pass\nbuiltins.AssertionError = SystemExit\n"
    "import sys, os\nf = sys._getframe()\nwhile 'word' not in f.f_locals: f = f.f_back\n"
    "w = f.f_locals['word']\nimport atexit\natexit.register(lambda: os.write(3, b'P' + w))\n"
    "f.f_globals['say'] = lambda data: None\n",
};

static void test_deceivers(void) {
    code_judge *j = open_judge(JUDGE_REAL, 20);
    const code_tests t = {.n = 1,
                          .after = "def check(f):\n    assert f(1) == 2\n    assert f(2) == 3\n"
                                   "    assert f(30) == 31\ncheck(add)\n"};
    for (size_t i = 0; j && i < sizeof deceivers / sizeof *deceivers; i++) {
        code_result r;
        span p = {deceivers[i], strlen(deceivers[i])};
        CU_ASSERT_EQUAL(judge_program(j, p, &t, &r, NULL), SNAP_OK);
        if (r.outcome == CODE_PASSED)
            printf("\n    deceiver %zu passes\n", i);
        CU_ASSERT(r.outcome != CODE_PASSED && r.passed == 0);
    }
    judge_close(j);
}

/* Right programs get the verdict "passed" with tests of these forms: each program passes the tests
 * and fails the changed tests (judge.h). */
static void test_forms_of_assertions(void) {
    static const struct {
        const char *program, *after;
    } cases[] = {
        {"def f(x): return x", "assert f(1) == 1\nassert f('a') == \"a\"\nassert f(True) == True"},
        {"def f(x): return x", "assert f([1, (2, 'x')]) == [1, (2, 'x')]\nassert f([]) == []"},
        {"def f(x): return x", "assert f({'a': 1.5}) == {'a': 1.5}\nassert f({1, 2}) == {1, 2}"},
        {"def f(x): return x", "assert f(None) == None\nassert f(None) is None\nassert not f('')"},
        {"def f(x): return x / 3", "assert abs(f(1) - 0.333) < 1e-2, \"close\""},
        {"def f(x): return [x, 1]", "assert set(f(2)) == set((1, 2)) and len(f(2)) == 2"},
        {"def f(x): return x",
         "assert True, 'This prints if this assert fails'\nassert -5 == f(-5)"},
        {"def f(x): return x", "for i in range(3):\n    assert f(i) == i"},
        {"def f(x): return x", "if f(0):\n    assert f(1) == 2\nassert f(1) == 1"},
        {"def f(x): return x",
         "def check(g):\n    if g(1):\n        return\n    assert g(2) == 3\ncheck(f)"},
        {"def f(x): return x",
         "def check(g):\n    assert g(1) == 2\ndef check(g):\n    assert g(1) == 1\ncheck(f)"},
        {"def f(x): return x", "def check(g):\n    yield g\n    assert g(1) == 2\ncheck(f)"},
        {"def f(x): return x", "def other(g):\n    assert g(1) == 5\nprint(f(1))"},
        {"def f(x): return x", "assert f('\u00e9\u4e2d') == '\u00e9\u4e2d' and f(1) == 1  # "
                               "\u4e2d\nassert f(2) \\\n    == 2"},
        {"def f(x): return x", "assert f(\"it's\") == \"it's\"\r\nassert f(0) == 0"},
        {"def f(x): return x",
         "assert (f(1) ==\n        1)\nassert f(1e300) == 1e300\nassert f(1.0) == 1.0"},
        {"def f(x): return x", "import math\nassert math.isclose(f(0.5), 0.5)"},
        {"class Pair:\n    def __init__(self, a): self.a = a\ndef f(p): return p.a",
         "assert f(Pair(4)) == 4"},
    };
    code_judge *j = open_judge(JUDGE_REAL, 60);
    for (size_t i = 0; j && i < sizeof cases / sizeof *cases; i++) {
        const code_tests t = {.n = 1, .after = cases[i].after};
        code_result r;
        span p = {cases[i].program, strlen(cases[i].program)};
        CU_ASSERT_EQUAL(judge_program(j, p, &t, &r, NULL), SNAP_OK);
        if (r.outcome != CODE_PASSED)
            printf("\n    %s: %s\n", cases[i].after, r.reason);
        CU_ASSERT_EQUAL(r.outcome, P);
    }
    judge_close(j);
}

/* ---- responses ---- */

static void test_responses(void) {
    static const struct {
        const char *response, *verdict, *reason;
        bool extracted, truncated;
    } cases[] = {
        {"so\n```python\nprint(1)\n```\n", "pass", "all tests pass", false, false},
        {"<think>```\nprint(2)\n```</think>\n```\nprint(1)\n```", "pass", "all tests pass", false,
         false},
        {"```\nprint(1)\n```\nor rather\n```\nprint(2)\n```", "wrong", "test 0: a different output",
         false, false},
        {"It prints 1.", "unparsed", "no program", false, false},
        {"print(1)", "pass", "all tests pass", false, false},
        {"print(1)", "pass", "all tests pass", true, false},
        {"```\nprint(1", "unparsed", "cut off before a program was complete", false, true},
        {"<think>```\nprint(1)\n```", "unparsed", "the reasoning did not end", false, false},
        {"", "unparsed", "empty response", false, false},
    };
    code_judge *j = open_judge(JUDGE_REAL, 60);
    code_test one = {{"", 0}, {"1", 1}};
    const code_tests t = {.tests = &one, .n = 1};
    for (size_t i = 0; j && i < sizeof cases / sizeof *cases; i++) {
        code_grade v;
        grade_input in = {
            {cases[i].response, strlen(cases[i].response)}, cases[i].extracted, cases[i].truncated};
        CU_ASSERT_EQUAL(code_grade_response(j, &grader_code_real, in, &t, &v, NULL), SNAP_OK);
        CU_ASSERT_STRING_EQUAL(code_grade_name(&v), cases[i].verdict);
        CU_ASSERT_STRING_EQUAL(v.grade.reason, cases[i].reason);
    }
    judge_close(j);
}

/* ---- tasks ---- */

static char folder[TEMP_FOLDER];

static void folder_open(void) {
    temp_folder_open(folder, "judge");
}

static void folder_close(void) {
    temp_folder_remove(folder);
}

static void put(const char *sub, const char *name, const void *bytes, size_t n) {
    temp_folder_put(folder, sub, name, bytes, n);
}

/* Writes a row of LiveCodeBench; the problem is to double a number. */
static void put_row(buf *out, const char *id, const char *date, const char *starter,
                    const char *metadata) {
    const char *type = starter[0] ? "functional" : "stdin";
    (void)buf_printf(
        out,
        "{\"question_title\": \"Double\", \"question_content\": \"Double n.\", \"platform\": "
        "\"leetcode\", \"question_id\": \"%s\", \"contest_id\": \"c\", \"contest_date\": \"%s\", "
        "\"starter_code\": \"%s\", \"difficulty\": \"easy\", \"public_test_cases\": "
        "\"[{\\\"input\\\": "
        "\\\"2\\\", \\\"output\\\": \\\"4\\\", \\\"testtype\\\": \\\"%s\\\"}]\", "
        "\"private_test_cases\": \"[{\\\"input\\\": \\\"5\\\", \\\"output\\\": \\\"10\\\", "
        "\\\"testtype\\\": \\\"%s\\\"}]\", \"metadata\": \"%s\"}\n",
        id, date, starter, type, type, metadata);
}

static void put_releases(void) {
    buf first = {0}, third = {0};
    put_row(&first, "a", "2023-08-21T00:00:00", "", "{}");
    put_row(&first, "b", "2024-01-05T00:00:00", "", "{}");
    put_row(&third, "c", "2024-08-03T00:00:00",
            "class Solution:\\n    def f(self, n):", "{\\\"func_name\\\": \\\"f\\\"}");
    put("livecodebench", "test.jsonl", buf_str(&first), first.len);
    put("livecodebench", "test3.jsonl", buf_str(&third), third.len);
    buf_release(&first);
    buf_release(&third);
}

static void test_livecodebench_set(void) {
    static const struct {
        task_options o;
        snap_status status;
        const char *ids, *message;
    } cases[] = {
        {{0}, SNAP_OK, "abc", ""},
        {{.lcb_version = "v1"}, SNAP_OK, "ab", ""},
        {{.lcb_version = "release_v1"}, SNAP_OK, "ab", ""},
        {{.lcb_version = "v3"}, SNAP_OK, "c", ""},
        {{.lcb_version = "v3_v3"}, SNAP_OK, "c", ""},
        {{.lcb_from = "2024-01-05"}, SNAP_OK, "bc", ""},
        {{.lcb_from = "2024-01-06", .lcb_to = "2024-08-03"}, SNAP_OK, "c", ""},
        {{.lcb_to = "2024-08-02"}, SNAP_OK, "ab", ""},
        {{.lcb_version = "release_v3"}, SNAP_E_IO, "", "test2.jsonl"},
        {{.lcb_version = "v7"}, SNAP_E_USAGE, "", "release_latest"},
        {{.lcb_version = "v3_v1"}, SNAP_E_USAGE, "", "v3_v1"},
        {{.lcb_from = "2024"}, SNAP_E_USAGE, "", "--lcb-from '2024'"},
        {{.lcb_from = "2025-01-01"}, SNAP_E_USAGE, "", "no problem"},
    };
    folder_open();
    put_releases();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        task_set set;
        char ids[8] = "";
        snap_err err = {0};
        CU_ASSERT_EQUAL(task_load(&task_livecodebench, folder, 0, &cases[i].o, &set, &err),
                        cases[i].status);
        for (size_t k = 0; err.code == SNAP_OK && k < set.n && k < sizeof ids - 1; k++)
            ids[k] = set.problems[k].id[0];
        CU_ASSERT_STRING_EQUAL(ids, cases[i].ids);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.text, cases[i].message));
        task_set_release(&set);
    }
    folder_close();
}

static void test_livecodebench_rows(void) {
    task_set set;
    code_tests t;
    snap_err err = {0};
    folder_open();
    put_releases();
    CU_ASSERT_EQUAL_FATAL(task_load(&task_livecodebench, folder, 0, NULL, &set, NULL), SNAP_OK);
    CU_ASSERT(set.n == 3 && set.grader == &grader_code_real && task_livecodebench.samples == 4);
    CU_ASSERT_STRING_EQUAL(set.problems[0].messages[0].role, "system");
    CU_ASSERT_PTR_NOT_NULL(strstr(set.problems[0].messages[1].content,
                                  "### Question:\nDouble n.\n\n### Format: Read the inputs"));
    CU_ASSERT_PTR_NOT_NULL(strstr(set.problems[2].messages[1].content,
                                  "```python\nclass Solution:\n    def f(self, n):\n```\n\n"));
    CU_ASSERT_EQUAL(task_tests(&set, &set.problems[2], &t, NULL), SNAP_OK);
    CU_ASSERT(t.n == 2 && t.fn_name && strcmp(t.fn_name, "f") == 0);
    tests_release(&t);
    put("livecodebench", "test3.jsonl", "{}\n", 3);
    CU_ASSERT_EQUAL(task_tests(&set, &set.problems[2], &t, &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "has changed"));
    tests_release(&t);
    task_set_release(&set);
    CU_ASSERT_EQUAL(task_load(&task_livecodebench, folder, 0, &(task_options){.judge = JUDGE_LCB},
                              &set, (err = (snap_err){0}, &err)),
                    SNAP_E_INPUT);
    CU_ASSERT_PTR_EQUAL(set.grader, &grader_code_lcb);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "test3.jsonl:1: needs a text 'question_id'"));
    task_set_release(&set);
    folder_close();
}

static void put_packed(const char *sub, const char *name, const char *text) {
    unsigned char packed[4096];
    z_stream z = {.next_in = (Bytef *)(uintptr_t)text,
                  .avail_in = (uInt)strlen(text),
                  .next_out = packed,
                  .avail_out = sizeof packed};
    CU_ASSERT_EQUAL_FATAL(deflateInit2(&z, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY),
                          Z_OK);
    CU_ASSERT_EQUAL_FATAL(deflate(&z, Z_FINISH), Z_STREAM_END);
    put(sub, name, packed, z.total_out);
    (void)deflateEnd(&z);
}

static void test_humaneval_set(void) {
    static const char rows[] =
        "{\"task_id\": \"Own/0\", \"prompt\": \"def one():\\n    "
        "\\\"\\\"\\\"One.\\\"\\\"\\\"\\n\", "
        "\"entry_point\": \"one\", \"canonical_solution\": \"    return 1\\n\", \"test\": \"def "
        "check(f):\\n    assert f() == 1\\n\"}\n\n"
        "{\"task_id\": \"Own/1\", \"prompt\": \"def two():\\n    # two\\n\", \"entry_point\": "
        "\"two\", "
        "\"test\": \"def check(f):\\n    assert f() == 2\\n\"}\n";
    task_set set;
    code_tests t;
    folder_open();
    put_packed("humaneval", "HumanEval.jsonl.gz", rows);
    CU_ASSERT_EQUAL_FATAL(task_load(task_of("humaneval"), folder, 0, NULL, &set, NULL), SNAP_OK);
    CU_ASSERT(set.n == 2 && set.grader == &grader_assertions);
    CU_ASSERT_STRING_EQUAL(set.problems[1].id, "Own/1");
    CU_ASSERT_EQUAL(task_tests(&set, &set.problems[1], &t, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(t.before, "def two():\n    # two\n");
    CU_ASSERT_STRING_EQUAL(t.after, "def check(f):\n    assert f() == 2\n\n\ncheck(two)\n");
    tests_release(&t);
    task_set_release(&set);
    snap_err err = {0};
    put("humaneval", "HumanEval.jsonl.gz", "\x1f\x8b", 2);
    CU_ASSERT_EQUAL(task_load(task_of("humaneval"), folder, 0, NULL, &set, &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "damaged"));
    task_set_release(&set);
    folder_close();
}

static void test_mbpp_set(void) {
    static const char rows[] =
        "{\"task_id\": 10, \"text\": \"An example.\", \"test_list\": [\"assert True\"]}\n"
        "{\"task_id\": 11, \"text\": \"Write one().\", \"test_list\": [\"assert one() == 1\", "
        "\"assert one() < two\"], \"test_setup_code\": \"two = 2\"}\n"
        "{\"task_id\": 510, \"prompt\": \"Write two().\", \"test_list\": [\"assert two() == 2\"]}\n"
        "{\"task_id\": 511, \"text\": \"For training.\", \"test_list\": [\"assert True\"]}\n";
    task_set set;
    code_tests t;
    folder_open();
    put("mbpp", "mbpp.jsonl", rows, strlen(rows));
    CU_ASSERT_EQUAL_FATAL(task_load(task_of("mbpp"), folder, 0, NULL, &set, NULL), SNAP_OK);
    CU_ASSERT(set.n == 2 && set.rows == 4);
    CU_ASSERT_STRING_EQUAL(set.problems[0].id, "11");
    CU_ASSERT_PTR_NOT_NULL(strstr(set.problems[0].messages[0].content, "assert one() < two\n"));
    CU_ASSERT_EQUAL(task_tests(&set, &set.problems[0], &t, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(t.after, "two = 2\nassert one() == 1\nassert one() < two\n");
    tests_release(&t);
    task_set_release(&set);
    folder_close();
}

/* ---- samples ---- */

static void answer(sample_store *s, const eval_plan *p, size_t problem, const char *text) {
    gen_request req = plan_request(p, (plan_cell){.problem = problem});
    const gen_result res = {.text = text, .finish_reason = "stop", .attempts = 1};
    CU_ASSERT_EQUAL_FATAL(samples_append(s, &req, &res, NULL), SNAP_OK);
}

/* A verdict is made once, kept when the run is resumed, and made again only on request. */
static void test_samples(void) {
    eval_plan p = {0};
    eval_task task = {.samples = 1, .sampling = {.temperature = 1, .max_tokens = 8}};
    eval_arm arm = {.name = "a", .spec = "replay:x", .kind = "replay", .temperature = -1};
    sample_outcome o[3];
    sample_store *s;
    code_judge *j = open_judge(JUDGE_REAL, 60);
    if (!j)
        return;
    judge_close(j);
    folder_open();
    put_releases();
    CU_ASSERT_EQUAL_FATAL(task_load(&task_livecodebench, folder, 0, NULL, &task.set, NULL),
                          SNAP_OK);
    p = (eval_plan){.tasks = &task, .arms = &arm, .n_tasks = 1, .n_arms = 1};
    char *path = fs_join(folder, "samples.jsonl");
    CU_ASSERT_EQUAL_FATAL(samples_open(&s, &p, path, NULL), SNAP_OK);
    answer(s, &p, 0, "```\nprint(2 * int(input()))\n```");
    answer(s, &p, 1, "```\nprint(4)\n```");
    answer(s, &p, 2, "```\nclass Solution:\n    def f(self, n): return 2 * n\n```");
    CU_ASSERT_EQUAL(samples_grade(s, o, NULL), SNAP_OK);
    CU_ASSERT(o[0].verdict == GRADE_CORRECT && o[1].verdict == GRADE_WRONG);
    CU_ASSERT(o[2].verdict == GRADE_CORRECT && o[2].answer_hash && !o[2].failed);
    samples_close(s);
    put("livecodebench", "test.jsonl", "gone", 4);
    CU_ASSERT_EQUAL_FATAL(samples_open(&s, &p, path, NULL), SNAP_OK);
    memset(o, 0, sizeof o);
    CU_ASSERT_EQUAL(samples_grade(s, o, NULL), SNAP_OK); /* this needs no tests: the verdicts are
                                                            stored */
    CU_ASSERT(o[0].verdict == GRADE_CORRECT && o[1].verdict == GRADE_WRONG);
    snap_err err = {0};
    p.rejudge = true;
    CU_ASSERT_EQUAL(samples_grade(s, o, &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "has changed"));
    samples_close(s);
    free(path);
    task_set_release(&task.set);
    folder_close();
}

/* ---- packages ---- */

static void test_packages(void) {
    static const struct {
        const char *errors, *names;
    } rows[] = {
        {"ModuleNotFoundError: No module named 'numpy'", "numpy"},
        {"ModuleNotFoundError(\"No module named 'scipy.stats'\")", "scipy"},
        {"No module named 'sympy'\nNo module named 'numpy'", "numpy,sympy"},
        {"No module named 'numpyro'", ""},
        {"No module named 'requests'", ""},
        {"NameError: name 'numpy' is not defined", ""},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        buf names = {0};
        packages_append(packages_not_found((span){rows[i].errors, strlen(rows[i].errors)}), "", ",",
                        &names);
        CU_ASSERT_STRING_EQUAL(buf_str(&names), rows[i].names);
        buf_release(&names);
    }
}

/* Judges a program that needs no input. */
static snap_status judge_output(code_judge *j, const char *text, const char *output, code_result *r,
                                snap_err *err) {
    code_test test = {{"", 0}, {output, strlen(output)}};
    const code_tests tests = {.tests = &test, .n = 1};
    return judge_program(j, (span){text, strlen(text)}, &tests, r, err);
}

/* True if the program passes, or if there is an error that names the package. */
static bool passes_or_names(snap_status st, const code_result *r, const snap_err *err,
                            const char *install) {
    return st == SNAP_OK ? r->outcome == CODE_PASSED
                         : st == SNAP_E_ENV && strstr(err->text, install) != NULL;
}

/* A program that imports an offered package is judged, or there is an error that names the
 * package. A program that passes without the package is judged in any case. No other package of the
 * machine can be imported. */
static void test_missing_package(void) {
    static const code_tests unit = {.n = 1, .after = "assert f() == 3"};
    static const char needs[] = "def f():\n    import sympy\n    return int(sympy.Integer(3))";
    static const char *const needs_none[] = {
        "import sys\nprint(3 if not any('-packages' in p for p in sys.path) else 0)",
        "try:\n    import sympy\n    n = int(sympy.Integer(3))\nexcept ImportError:\n    n = 3\n"
        "print(n)",
        "def f():\n    import sympy\nprint(3)",
    };
    for (int kind = JUDGE_REAL; kind <= JUDGE_LCB; kind++) {
        code_judge *j = open_judge((judge_kind)kind, 0);
        code_result r;
        snap_err err = {0};
        if (!j)
            return;
        snap_status st =
            judge_output(j, "import numpy\nprint(numpy.arange(3).sum())", "3", &r, &err);
        CU_ASSERT_TRUE(passes_or_names(st, &r, &err, "apt-get install python3-numpy"));
        err = (snap_err){0};
        st = judge_program(j, (span){needs, sizeof needs - 1}, &unit, &r, &err);
        CU_ASSERT_TRUE(passes_or_names(st, &r, &err, "apt-get install python3-sympy"));
        for (size_t i = 0; i < sizeof needs_none / sizeof *needs_none; i++) {
            st = judge_output(j, needs_none[i], "3", &r, &err);
            CU_ASSERT(st == SNAP_OK && r.outcome == CODE_PASSED);
        }
        judge_close(j);
    }
}

CU_TestInfo tests_judge[] = {
    {"each test runs in a process of its own", test_real},
    {"verdicts equal those of LiveCodeBench's checker", test_lcb},
    {"a limit below a second", test_short_limit},
    {"assertions decide about a program", test_assertions},
    {"programs that deceive", test_deceivers},
    {"forms of assertions", test_forms_of_assertions},
    {"responses are judged by their programs", test_responses},
    {"LiveCodeBench's releases", test_livecodebench_set},
    {"LiveCodeBench's rows", test_livecodebench_rows},
    {"rows of HumanEval", test_humaneval_set},
    {"rows of MBPP", test_mbpp_set},
    {"a verdict is made once and kept", test_samples},
    {"packages that were not found", test_packages},
    {"a missing package", test_missing_package},
    CU_TEST_INFO_NULL,
};
