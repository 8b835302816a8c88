/* scale.h - chooses the scales and zero points of one part of a format. Only the files of this
 * folder include this header. */
#ifndef SNAPMLA_KERNELS_FORMAT_SCALE_H
#define SNAPMLA_KERNELS_FORMAT_SCALE_H

#include "kernels/format/format.h"

/* Rows of numbers: element d of row i is at[i * width + d]. */
typedef struct {
    const float *at;
    int64_t rows;
    int64_t width; /* numbers from one row to the next */
    int columns;
} scale_rows;

/* The scales of a part. One unit is a token, a page or the whole tensor. */
typedef struct {
    int64_t units;
    int64_t tokens_per_unit;
    int groups;     /* scales in each unit */
    float *value;   /* [units][groups] the scale as stored, without the second level */
    float *zero;    /* [units][groups] the zero points, integers; NULL: none */
    uint32_t *code; /* [units][groups] the stored codes of the scales */
    float tensor;   /* the second level; 1 if there is none */
} scale_set;

/* Values that all tokens of a cache share, to be taken over instead of chosen. */
typedef struct {
    const uint32_t *code; /* [groups] the codes, if the scales are per tensor; NULL: they are not */
    const float *zero;    /* [groups] the zero points; NULL: there are none */
    float tensor;         /* the second level; used if the scale has one */
} scale_given;

/* Chooses the scales of @part for @x, and if the scale is shared also for @also (at = NULL: none).
 * For a scale that is not stored, the set has one unit with one group, and `code` is NULL. @given
 * may be NULL: then all values are chosen. The caller releases @out. SNAP_E_NOMEM. */
snap_status scale_choose(scale_set *out, const cache_part *part, int page_tokens, scale_rows x,
                         scale_rows also, const scale_given *given,
                         snap_err *err) SNAP_CHECK_RESULT;
void scale_release(scale_set *s);

#endif
