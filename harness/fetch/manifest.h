/* manifest.h - datasets/manifest.json: which data sets there are, where they come from, and by
 * which checksum they are known.
 *
 *   {"schema": {"name": "snapmla.manifest", "major": 1, ...},
 *    "sets": [{"name": "math500", "title", "rows", "large", "licence", "notice", "home",
 *              "files": [{"path": "math_500/test.jsonl", "bytes", "sha256", "url", "convert"}]}]}
 *
 * A set bears the name of its task. datasets/fetch.sh reads the same file by line. */
#ifndef SNAPMLA_HARNESS_FETCH_MANIFEST_H
#define SNAPMLA_HARNESS_FETCH_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

typedef struct {
    const char *path;   /* in the data folder, and in a mirror: relative, without ".." */
    const char *url;    /* its official home; http or https */
    const char *sha256; /* of what the URL brings, 64 lower-case digits; NULL = not known */
    int64_t bytes;      /* the same; -1 = not known */
    bool convert;       /* the URL brings the Hugging Face rows API's JSON, not JSON lines */
    bool pages;         /* and in many answers: it lacks its "&offset=..&length=.." */
} manifest_file;

typedef struct {
    const char *name, *title, *licence, *home;
    const char *notice; /* what to know before using it; NULL = nothing */
    int64_t rows;
    bool large; /* fetched when named only */
    manifest_file *files;
    size_t n_files;
} manifest_set;

typedef struct {
    manifest_set *sets;
    size_t n;
    arena mem;
} manifest;

/* Reads a manifest; strings live in it. Release with manifest_release(), also after a failure.
 * SNAP_E_IO; SNAP_E_INPUT naming file, set and key for anything that is not as above. */
snap_status manifest_load(manifest *out, const char *path, snap_err *err) SNAP_CHECK_RESULT;
void manifest_release(manifest *m);

const manifest_set *manifest_find(const manifest *m, const char *name); /* NULL = no such set */

/* Whether data of @task with this checksum is known: "match", "differs", or "unknown" where the
 * manifest has no checksum to compare with. A task_set of several files has the digest of their
 * digests, a line each, those of the problems that were read first, the one file that
 * lists them last: in that order they stand in the manifest. */
const char *manifest_verdict(const manifest *m, const char *task, const char *sha256);

/* The same by the program's own manifest; a warning, and "unknown", where that can't be read. */
const char *manifest_check(const char *task, const char *sha256);

#endif
