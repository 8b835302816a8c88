/* tokenizing.h - measures how fast a checkpoint's tokenizer is on one core. A speed is reported
 * only if decoding returns the original text. */
#ifndef SNAPMLA_HARNESS_BENCH_TOKENIZING_H
#define SNAPMLA_HARNESS_BENCH_TOKENIZING_H

#include <stdint.h>

#include "base/buf.h"

typedef struct {
    int64_t bytes, tokens;
    double encode_mb_s, encode_tok_s; /* 1e6 bytes per second, tokens per second; from the median
                                         time of several passes */
    double decode_mb_s, decode_tok_s;
} tokenizing_row;

/* Appends about @bytes of random text: words drawn letter by letter in ten scripts, numbers,
 * punctuation of code, white space and emoji. Long words rarely occur twice. */
void tokenizing_text(uint64_t seed, size_t bytes, buf *out);

/* Measures how fast the tokenizer of a checkpoint encodes and decodes a text. @dir: folder of the
 * checkpoint; @text: [n]; @seconds: least measured time of each direction. SNAP_E_WRONG: decoding
 * does not return the text, for instance because it is not UTF-8. Also the errors of
 * tokenizer_open(), SNAP_E_NOMEM. */
snap_status tokenizing_bench(const char *dir, const char *text, size_t n, double seconds,
                             tokenizing_row *out, snap_err *err) SNAP_CHECK_RESULT;

#endif
