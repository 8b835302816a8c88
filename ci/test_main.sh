#!/bin/sh
# Writes the main() of a folder's test program: a suite a file, from each test_X.c's tests_X[].
#   test_main.sh FOLDER FILE...
# The program takes --list, --suite NAME (repeatable) and exits 1 when an assertion failed.
set -eu
folder=$1
shift
echo '#include <CUnit/Basic.h>'
echo '#include <stdio.h>'
echo '#include <string.h>'
for f in "$@"; do
    echo "extern CU_TestInfo tests_$(basename "$f" .c | sed 's/^test_//')[];"
done
echo 'static CU_SuiteInfo suites[] = {'
for f in "$@"; do
    n=$(basename "$f" .c | sed 's/^test_//')
    # CUnit's own fields are char *: the literal is never written to
    printf '    {.pName = (char[]){"%s"}, .pTests = tests_%s},\n' "$n" "$n"
done
cat <<EOF
    CU_SUITE_INFO_NULL};

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
    printf("\n== $folder ==\n");
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    int failed = CU_get_number_of_failures() != 0 || CU_get_number_of_suites_failed() != 0;
    CU_cleanup_registry();
    return failed;
}
EOF
