/* burst.h - the read loops of the roofline probes, written with vec.h. */
#ifndef SNAPMLA_KERNELS_CPU_BURST_H
#define SNAPMLA_KERNELS_CPU_BURST_H

#include "kernels/cpu/isa.h"
#include "kernels/cpu/vec.h"
#include "kernels/formats.h"

/* Reads every byte once, from @streams places in turn, and prefetches @ahead bytes ahead. Both
 * numbers are compile-time constants at the call. @bytes is a multiple of @streams * 256. */
INLINE void burst_streams(const char *from, size_t bytes, int streams, size_t ahead) {
    enum { kUnroll = 4 };
    vi sum[kUnroll] = {0};
    size_t part = bytes / (size_t)streams;
    for (size_t at = 0; at < part; at += kUnroll * kLine)
        for (int s = 0; s < streams; s++) {
            UNROLL
            for (int u = 0; u < kUnroll; u++) {
                const char *line = from + (size_t)s * part + at + (size_t)u * kLine;
                if (ahead)
                    __builtin_prefetch(line + ahead);
                for (size_t i = 0; i < kLine; i += sizeof(vi))
                    sum[u] ^= *(const vi *)(const void *)(line + i);
            }
        }
    vf_keep((vf)(sum[0] ^ sum[1] ^ sum[2] ^ sum[3]));
}

static void burst_read(const void *from, size_t bytes, cpu_read_loop loop) {
    switch (loop) {
    case CPU_READ_PLAIN:
        burst_streams(from, bytes, 1, 0);
        break;
    case CPU_READ_NEAR:
        burst_streams(from, bytes, 1, 1024);
        break;
    case CPU_READ_FAR:
        burst_streams(from, bytes, 1, 8192);
        break;
    case CPU_READ_TWO:
        burst_streams(from, bytes, 2, 0);
        break;
    case CPU_READ_FOUR:
        burst_streams(from, bytes, 4, 0);
        break;
    default:
        burst_streams(from, bytes, 4, 2048);
        break;
    }
}

#endif
