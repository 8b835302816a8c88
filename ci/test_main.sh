#!/bin/sh
# Writes the main() of a folder's test program. Each test_X.c is a suite with the tests in
# tests_X[].
#   test_main.sh FOLDER FILE...
# Options of the program: --list; --suite NAME (repeatable); --note FILE writes the names of the
# tests that start threads; --only FILE runs the tests named in that file. At the end it prints the
# tests that took 5 s or more. It exits 1 if an assertion failed. It is linked with
# --wrap=pthread_create.
set -eu
folder=$1
shift
echo '#include <CUnit/Basic.h>'
echo '#include <pthread.h>'
echo '#include <stdio.h>'
echo '#include <string.h>'
echo '#include <time.h>'
echo 'static void begin_test(void), end_test(void);'
for f in "$@"; do
    echo "extern CU_TestInfo tests_$(basename "$f" .c | sed 's/^test_//')[];"
done
echo 'static CU_SuiteInfo suites[] = {'
for f in "$@"; do
    n=$(basename "$f" .c | sed 's/^test_//')
    # CUnit's fields are char *, so the name is an array, not a string literal
    printf '    {.pName = (char[]){"%s"}, .pTests = tests_%s,\n' "$n" "$n"
    echo '     .pSetUpFunc = begin_test, .pTearDownFunc = end_test},'
done
cat <<EOF
    CU_SUITE_INFO_NULL};

#ifdef __SANITIZE_ADDRESS__
/* PoCL keeps memory of its compiler, which is LLVM. It compiles only kernels that are not in its cache. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libpocl\\nleak:libLLVM\\n";
}
#endif

static const char *option(const char *name, int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    return NULL;
}

/* ---- which tests are slow ---- */

enum { SLOW_SECONDS = 5, SLOW_TESTS = 100 };
static struct {
    char name[100];
    double seconds;
} slow[SLOW_TESTS];
static int n_slow;
static struct timespec began;

static void begin_test(void)
{
    clock_gettime(CLOCK_MONOTONIC, &began);
}

static void end_test(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double seconds = (double)(now.tv_sec - began.tv_sec);
    seconds += (double)(now.tv_nsec - began.tv_nsec) / 1e9;
    if (seconds < SLOW_SECONDS || n_slow == SLOW_TESTS)
        return;
    snprintf(slow[n_slow].name, sizeof slow->name, "%s: %s", CU_get_current_suite()->pName,
             CU_get_current_test()->pName);
    slow[n_slow++].seconds = seconds;
}

/* ---- which tests start threads, in processes of their own as well ---- */

static const char *notes;

int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg);

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg)
{
    static _Atomic(CU_pTest) noted;
    CU_pTest test = CU_get_current_test();
    FILE *file = notes && test && noted != test ? fopen(notes, "a") : NULL;
    if (file) {
        noted = test;
        fprintf(file, "%s: %s\n", CU_get_current_suite()->pName, test->pName);
        fclose(file);
    }
    return __real_pthread_create(t, a, f, arg);
}

static int is_noted(FILE *file, const CU_Suite *suite, const CU_Test *test)
{
    char line[512], wanted[512];
    snprintf(wanted, sizeof wanted, "%s: %s\n", suite->pName, test->pName);
    rewind(file);
    while (fgets(line, sizeof line, file))
        if (strcmp(line, wanted) == 0)
            return 1;
    return 0;
}

static void leave_others_out(FILE *file)
{
    for (CU_pSuite s = CU_get_registry()->pSuite; s; s = s->pNext) {
        int any = 0;
        for (CU_pTest t = s->pTest; t; t = t->pNext) {
            int noted = is_noted(file, s, t);
            CU_set_test_active(t, noted ? CU_TRUE : CU_FALSE);
            any |= noted;
        }
        if (!any)
            CU_set_suite_active(s, CU_FALSE);
    }
}

static int wanted(const char *name, int argc, char **argv)
{
    int any = 0;
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--suite") == 0) {
            any = 1;
            if (strcmp(argv[i + 1], name) == 0)
                return 1;
        }
    return !any;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--list") == 0) {
        for (const CU_SuiteInfo *s = suites; s->pName; s++)
            printf("%s\n", s->pName);
        return 0;
    }
    if (CU_initialize_registry() != CUE_SUCCESS || CU_register_suites(suites) != CUE_SUCCESS) {
        fprintf(stderr, "$folder: %s\n", CU_get_error_msg());
        return 1;
    }
    for (const CU_SuiteInfo *s = suites; s->pName; s++)
        if (!wanted(s->pName, argc, argv))
            CU_set_suite_active(CU_get_suite(s->pName), CU_FALSE);
    CU_set_fail_on_inactive(CU_FALSE);
    notes = option("--note", argc, argv);
    if (notes) {
        FILE *empty = fopen(notes, "w");
        if (!empty || fclose(empty) != 0) {
            fprintf(stderr, "$folder: cannot write %s\n", notes);
            return 1;
        }
    }
    const char *only = option("--only", argc, argv);
    FILE *file = only ? fopen(only, "r") : NULL;
    if (file) {
        leave_others_out(file);
        fclose(file);
    }
    printf("\n== $folder ==\n");
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    for (int i = 0; i < n_slow; i++)
        printf("slow: %5.1f s  $folder: %s\n", slow[i].seconds, slow[i].name);
    int failed = CU_get_number_of_failures() != 0 || CU_get_number_of_suites_failed() != 0;
    CU_cleanup_registry();
    return failed;
}
EOF
