/* manifest.h - reads datasets/manifest.json: the known data sets, their sources and their
 * checksums.
 *
 *   {"schema": {"name": "snapmla.manifest", "major": 1, ...},
 *    "sets": [{"name": "math500", "title", "rows", "large", "licence", "notice", "home",
 *              "files": [{"path": "math_500/test.jsonl", "bytes", "sha256", "url", "convert"}]}]}
 *
 * A set has the name of its task; data for a task's grader (punkt) has a name of its own and no
 * rows. datasets/fetch.sh reads the same file line by line. */
#ifndef SNAPMLA_HARNESS_FETCH_MANIFEST_H
#define SNAPMLA_HARNESS_FETCH_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

typedef struct {
    const char *path;   /* relative, without ".."; the same in the data folder and in a mirror */
    const char *url;    /* the official source; http or https */
    const char *sha256; /* checksum of the download, 64 lower-case digits; NULL = not known */
    int64_t bytes;      /* size of the download; -1 = not known */
    bool convert;       /* the URL returns JSON of the Hugging Face rows API, not JSON lines */
    bool pages;         /* like `convert`, but the rows come in several pages;
                           "&offset=..&length=.." is appended to the URL */
} manifest_file;

typedef struct {
    const char *name, *title, *licence, *home;
    const char *notice; /* what a user should know about the data; NULL = nothing */
    int64_t rows;
    bool large; /* chosen only if it is named, or if fetch_wanted.large is set (choice.h) */
    manifest_file *files;
    size_t n_files;
} manifest_set;

typedef struct {
    manifest_set *sets;
    size_t n;
    arena mem;
} manifest;

/* Reads a manifest. All its strings belong to it. Release it with manifest_release(), also after a
 * failure. SNAP_E_INPUT for a malformed manifest; the message names the file and, in most cases,
 * the set and the key. SNAP_E_IO, SNAP_E_NOMEM. */
snap_status manifest_load(manifest *out, const char *path, snap_err *err) SNAP_CHECK_RESULT;
void manifest_release(manifest *m);

const manifest_set *manifest_find(const manifest *m, const char *name); /* NULL = no such set */

/* True if the manifest has a checksum with which a file in the data folder can be compared. */
bool manifest_is_checked(const manifest_file *f);

size_t manifest_unverified(const manifest_set *s); /* the number of files without such a checksum */

/* Compares the checksum of data for @task with the manifest: "match"; else "unknown" if the
 * manifest has no set of that name, "unverified" if it lacks the checksum of one of the set's
 * files, or "differs". A task set that was read from several files has a digest of their digests,
 * one per line: first the files that hold the problems, then the one file that lists them. The
 * manifest names the files in this order. */
const char *manifest_verdict(const manifest *m, const char *task, const char *sha256);

/* manifest_verdict() with the program's own manifest. If that cannot be read, warns and returns
 * "unknown". */
const char *manifest_check(const char *task, const char *sha256);

#endif
