/* arm_format.h - the cache format of a named arm (kernels/format), and its descriptor as result
 * files keep it. */
#ifndef SNAPMLA_HARNESS_BENCH_ARM_FORMAT_H
#define SNAPMLA_HARNESS_BENCH_ARM_FORMAT_H

#include "base/hash.h"
#include "harness/bench/kind.h"
#include "kernels/format/format.h"

typedef struct {
    cache_format format;
    char *json;            /* the descriptor: compact JSON with sorted keys; owned */
    char sha256[HASH_HEX]; /* hash of the descriptor */
} arm_format;

/**
 * arm_format_load - read the format of an arm
 *
 * @out:  the caller owns it, arm_format_free(); NULL on failure
 * @name: name of a shipped format, path of a JSON file, or the text of a descriptor, which begins
 *        with '{'
 *
 * Errors: those of cache_format_load() and js_parse(), SNAP_E_NOMEM.
 */
snap_status arm_format_load(arm_format **out, const char *name, int d_c, int d_r,
                            snap_err *err) SNAP_CHECK_RESULT;
void arm_format_free(arm_format *f); /* NULL is allowed */

/* Parses the descriptor @json of a result file. Messages call it @where. */
snap_status arm_format_parse(cache_format *out, const char *json, const char *where, int d_c,
                             int d_r, snap_err *err) SNAP_CHECK_RESULT;

/* The arithmetic of an arm that reads the format, which decides whether its products count at the
 * FP8 or at the BF16 rate: BENCH_FP8 if queries, content and probabilities are 8-bit floats. */
bench_kind arm_format_kind(const cache_format *f);

/* How the reference rounds P, and the bound that belongs to it. Formats whose P is e4m3 are judged
 * with exact probabilities, because a kernel may choose other scales for rounding P. */
ref_pv arm_format_pv(const cache_format *f);
judge_bound arm_format_bound(const arm_format *f);

#endif
