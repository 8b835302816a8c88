/* sched.h - the schedule of one step: splits sequences into items and assigns items to parts.
 *
 * A part is the work of one CTA (or of one CTA for each tile of a sequence's rows). It
 * consists of consecutive items. An item consists of consecutive tiles of tokens of one sequence.
 * If a sequence is a single item, its result is final. If it is split into several items, each item
 * stores a partial result in a slot of the split-KV workspace. The partial results are merged by
 * the parts that computed them, by parts without items (sm90_fp8), or by combine.
 *
 * The cost of an item is the number of its tiles plus kFixedTiles. Unless the number of splits is
 * fixed, the device compares up to three schedules (plan_step.cuh) and takes the cheapest:
 *   whole    no sequence is split
 *   pieces   sequences are split into items of about equal size; a part gets at most one item
 *   line     the sequences are laid end to end and the line is cut into parts of about equal cost
 * Splitting adds the cost of a merge (sched_tile). The code says `cut` for split. */
#ifndef SNAPMLA_KERNELS_CUDA_SCHED_H
#define SNAPMLA_KERNELS_CUDA_SCHED_H

#include <cstdint>
#include <cuda_runtime_api.h>

/* The unit of a kernel's items, and the cost of merges in that unit. */
struct sched_tile {
    int tokens; /* tokens per tile, a power of two */
    int merge;  /* cost of a merge for a part, in tiles, if sequences are split into pieces */
    int line;   /* cost of a merge for a part, in tiles, in schedule "line", where a part may merge
                   two sequences */

    sched_tile(int tokens = 0, int merge = 3, int line = 6)
        : tokens(tokens), merge(merge), line(line) {
    }
};

/* What the host knows about the size of a step. The lengths are on the device. */
struct sched_room {
    int64_t sequences, pages; /* number of sequences; upper bound of the pages of one sequence */
};

/* How a kernel distributes a step over a device. */
struct decode_grid {
    sched_tile tile;
    int parts;     /* parts of the schedule: each has one CTA per row tile */
    int tile_rows; /* rows per CTA; 0: the kernel has only one tile height */
};

struct alignas(16) sched_item {
    int seq, tokens;          /* the sequence, and its length, clamped to 0..max_tokens */
    int tile_begin, tile_end; /* equal if there are no tiles */
    int slot;                 /* slot of the partial result; -1: the item is a whole sequence. In a
                                 part without items: see sched_part */
    int first_slot, items;    /* first slot and number of items of the sequence, if it is split */
    int mergers;              /* for merge/fp8_few_merge.cuh: number of parts without items that
                                 merge the sequence; 0: its own parts do, if it is split */
};

/* The items first .. last - 1. The record also contains a copy of the first item, and the block
 * table's entries of that item's first two pages. This saves two dependent reads before work can
 * begin. */
struct alignas(16) sched_part {
    int first, last;
    int page[2]; /* -1: not known, or no such page */
    /* In a part without items, if head.mergers > 0: the sequence that this part helps to merge. Its
     * share is number slot - first_slot of `mergers`. */
    sched_item head;
};

struct sched_cut {
    int seq;
    int slot, items; /* first slot, and number of items; their slots are consecutive */
};

/* The schedule of one step. Device memory. */
struct sched_plan {
    sched_item *items; /* [sched_max_items()] ordered by sequence and tile */
    sched_part *parts; /* [parts] */
    sched_cut *cuts;   /* [batch] the split sequences, in order */
    int *cut_count;    /* [1] number of split sequences */
};

/* The largest number of items. @splits: 0 = the cheapest schedule; k >= 1 = every sequence is split
 * into k about equal items (fewer if it has fewer tiles), so that a row does not depend on the
 * other sequences. */
int sched_max_items(int batch, int parts, int splits);

/* Enqueues the computation of the schedule on the device. Lengths are clamped to 0..max_tokens.
 * @block_table: [batch][table_width], pages of 64 tokens; if null, the parts' records contain no
 * pages. cudaErrorInvalidValue: @parts is not in 1..1023. */
cudaError_t sched_launch(const sched_plan &plan, const int *seqlens, int batch, int max_tokens,
                         const sched_tile &tile, int parts, int splits, cudaStream_t stream,
                         const int *block_table = nullptr, int table_width = 0);

#endif
