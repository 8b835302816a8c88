/* layout.h - where the planes of a format lie. Only the files of this folder include this header.
 * Other code uses format.h. */
#ifndef SNAPMLA_KERNELS_FORMAT_LAYOUT_H
#define SNAPMLA_KERNELS_FORMAT_LAYOUT_H

#include "kernels/format/format.h"

/* How planes without stated offsets are laid out, in the order of cache_format_planes(). A plane
 * whose values all tokens share always has a pool of its own. */
typedef enum {
    LAYOUT_PLANAR,      /* one pool for each plane */
    LAYOUT_INTERLEAVED, /* one pool for all other planes; a token's values lie together in a
                           record */
    LAYOUT_PAGE,        /* one pool for all other planes; within a page, one plane after the
                           other */
} layout_order;

/* Sets pool, offset and stride of the planes of @f and its pools. Where a plane's offset or stride
 * is not negative, it is kept. @record: bytes of a token's record (LAYOUT_INTERLEAVED), and @page:
 * bytes of a page (not LAYOUT_PLANAR); 0: the smallest that has room. */
void layout_assign(cache_format *f, layout_order order, int64_t record, int64_t page);

/* Bytes that the plane's elements for one token, page or tensor take. */
int64_t layout_row_bytes(const cache_plane *p);

/* Whether the plane holds values for each token, for each page or for the whole tensor. */
cache_scale_per layout_per(const cache_format *f, const cache_plane *p);

/* The first byte of the plane for the token in @slot of @page. */
uint8_t *layout_at(const cache_format *f, const cache_bytes *b, const cache_plane *p, int64_t page,
                   int64_t slot);

#endif
