/* sched.h - who does what in one step: sequences cut into items, items dealt to parts.
 *
 * A part is the work of one resident CTA (or of one CTA for each tile of a sequence's rows). It
 * takes a contiguous run of items, an item a contiguous run of tiles of one sequence. A
 * sequence that is one item gets its result at once; a cut one leaves partial results in slots, to
 * be merged by those who computed them or by parts without items (sm90_fp8), or by combine.
 *
 * The cost of an item is its tiles and kFixedTiles. Three plans are compared on the device: whole
 * sequences dealt out, every sequence in equal pieces with a part each, and the line of all tiles cut at
 * equal costs; a cut costs a merge (sched_tile). */
#ifndef SNAPMLA_KERNELS_CUDA_SCHED_H
#define SNAPMLA_KERNELS_CUDA_SCHED_H

#include <cstdint>
#include <cuda_runtime_api.h>

/* What a kernel's items count in. */
struct sched_tile {
    int tokens; /* a power of two */
    int merge;  /* what merging a sequence's pieces costs a part, in tiles */
    int line;   /* what the line's cuts cost one, which may have the ends of two sequences */

    sched_tile(int tokens = 0, int merge = 3, int line = 6)
        : tokens(tokens), merge(merge), line(line) {
    }
};

/* What the host knows of a step, whose lengths are on the device. */
struct sched_room {
    int64_t sequences, pages; /* of a sequence at most */
};

/* How a kernel spreads a step over a device. */
struct decode_grid {
    sched_tile tile;
    int parts;     /* CTAs that take work of their own */
    int tile_rows; /* of a sequence that a CTA takes; 0: the kernel has but one way */
};

struct alignas(16) sched_item {
    int seq, tokens;          /* the sequence and its length, clamped */
    int tile_begin, tile_end; /* equal for an empty sequence */
    int slot;                 /* where the partial result goes; -1: the item is a whole sequence */
    int first_slot, items;    /* the slots of the sequence, if it is cut */
    int mergers;              /* parts without items that may merge them; 0: there are none */
};

/* Items first .. last - 1. The first of them and the block table's entries for its first pages stand
 * here again: two reads less, one after the other, before work can begin. */
struct alignas(16) sched_part {
    int first, last;
    int page[2]; /* -1: not known */
    /* Of no items: if it has mergers, the sequence that this part may merge, as the one number
     * slot - first_slot of them. */
    sched_item head;
};

struct sched_cut {
    int seq;
    int slot, items; /* its slots follow each other */
};

/* The metadata of one step, device memory. */
struct sched_plan {
    sched_item *items; /* [sched_max_items()] ordered by sequence and tile */
    sched_part *parts; /* [parts] */
    sched_cut *cuts;   /* [batch] the sequences that were cut, in order */
    int *cut_count;    /* [1] how many */
};

/* @splits: 0 = as the costs say, k >= 1 = each sequence into k equal items (fewer where it has fewer
 * tiles), which makes a row independent of its neighbours. */
int sched_max_items(int batch, int parts, int splits);

/* Lengths are read on the device and clamped to 0..max_tokens. @block_table: [batch][table_width], of
 * pages of 64 tokens; null leaves the pages of parts unknown. */
cudaError_t sched_launch(const sched_plan &plan, const int *seqlens, int batch, int max_tokens,
                         const sched_tile &tile, int parts, int splits, cudaStream_t stream,
                         const int *block_table = nullptr, int table_width = 0);

#endif
