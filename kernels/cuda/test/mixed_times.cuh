/* mixed_times.cuh - measures both arms, as step_times.cuh does, on shapes outside the public grid
 * and on sequences of mixed lengths. Compares the times with the floors given in
 * docs/lab/2026-11-22-fp8-against-bf16.md. */
#pragma once
#include <cmath>
#include <cstring>

#include "kernels/cuda/test/step_times.cuh"

namespace {

/* A shape and the distribution of its lengths around @tokens. */
struct mixed_shape {
    int heads, s_q, batch, tokens;
    const char *how;
};

const mixed_shape mixed_shapes[] = {
    {16, 1, 64, 4096, "uniform"},     {16, 1, 128, 2048, "lognormal"},
    {16, 2, 32, 8192, "exponential"}, {16, 1, 16, 1024, "one-long"},
    {16, 1, 8, 300, "uniform"},       {8, 1, 100, 3000, "lognormal"},
    {1, 1, 64, 4096, "uniform"},      {3, 4, 13, 5000, "uniform"},
    {24, 3, 24, 2000, "exponential"}, {64, 1, 64, 4096, "uniform"},
    {64, 1, 128, 2048, "lognormal"},  {64, 2, 32, 8192, "exponential"},
    {64, 1, 16, 4096, "one-long"},    {64, 1, 8, 300, "uniform"},
    {64, 1, 100, 100, "uniform"},     {48, 1, 13, 7000, "lognormal"},
    {64, 4, 40, 3000, "uniform"},     {128, 1, 64, 4096, "uniform"},
    {128, 1, 128, 2048, "lognormal"}, {128, 2, 32, 4096, "exponential"},
    {128, 1, 16, 4096, "one-long"},   {128, 1, 8, 300, "uniform"},
    {100, 1, 13, 7000, "lognormal"},  {96, 1, 5, 12000, "uniform"},
    {128, 4, 10, 3000, "uniform"},    {128, 1, 256, 1000, "uniform"},
    {64, 1, 300, 700, "uniform"},     {16, 1, 512, 1500, "lognormal"},
    {32, 1, 1000, 800, "uniform"},    {64, 1, 5, 3333, "equal"},
    {100, 3, 13, 1111, "equal"},      {96, 2, 5, 20001, "equal"},
    {64, 1, 100, 129, "equal"},       {128, 1, 13, 64, "equal"},
    {16, 1, 100, 65, "equal"},        {64, 1, 1, 64, "equal"},
    {128, 1, 1, 100, "equal"},        {64, 1, 3, 1, "equal"},
    {16, 1, 2, 50000, "equal"},       {128, 1, 33, 8192, "equal"},
    {64, 1, 67, 8192, "equal"},       {64, 1, 133, 8192, "equal"},
    {128, 1, 67, 4096, "equal"},
};

std::vector<int32_t> lengths_of(const mixed_shape &s) {
    std::mt19937 rng(7);
    std::normal_distribution<double> normal;
    std::exponential_distribution<double> exponential;
    const auto drawn = [&](int b) -> int {
        if (!strcmp(s.how, "uniform"))
            return 1 + rng() % (2 * s.tokens - 1);
        if (!strcmp(s.how, "lognormal"))
            return std::min(8 * s.tokens, int(s.tokens * std::exp(normal(rng) - 0.5)));
        if (!strcmp(s.how, "exponential"))
            return std::min(12 * s.tokens, int(s.tokens * exponential(rng)));
        if (!strcmp(s.how, "one-long"))
            return b == s.batch / 2 ? s.tokens * s.batch / 2 : s.tokens / 2;
        return s.tokens;
    };
    std::vector<int32_t> lengths(s.batch);
    for (int b = 0; b < s.batch; b++)
        lengths[b] = std::max(1, drawn(b));
    return lengths;
}

struct mixed_times {
    double alone, served; /* us */
};

mixed_times time_arm(mla_backend *be, mla_precision p, const mixed_shape &s,
                     const std::vector<int32_t> &lengths) {
    const arm a = make_arm(be, p, s.heads, s.s_q, lengths);
    const auto us = time_in_turns(a, {attend, serve}, 15);
    release(a);
    return {us[0], us[1]};
}

/* Lower bound of the time in us, by bytes or by arithmetic. */
double floor_of(const mixed_shape &s, double tokens, double bytes, double tile) {
    return 1e-6 * tokens * std::max(bytes, tile * std::ceil(s.heads * s.s_q / 64.0));
}

void time_mixed(mla_backend *be, const mixed_shape &s) {
    const auto lengths = lengths_of(s);
    const double tokens = std::accumulate(lengths.begin(), lengths.end(), 0.0);
    const mixed_times bf16 = time_arm(be, MLA_BF16, s, lengths),
                      fp8 = time_arm(be, MLA_FP8, s, lengths);
    printf("%3d,%d,%4d,%-12s mean %6.0f longest %6d  BF16 %7.1f (%2.0f%%) FP8 %7.1f (%2.0f%%) "
           "speed-up %.2f  served %.1f %.1f %.2f%s\n",
           s.heads, s.s_q, s.batch, s.how, tokens / s.batch,
           *std::max_element(lengths.begin(), lengths.end()), bf16.alone,
           100 * floor_of(s, tokens, 244, 173) / bf16.alone, fp8.alone,
           100 * floor_of(s, tokens, 136.4, 95.5) / fp8.alone, bf16.alone / fp8.alone, bf16.served,
           fp8.served, bf16.served / fp8.served,
           fp8.alone > bf16.alone || fp8.served > bf16.served ? "  SLOWER" : "");
    fflush(stdout);
}

} // namespace
