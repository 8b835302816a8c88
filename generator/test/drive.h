/* drive.h - a source of numbered requests and a sink that keeps results, for tests. */
#ifndef SNAPMLA_GENERATOR_TEST_DRIVE_H
#define SNAPMLA_GENERATOR_TEST_DRIVE_H

#include "generator/generator.h"

enum { DRIVE_MAX = 512 };

typedef struct {
    int64_t id;
    bool failed;
    char *error, *text, *reasoning, *finish_reason; /* owned copies; NULL where the
                                                       gen_result has NULL */
    gen_result res;                                 /* the result with its numbers; the pointers in
                                                       it are no longer valid */
} kept;

typedef struct {
    int total;      /* requests that the source has */
    int given;      /* requests that the source has returned */
    int fail_after; /* the sink fails after this many results; 0 = never */
    kept kept[DRIVE_MAX];
    int n_kept;
    snap_err err;
} drive;

/* Runs @total requests through @g: task "t", problem "p", sample and id 0, 1, ... */
snap_status drive_run(drive *d, generator *g, int total);
void drive_release(drive *d);

/* The result of request @id; NULL if there is none. */
const kept *drive_result(const drive *d, int64_t id);

#endif
