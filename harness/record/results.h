/* results.h - the result file of a run: one JSON document that needs no other file.
 *
 *   results_new()  ->  results_set_backend()  ->  results_add()...  ->  results_save()
 *
 * The document is {"schema", "provenance", "ceilings", "bench", "fidelity", "model_fidelity",
 * "e2e", "exchange", "predicted", "evals", "pooled", "serving", "verdicts"}; a joined file also has
 * "sources".
 * The rows of each section are C structs with a table of fields (field.h, run.h). The schema of the
 * document follows from these tables. A file is checked against the schema when it is written and
 * when it is read. The published schema is harness/record/snapmla.run.schema.json. A test compares
 * it with the tables; "make schema" writes it. A number that is NAN in C is null or absent in the
 * file.
 *
 * Versions: a file with a higher major version is refused. A higher minor version only adds keys.
 * Such a file is read, and the keys that this program does not have are ignored. */
#ifndef SNAPMLA_HARNESS_RECORD_RESULTS_H
#define SNAPMLA_HARNESS_RECORD_RESULTS_H

#include <stdint.h>

#include "base/json.h"

enum { RESULTS_MAJOR = 1, RESULTS_MINOR = 0 };

typedef struct results results;

/* Version and commit of this build: "0.2.0"; "1a2b3c4d5e6f", "1a2b3c4d5e6f-dirty" or "unknown".
 * Static memory. */
const char *results_program_version(void);
const char *results_program_commit(void);

/**
 * results_new - start a document: collects the provenance and notes the time
 *
 * @out:     caller owns it, release with results_free(); NULL on failure
 * @command: "bench"
 * @config:  the resolved options (opt_shared.resolved); copied. NULL is an empty object
 * @seed:    of all random numbers of the run
 *
 * The command line is read from /proc. Absolute paths in it and in the configuration are shortened
 * to their last name, so that a result does not show the folders of the machine. Values of options
 * with "password" in their names are left out of the command line. SNAP_E_NOMEM.
 */
snap_status results_new(results **out, const char *command, const js *config, int64_t seed,
                        snap_err *err) SNAP_CHECK_RESULT;
void results_free(results *r); /* NULL is allowed */

/* Sets the backend that measures. @threads: 0 = not applicable. SNAP_E_NOMEM. */
snap_status results_set_backend(results *r, const char *name, const char *device,
                                const char *kernel, int threads, snap_err *err) SNAP_CHECK_RESULT;

/* Call after results_set_backend(). If @backend is "plugin:PATH", this adds the file name and the
 * hash of that file. For any other backend it does nothing. SNAP_E_IO, SNAP_E_NOMEM. */
snap_status results_set_plugin(results *r, const char *backend, snap_err *err) SNAP_CHECK_RESULT;

/* Sets the description of the GPU (gpu_json()). @gpu is taken over, also on failure.
 * SNAP_E_NOMEM. */
snap_status results_set_gpu(results *r, js *gpu, snap_err *err) SNAP_CHECK_RESULT;

/**
 * results_add - append a row to a section
 *
 * @section: "ceilings", "bench", "fidelity", "model_fidelity", "e2e", "exchange", "predicted",
 *           "evals", "pooled", "serving" or "verdicts"
 * @row:     taken over, also on failure; NULL counts as out of memory
 *
 * Returns SNAP_E_INPUT if the row does not fit the schema; it is then not added. The message has
 * the path and the reason ("bench[3].performance.median_ns: must be number, got null").
 * SNAP_E_NOMEM.
 */
snap_status results_add(results *r, const char *section, js *row, snap_err *err) SNAP_CHECK_RESULT;

/* Appends the elements of an array of rows, up to the first that fails. The array is taken over.
 * Errors: those of results_add(). */
snap_status results_add_all(results *r, const char *section, js *rows,
                            snap_err *err) SNAP_CHECK_RESULT;

/* The rows of a section, an array; borrowed. They may be changed in place until results_save().
 * NULL if a file without this section was loaded. */
js *results_section(const results *r, const char *section);

/* The whole document, borrowed. */
js *results_document(const results *r);

/* Sets "ended", checks the document, and writes the file atomically. Errors: those of
 * results_add(), and SNAP_E_IO. */
snap_status results_save(results *r, const char *path, snap_err *err) SNAP_CHECK_RESULT;

/* Checks and writes the document of a run that was interrupted: "ended" stays null, and
 * "interrupted" becomes @has, which states what the result has: "15 of 64 shapes". */
snap_status results_save_unfinished(results *r, const char *has, const char *path,
                                    snap_err *err) SNAP_CHECK_RESULT;

/* What the result of an interrupted run has, from results_save_unfinished(); NULL if the run was
 * not interrupted. Borrowed. */
const char *results_interrupted(const results *r);

/* Reads a result file; the caller owns *out. SNAP_E_INPUT: the message names the file and what is
 * wrong in it. SNAP_E_UNSUPPORTED: the file has a newer major version. SNAP_E_IO, SNAP_E_NOMEM. */
snap_status results_load(results **out, const char *path, snap_err *err) SNAP_CHECK_RESULT;

/* Like results_load(), but reads the @n bytes of @text. @name is the name of the text in
 * messages. */
snap_status results_parse(results **out, const char *text, size_t n, const char *name,
                          snap_err *err) SNAP_CHECK_RESULT;

/* Appends all rows of @from to @to. The "sources" of @to get the sources of @from or, if it has
 * none, its provenance. If both have a ceiling of the same name, origin and arm, the better one
 * is kept: the higher rate or the shorter time. So both files must be from one machine.
 * SNAP_E_NOMEM. */
snap_status results_join(results *to, const results *from, snap_err *err) SNAP_CHECK_RESULT;

/* The file that a FILE_or_DIR argument means. An existing file, or a name that ends in .json and is
 * no folder, is that file. Anything else is a run's folder, and the file is run.json in it. The
 * caller owns the path (free()). NULL: out of memory. */
char *results_file_of(const char *path);

/* ---- journal: the finished rows of a run, from which a killed run can continue ---- */

/* An append-only file of finished rows. It belongs to one configuration, and one process at a time
 * may have it open. The caller chooses the key of each row, e.g. the name of a cell. The key must
 * contain everything that a row must match to be used again, such as the kernel's hash. */
typedef struct results_journal results_journal;

/**
 * results_journal_open - open or create a journal
 *
 * @path:          e.g. RUN/journal; "<path>.lock" beside it is held while the journal is open
 * @config_sha256: hash of the configuration, or of the part of it that the rows depend on. NULL: a
 *                 journal of any configuration, which must exist
 *
 * An incomplete last line, left by a killed process, is dropped. Of rows with the same key the last
 * one counts. SNAP_E_USAGE: the journal has another configuration (the message says what to do).
 * SNAP_E_INPUT: a malformed line, or another version. SNAP_E_IO: also if another process has the
 * journal open. SNAP_E_NOMEM.
 */
snap_status results_journal_open(results_journal **out, const char *path, const char *config_sha256,
                                 snap_err *err) SNAP_CHECK_RESULT;

/* Reads a journal that must exist, without its lock: another process may be appending to it. No row
 * can be appended to *out. Errors as results_journal_open(). */
snap_status results_journal_read(results_journal **out, const char *path,
                                 snap_err *err) SNAP_CHECK_RESULT;

/* The finished row of a key, borrowed; NULL if there is none. */
const js *results_journal_find(const results_journal *j, const char *key);

bool results_journal_is_empty(const results_journal *j); /* whether no row is finished */

/* Appends a row and returns when it is on disk. The caller keeps @row. SNAP_E_IO, SNAP_E_NOMEM. */
snap_status results_journal_append(results_journal *j, const char *key, const js *row,
                                   snap_err *err) SNAP_CHECK_RESULT;

void results_journal_close(results_journal *j); /* NULL is allowed; the file stays */

/* Closes the journal and deletes its file and lock file; call it when the result file is written.
 * @j is closed even after an error. SNAP_E_IO. */
snap_status results_journal_remove(results_journal *j, snap_err *err) SNAP_CHECK_RESULT;

#endif
