/* choice.cuh - chooses the cheapest of the three schedules of plan_step.cuh. */
#pragma once
#include "kernels/cuda/sched/step.cuh"

namespace {

enum kind { EQUAL, PIECES, LINE };

struct choice {
    kind kind;
    int piece; /* PIECES: size of a piece in tiles */
};

__device__ choice cheapest(const sequences &seqs, int width, int whole, int piece) {
    const int line = seqs.batch <= kMaxCut ? width + 2 * kFixedTiles + seqs.line : 1 << 30;
    const int pieces = piece ? piece + kFixedTiles + seqs.merge : 1 << 30;
    if (whole <= min(pieces, line))
        return {EQUAL, 0};
    return {pieces <= line ? PIECES : LINE, piece};
}

} // namespace
