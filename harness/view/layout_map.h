/* layout_map.h - maps of predicted layouts: the fastest layout for each number of GPUs, number of
 * sequences and context. `snapmla bench model --predict --gpus LIST` makes their rows. */
#ifndef SNAPMLA_HARNESS_VIEW_LAYOUT_MAP_H
#define SNAPMLA_HARNESS_VIEW_LAYOUT_MAP_H

#include "harness/view/model.h"

/* The most numbers on each axis of a map. */
enum { MAP_GPUS = 12, MAP_BATCHES = 12, MAP_CONTEXTS = 10, MAP_AXIS = 12 };

/* Different numbers, ascending. */
typedef struct {
    int64_t at[MAP_AXIS];
    int n;
    bool cut; /* there are more numbers, which are smaller */
} map_axis;

/* What is the same in all rows of a map. The model, the cache format and the other conditions are
 * those of @row. */
typedef struct {
    int file;
    const prediction_record *row;
    const char *network; /* between nodes; "" = no row has one */
} map_key;

/* A cell without a layout is @too_large if the sequences do not fit into the memory. Otherwise,
 * every layout has more replicas than sequences, or the cell was not predicted. */
typedef struct {
    const prediction_record *best; /* NULL = there is no layout */
    bool too_large;
} map_cell;

typedef struct {
    map_key key;
    map_axis gpus, batches, contexts;
    map_cell at[MAP_GPUS][MAP_BATCHES][MAP_CONTEXTS];
    map_cell largest[MAP_GPUS][MAP_CONTEXTS]; /* the largest batch that fits */
    bool has_largest;
} layout_map;

/* Finds the keys of all maps in the order of the files, at most @most of them. Returns their
 * number. Rows without a network belong to the maps of every network. */
size_t layout_map_keys(const report_model *m, map_key *out, size_t most);

/* Whether the maps differ in the cache format only. */
bool layout_map_same_but_arm(const map_key *a, const map_key *b);

/* Fills the map. If several rows belong to one cell, the fastest one is taken. */
void layout_map_fill(const report_model *m, const map_key *key, layout_map *out);

/* Whether the interval of another layout overlaps that of the fastest one. */
bool layout_map_is_tied(const prediction_record *best);

/* Appends the model and the conditions of a map: "deepseek-v3, weights in e4m3, network ib-ndr". In
 * a report of several files, the name of the file follows. */
void layout_map_text(const report_model *m, const map_key *key, buf *out);

#endif
