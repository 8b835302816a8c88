#include "evals/grade.h"

const char *grade_verdict_name(grade_verdict v) {
    static const char *const names[] = {"correct", "wrong", "unparsed"};
    return names[v];
}
