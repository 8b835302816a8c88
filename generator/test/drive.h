/* drive.h - a source of numbered requests and a sink that keeps results, for tests. */
#ifndef SNAPMLA_GENERATOR_TEST_DRIVE_H
#define SNAPMLA_GENERATOR_TEST_DRIVE_H

#include "generator/generator.h"

enum { DRIVE_MAX = 512 };

typedef struct {
    int64_t id;
    bool failed;
    char *error, *text, *reasoning, *finish_reason; /* owned copies; NULL as in gen_result */
    gen_result res;                                 /* its numbers; its pointers are dead */
} kept;

typedef struct {
    int total;      /* requests to give out */
    int given;      /* given out so far */
    int fail_after; /* the sink fails after so many results; 0 = never */
    kept kept[DRIVE_MAX];
    int n_kept;
    snap_err err;
} drive;

/* Runs @total requests of task "t", problem "p", sample and id 0, 1, ... through @g. */
snap_status drive_run(drive *d, generator *g, int total);
void drive_release(drive *d);

/* Result of request @id; NULL if none came. */
const kept *drive_result(const drive *d, int64_t id);

#endif
