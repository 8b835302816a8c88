/* split_ranks.h - lets a test program start the ranks of split models (generator/local/split.h). */
#ifndef SNAPMLA_GENERATOR_TEST_SPLIT_RANKS_H
#define SNAPMLA_GENERATOR_TEST_SPLIT_RANKS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* From now on, split_open() starts this test program again with its suite @suite. The first test of
 * that suite must call split_ranks_follow(). */
void split_ranks_prepare(const char *suite);

/* In a process that split_open() has started: runs the rank, and ends the process. Otherwise it
 * does nothing. */
void split_ranks_follow(void);

/* Limits how much the address space of rank @rank may grow from now or from its start on, in bytes;
 * 0 = no limit. Rank 0 is this process. All ranks must belong to one model. */
void split_ranks_limit(int rank, int64_t bytes);

/* A rank that gets this signal has no memory from then on: all its allocations fail, where
 * failing_alloc.h works. */
enum { SPLIT_RANKS_NO_MEMORY = SIGUSR1 };

/* The ranks that are started from now on run in the folder @dir; NULL = in that of this process. */
void split_ranks_folder(const char *dir);

enum { SPLIT_RANKS_MOST = 8 };

/* Stores the ids of the processes that @pid has started. Returns their number. */
int split_ranks_of(pid_t pid, pid_t out[SPLIT_RANKS_MOST]);

/* Asserts that this process has no such processes. */
void split_ranks_expect_none(void);

enum { SPLIT_RANKS_CONTEXT = 512 };

/* Makes a folder with a tiny model, whose context is longer than that of the fixture, and a
 * tokenizer. Remove it with tiny_remove(). */
void split_ranks_model(char dir[64], const char *name);

/* Waits, at most 20 s, until a process that is no child of this one has ended. */
bool split_ranks_gone(pid_t pid);

#endif
