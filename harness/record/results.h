/* results.h - the result file of a run: one JSON document that stands on its own.
 *
 *   results_new()  ->  results_set_backend()  ->  results_add()...  ->  results_save()
 *
 * The document is {"schema", "provenance", "ceilings", "bench", "fidelity", "model_fidelity",
 * "e2e", "evals", "verdicts"}. Each section's rows are C structs with a table of fields (field.h,
 * run.h), and the schema of the document follows from these tables. Every file is checked against
 * the schema when it is written and when it is read. harness/record/snapmla.run.schema.json is the
 * schema as published; a test keeps it equal to the tables, and "make schema" writes it anew.
 * Numbers that do not exist are null (js_new_num() does that for NAN), never 0.
 *
 * Versions: a higher major is refused; a higher minor only adds, and is read without what it
 * adds. */
#ifndef SNAPMLA_HARNESS_RECORD_RESULTS_H
#define SNAPMLA_HARNESS_RECORD_RESULTS_H

#include <stdint.h>

#include "base/json.h"

enum { RESULTS_MAJOR = 1, RESULTS_MINOR = 0 };

typedef struct results results;

/* This build: "0.1.0"; "1a2b3c4d5e6f", "1a2b3c4d5e6f-dirty" or "unknown". Static memory. */
const char *results_program_version(void);
const char *results_program_commit(void);

/**
 * results_new - start a document: collects provenance and notes the time
 *
 * @out:     caller owns it, release with results_free(); NULL on failure
 * @command: "bench"
 * @config:  the resolved options (opt_shared.resolved); copied. May be NULL: an empty object
 * @seed:    of everything random in the run
 *
 * The command line is taken from the process itself. Of an absolute path both keep the last name only: a
 * machine's folders are nobody's business. Errors: SNAP_E_NOMEM.
 */
snap_status results_new(results **out, const char *command, const js *config, int64_t seed,
                        snap_err *err) SNAP_CHECK_RESULT;
void results_free(results *r); /* NULL is allowed */

/* Which backend measured; @threads 0 = not applicable. SNAP_E_NOMEM. */
snap_status results_set_backend(results *r, const char *name, const char *device,
                                const char *kernel, int threads, snap_err *err) SNAP_CHECK_RESULT;

/* After results_set_backend(): which file it came from, where @backend is "plugin:PATH"; nothing
 * for any other. SNAP_E_IO, SNAP_E_NOMEM. */
snap_status results_set_plugin(results *r, const char *backend, snap_err *err) SNAP_CHECK_RESULT;

/* The device's own account (gpu_json()); @gpu is taken over, also on failure. SNAP_E_NOMEM. */
snap_status results_set_gpu(results *r, js *gpu, snap_err *err) SNAP_CHECK_RESULT;

/**
 * results_add - append a row to a section
 *
 * @section: "ceilings", "bench", "fidelity", "model_fidelity", "e2e", "evals" or "verdicts"
 * @row:     taken over, also on failure; NULL counts as out of memory
 *
 * SNAP_E_INPUT with the path and the reason ("bench[3].performance.median_ns: must be number, got
 * null") when the schema refuses the row, which then is not in the document; SNAP_E_NOMEM.
 */
snap_status results_add(results *r, const char *section, js *row, snap_err *err) SNAP_CHECK_RESULT;

/* The same for every element of an array of rows. */
snap_status results_add_all(results *r, const char *section, js *rows,
                            snap_err *err) SNAP_CHECK_RESULT;

/* The rows so far, an array; borrowed. Rows may be changed in place until results_save(). */
js *results_section(const results *r, const char *section);

/* The whole document, borrowed: what --json prints. */
js *results_document(const results *r);

/* SHA-256 of the configuration as stored, 64 hexadecimal digits; borrowed. */
const char *results_config_sha256(const results *r);

/* Sets "ended", checks, and writes the file atomically. Errors as results_add(), and SNAP_E_IO. */
snap_status results_save(results *r, const char *path, snap_err *err) SNAP_CHECK_RESULT;

/* Reads a result file. SNAP_E_INPUT names the file and what is wrong in it; SNAP_E_UNSUPPORTED is a
 * newer major; SNAP_E_IO. Caller owns *out. */
snap_status results_load(results **out, const char *path, snap_err *err) SNAP_CHECK_RESULT;

/* The same from memory; @name is what messages call it. */
snap_status results_parse(results **out, const char *text, size_t n, const char *name,
                          snap_err *err) SNAP_CHECK_RESULT;

/* Copies all rows of @from to the end of @to and its provenance to @to's "sources". Of two
 * measurements of one ceiling the higher stays: both must be of one machine. SNAP_E_NOMEM. */
snap_status results_join(results *to, const results *from, snap_err *err) SNAP_CHECK_RESULT;

/* The file that a FILE_or_DIR argument means: a name in .json or an existing file is itself, all
 * else a RUN folder with run.json in it. Owned (free()); NULL when out of memory. */
char *results_file_of(const char *path);

/* ---- journal: what a killed run need not do again ---- */

/* An append-only file of finished rows. It belongs to one configuration and to one process at a
 * time. Lookups are by a key of the caller's making, e.g. the name of a cell: whatever else a row
 * must agree with to be used again (the kernel's hash) belongs into the key. */
typedef struct results_journal results_journal;

/**
 * results_journal_open - open or create
 *
 * @path:          e.g. RUN/journal; "<path>.lock" beside it is held while the journal is open
 * @config_sha256: results_config_sha256(), or the hash of the part of it that rows depend on
 *
 * A last line cut by a kill is dropped; of rows with one key the last counts. SNAP_E_USAGE when the
 * journal is of another configuration (the message says what to do); SNAP_E_INPUT for a malformed
 * line; SNAP_E_IO, also when another process has it open.
 */
snap_status results_journal_open(results_journal **out, const char *path, const char *config_sha256,
                                 snap_err *err) SNAP_CHECK_RESULT;

/* The finished row of a key, borrowed; NULL when there is none. */
const js *results_journal_find(const results_journal *j, const char *key);

/* Adds a row and returns when it is on disk. @row stays the caller's. SNAP_E_IO, SNAP_E_NOMEM. */
snap_status results_journal_append(results_journal *j, const char *key, const js *row,
                                   snap_err *err) SNAP_CHECK_RESULT;

void results_journal_close(results_journal *j); /* NULL is allowed; keeps the file */

/* Closes and deletes: the run's result file is written. SNAP_E_IO. */
snap_status results_journal_remove(results_journal *j, snap_err *err) SNAP_CHECK_RESULT;

#endif
