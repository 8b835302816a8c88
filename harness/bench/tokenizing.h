/* tokenizing.h - how fast a checkpoint's tokenizer is, on one core. A speed counts only when
 * decoding gives the text back. */
#ifndef SNAPMLA_HARNESS_BENCH_TOKENIZING_H
#define SNAPMLA_HARNESS_BENCH_TOKENIZING_H

#include <stdint.h>

#include "base/buf.h"

typedef struct {
    int64_t bytes, tokens;
    double encode_mb_s, encode_tok_s; /* 1e6 bytes, tokens a second; median of several passes */
    double decode_mb_s, decode_tok_s;
} tokenizing_row;

/* Appends about @bytes of made-up text: words drawn letter by letter in ten scripts, numbers, code,
 * white space and emoji, so that no cache of pieces helps. */
void tokenizing_text(uint64_t seed, size_t bytes, buf *out);

/* @dir: of a checkpoint; @text [n]; @seconds: measured time of either direction. SNAP_E_WRONG where
 * decoding does not give the text back, e.g. because it is not UTF-8; what opening a tokenizer can
 * give. */
snap_status tokenizing_bench(const char *dir, const char *text, size_t n, double seconds,
                             tokenizing_row *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
