/* task_of.h - a task by its name, for tests. Ends the program if there is none. */
#ifndef SNAPMLA_EVALS_TEST_TASK_OF_H
#define SNAPMLA_EVALS_TEST_TASK_OF_H

#include <stdio.h>
#include <stdlib.h>

#include "evals/task.h"

static inline const task_spec *task_of(const char *name) {
    const task_spec *t = NULL;
    snap_err err = {0};
    if (task_find(name, &t, &err) == SNAP_OK && t)
        return t;
    (void)fprintf(stderr, "no task '%s': %s\n", name, err.text);
    abort();
}

#endif
