/* shipped_shapes.h - the shapes of the shipped configurations for `bench`, so that a command can
 * name a configuration instead of its shapes. */
#ifndef SNAPMLA_HARNESS_VIEW_SHIPPED_SHAPES_H
#define SNAPMLA_HARNESS_VIEW_SHIPPED_SHAPES_H

#include "base/arena.h"
#include "harness/bench/grid.h"

typedef struct {
    const char *name; /* as --config takes it */
    const bench_shape *shapes;
    int n;
} shipped_shapes;

/* Lists the configurations whose keys only name shapes, the scope, the distribution of the numbers
 * and how long a cell is timed. A configuration must name its shapes completely: by a list, or by
 * all four axes. Others are left out. The arena @mem owns the lists. *n is 0 if there are no
 * shipped files. False if memory is exhausted. */
bool shipped_shapes_list(arena *mem, shipped_shapes **out, size_t *n);

#endif
