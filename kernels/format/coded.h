/* coded.h - cache formats that a descriptor (format.h) cannot express. Each one is a function of
 * coded_row.h that replaces the content of a token by the values that the format would hold of it.
 * The RoPE part of a token is bf16. docs/formats.md says what the formats are and where they come
 * from. */
#ifndef SNAPMLA_KERNELS_FORMAT_CODED_H
#define SNAPMLA_KERNELS_FORMAT_CODED_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    CODED_KIVI,
    CODED_KVQUANT,
    CODED_RESIDUAL,
    CODED_ROTATEKV,
    CODED_TURBOQUANT
} coded_kind;

enum { CODED_MOST_TOKENS = 32, KIVI_TOKENS = 32, ROTATEKV_EXACT = 20 };

typedef struct {
    const char *name;
    coded_kind kind;
    double (*bytes)(int d_c, int setting); /* the bytes of the content of a token */
    int setting;                           /* bits for each number, or numbers in the residual */
    int tokens; /* number of neighbouring tokens that are rounded together, from positions that are
                   multiples of this number on. Fewer tokens at the end of a sequence stay as they
                   are. A power of two up to CODED_MOST_TOKENS */
    int exact;  /* tokens at the start of a sequence that stay as they are; 0 unless @tokens is 1 */
} coded_format;

/* NULL: no coded format has that name. */
const coded_format *coded_format_find(const char *name);

/* All formats in alphabetical order; the last one has no name. */
const coded_format *coded_formats(void);

/* Bytes of a token, with its RoPE part in bf16. Tokens that stay as they are do not count. */
double coded_token_bytes(const coded_format *f, int d_c, int d_r);

/* Rounds the content of the tokens of a sequence, @rows [tokens][width], whose first @d_c columns
 * are content. */
void coded_round_rows(const coded_format *f, float *rows, int64_t tokens, int width, int d_c);

#endif
