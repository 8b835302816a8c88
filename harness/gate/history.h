/* history.h - a file with the times of past runs. From it follow when the time of a cell changed,
 * and how much it varies from run to run. Each line is one run:
 *
 *   {"started","commit","machine",
 *    "cells":{"fp8 kernel H16 s1 b8 c8192 d512+64, normal, rotate":median_ns,...}}
 *
 * Lines are only appended. Only runs on the same machine form a series. */
#ifndef SNAPMLA_HARNESS_GATE_HISTORY_H
#define SNAPMLA_HARNESS_GATE_HISTORY_H

#include "harness/record/run.h"

typedef struct gate_history gate_history;

/* The name of a machine: the first 16 digits of the hash of the host's name, and the device. */
void history_machine(const results *r, char out[200]);
void history_machine_of(const origin_record *o, char out[200]);

/* The name of a bench row in a history: its arm, scope, shape, distributions, state of the cache
 * and mode. Names of distributions are cut to 24 characters. */
void history_cell_name(const cell_record *c, char out[160]);

/* Appends the times of a run's measured cells that have one. SNAP_E_IO, SNAP_E_NOMEM. */
snap_status history_append(const char *path, const results *r, snap_err *err) SNAP_CHECK_RESULT;

/* Reads the runs of @machine (NULL: the machine of the last line). The caller owns *out. If
 * @may_lack, a missing file is an empty history. SNAP_E_INPUT: the message names file and line.
 * SNAP_E_IO, SNAP_E_NOMEM. */
snap_status history_load(gate_history **out, const char *path, const char *machine, bool may_lack,
                         snap_err *err) SNAP_CHECK_RESULT;
void history_free(gate_history *h); /* NULL is allowed */
size_t history_runs(const gate_history *h);

/* Standard deviation of the logarithm of a cell's times since its last change; NAN with fewer than
 * 5 such times, and when out of memory. */
double history_spread(const gate_history *h, const char *cell);

/* Rows of kind "change" for the section `verdicts`, one for each change point: name, at (index of
 * the run, from 1), started, commit, ratio, baseline_ns, current_ns, p. The caller owns the array.
 * SNAP_E_NOMEM. */
snap_status history_changes(const gate_history *h, js **out, snap_err *err) SNAP_CHECK_RESULT;

#endif
