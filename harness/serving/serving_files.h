/* serving_files.h - the files of a serving benchmark's RUN folder (serving_run.h). */
#ifndef SNAPMLA_HARNESS_SERVING_SERVING_FILES_H
#define SNAPMLA_HARNESS_SERVING_SERVING_FILES_H

#include "base/fs.h"
#include "base/hash.h"
#include "harness/record/results.h"
#include "harness/serving/answers.h"

typedef struct {
    const char *dir; /* borrowed */
    results_journal *journal;
    fs_log lines, answers, log;   /* `answers` is open only if answers are stored */
    buf pending, pending_answers; /* lines that are not written yet */
    int64_t written;              /* requests since the last serving_files_finish() */
    int64_t bytes, answer_bytes;  /* sizes of the files up to the end of the last complete block */
} serving_files;

/* Opens no file. serving_files_close() closes files and frees what the struct owns. */
serving_files serving_files_make(const char *dir);
void serving_files_close(serving_files *f);

/* Two kinds of keys of the journal. (serving_prompts.c and serving_search.c have others.) One is
 * for the part of a run: {"part": "1/2", "version", "config"}. The other is for a block that is
 * complete: {"bytes", "answer_bytes", "requests"}, the sizes of requests.jsonl and, if answers are
 * stored, of answers.jsonl after it, and the number of its requests. */
#define SERVING_PART "part"
enum { SERVING_BLOCK_KEY = 64 };
void serving_block_key(char key[SERVING_BLOCK_KEY], int point, int arm, int block);

/* The hash of the options that must be equal in all parts of a run. SNAP_E_NOMEM. */
snap_status serving_files_settings(const js *config, char hash[HASH_HEX],
                                   snap_err *err) SNAP_CHECK_RESULT;

/* Notes in the journal, once, which part of a run the folder has. @part: "1/2". */
snap_status serving_files_put_part(serving_files *f, const js *config, const char *part,
                                   const char *version, snap_err *err) SNAP_CHECK_RESULT;

/* Creates the folder, and opens the journal and the log. @config: the resolved options; all but
 * `out`, `meet`, `slo`, `gpus` and `margin` must be those of the run that is continued. Errors of
 * results_journal_open(). */
snap_status serving_files_open(serving_files *f, const js *config, snap_err *err) SNAP_CHECK_RESULT;

/**
 * serving_files_resume - open requests.jsonl and answers.jsonl, without what belongs to no complete
 * block
 *
 * @answers: answers are stored
 * @points, @arms, @blocks: those of the run
 *
 * SNAP_E_INPUT if a file is shorter than the journal says; SNAP_E_IO; SNAP_E_NOMEM.
 */
snap_status serving_files_resume(serving_files *f, bool answers, int points, int arms, int blocks,
                                 snap_err *err) SNAP_CHECK_RESULT;

/* Whether a block is complete. */
bool serving_files_has(const serving_files *f, int point, int arm, int block);

/* Adds a request, and its answer if answers are stored and it has one. */
snap_status serving_files_add(serving_files *f, const serving_request *r, const task_problem *p,
                              const chat_answer *a, snap_err *err) SNAP_CHECK_RESULT;

/* Notes that a block of these arms is complete. Returns when that is on disk. */
snap_status serving_files_finish(serving_files *f, int point, const int *arms, int n, int block,
                                 snap_err *err) SNAP_CHECK_RESULT;

/* Drops what belongs to no complete block, after a run was interrupted. Errors of
 * serving_files_resume(). */
snap_status serving_files_drop_incomplete(serving_files *f, snap_err *err) SNAP_CHECK_RESULT;

/* "RUN/name"; free() it. NULL: out of memory. */
char *serving_files_path(const serving_files *f, const char *name);

#endif
