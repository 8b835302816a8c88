/* check_exchange - tests the one-shot exchanges with one GPU: every rank is a stream, and all
 * inboxes are in the memory of this device. Results are compared bit for bit with sums on the host,
 * in the order of the ranks. It exits with 1 on the first wrong result. The last line is a time,
 * which says nothing about a link between GPUs. */
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "kernels/cuda/exchange/one_shot.h"
#include "kernels/cuda/test/device_memory.cuh"

namespace {

const size_t kSizes[] = {16, 48, 1024, 4096 + 16, 16384, ONE_SHOT_BYTES};

float from_bf16(uint16_t b) {
    const uint32_t u = static_cast<uint32_t>(b) << 16;
    float x;
    memcpy(&x, &u, 4);
    return x;
}

uint16_t to_bf16(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return static_cast<uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

struct rank {
    one_shot_group g;
    cudaStream_t stream;
    std::vector<uint8_t> sent; /* the host's copy of `in` */
    uint8_t *in, *out;
    cudaGraphExec_t exec;
};

struct group {
    std::vector<rank> of;
    uint32_t *stop; /* the host's address of the stop word, which all ranks share */
    std::mt19937_64 rng;

    explicit group(int size) : of(size), rng(17 + size) {
        int blocks = 0; /* blocks of all ranks together */
        CHECK(one_shot_most_blocks(0, &blocks));
        CHECK(cudaHostAlloc(&stop, sizeof *stop, cudaHostAllocMapped));
        *stop = 0;
        for (int r = 0; r < size; r++) {
            rank &k = of[r];
            k = {};
            k.g.rank = r;
            k.g.size = size;
            k.g.most_blocks = blocks / size;
            CHECK(cudaStreamCreateWithFlags(&k.stream, cudaStreamNonBlocking));
            k.in = allocate<uint8_t>(ONE_SHOT_BYTES);
            k.out = allocate<uint8_t>(ONE_SHOT_BYTES);
            k.g.state = allocate<uint32_t>(ONE_SHOT_STATE);
            void *mapped = nullptr;
            CHECK(cudaHostGetDevicePointer(&mapped, stop, 0));
            k.g.stop = static_cast<const uint32_t *>(mapped);
        }
        for (int r = 0; r < size; r++) {
            void *inbox = allocate<uint8_t>(one_shot_inbox_bytes(size));
            for (rank &k : of)
                k.g.inbox[r] = inbox;
        }
        reset(0);
    }

    ~group() {
        for (rank &k : of) {
            if (k.exec)
                CHECK(cudaGraphExecDestroy(k.exec));
            CHECK(cudaStreamDestroy(k.stream));
            CHECK(cudaFree(k.in));
            CHECK(cudaFree(k.out));
            CHECK(cudaFree(k.g.state));
            CHECK(cudaFree(k.g.inbox[k.g.rank]));
        }
        CHECK(cudaFreeHost(stop));
    }

    /* Empties the inboxes, and sets the number of the last exchange. */
    void reset(uint32_t last) {
        const uint32_t state[ONE_SHOT_STATE] = {last, 0};
        for (rank &k : of) {
            CHECK(cudaMemset(k.g.inbox[k.g.rank], 0, one_shot_inbox_bytes(k.g.size)));
            CHECK(cudaMemcpy(k.g.state, state, sizeof state, cudaMemcpyHostToDevice));
        }
        CHECK(cudaDeviceSynchronize());
    }

    /* New numbers of different magnitudes on every rank. */
    void fill(size_t bytes, bool bf16) {
        std::normal_distribution<float> normal;
        for (rank &k : of) {
            k.sent.resize(bytes);
            for (size_t i = 0; i < bytes; i += bf16 ? 2 : 4) {
                const float x = ldexpf(normal(rng), static_cast<int>(rng() % 12) - 6);
                const uint16_t half = to_bf16(x);
                memcpy(&k.sent[i], bf16 ? static_cast<const void *>(&half) : &x, bf16 ? 2 : 4);
            }
            CHECK(cudaMemcpy(k.in, k.sent.data(), bytes, cudaMemcpyHostToDevice));
        }
        CHECK(cudaDeviceSynchronize());
    }

    void launch(size_t bytes, bool bf16, bool in_place = false) {
        for (rank &k : of)
            CHECK(one_shot_all_reduce(k.g, k.in, in_place ? k.in : k.out, bytes, bf16, k.stream));
    }

    std::vector<uint8_t> expected(size_t bytes, bool bf16) const {
        std::vector<uint8_t> sum(bytes);
        for (size_t i = 0; i < bytes; i += bf16 ? 2 : 4) {
            float total = 0;
            for (const rank &k : of) {
                uint16_t half;
                float x;
                memcpy(&half, &k.sent[i], 2);
                if (bf16)
                    x = from_bf16(half);
                else
                    memcpy(&x, &k.sent[i], 4);
                total = k.g.rank == 0 ? x : total + x;
            }
            const uint16_t half = to_bf16(total);
            memcpy(&sum[i], bf16 ? static_cast<const void *>(&half) : &total, bf16 ? 2 : 4);
        }
        return sum;
    }

    void check(const char *what, size_t bytes, bool bf16, bool in_place = false) {
        const std::vector<uint8_t> want = expected(bytes, bf16);
        CHECK(cudaDeviceSynchronize());
        for (const rank &k : of)
            if (download(in_place ? k.in : k.out, bytes) != want) {
                fprintf(stderr, "WRONG: %s: %zu bytes of %s, rank %d of %zu\n", what, bytes,
                        bf16 ? "bf16" : "fp32", k.g.rank, of.size());
                exit(1);
            }
    }
};

void check_sizes(group &g) {
    for (const bool bf16 : {false, true})
        for (const bool in_place : {false, true})
            for (const size_t bytes : kSizes) {
                g.fill(bytes, bf16);
                g.launch(bytes, bf16, in_place);
                g.check("one exchange", bytes, bf16, in_place);
            }
}

/* Launches long and short messages in turn without waiting for any of them. */
void check_many(group &g) {
    g.fill(16384, true);
    for (int i = 0; i < 500; i++) {
        g.launch(i % 3 ? 16 : 16384, true);
        g.launch(16384, true);
    }
    g.check("many exchanges", 16384, true);
}

/* The number of the exchange passes 2^32 - 1, after which it is 2. */
void check_wrap(group &g) {
    g.reset(0xfffffffdu);
    for (int i = 0; i < 5; i++) {
        g.fill(1024, false);
        g.launch(1024, false);
        g.check("the number of the exchange wraps", 1024, false);
    }
    g.reset(0);
}

void record(group &g, int operations, size_t bytes) {
    for (rank &k : g.of) {
        cudaGraph_t graph;
        CHECK(cudaStreamBeginCapture(k.stream, cudaStreamCaptureModeThreadLocal));
        for (int i = 0; i < operations; i++)
            CHECK(one_shot_all_reduce(k.g, k.in, k.out, bytes, true, k.stream));
        CHECK(cudaStreamEndCapture(k.stream, &graph));
        if (k.exec)
            CHECK(cudaGraphExecDestroy(k.exec));
        CHECK(cudaGraphInstantiate(&k.exec, graph, 0));
        CHECK(cudaGraphDestroy(graph));
    }
}

void check_graph(group &g) {
    record(g, 3, 4096); /* an odd number, so each replay begins with the other half */
    for (int i = 0; i < 50; i++) {
        g.fill(4096, true);
        for (rank &k : g.of)
            CHECK(cudaGraphLaunch(k.exec, k.stream));
        g.check("a graph", 4096, true);
    }
}

/* ---- all-gather and reduce-scatter ---- */

/* FP32 numbers on the device and on the host. */
struct numbers {
    float *at;
    std::vector<float> host;

    explicit numbers(size_t n) : at(allocate<float>(n)), host(n) {
    }
    void draw(std::mt19937_64 &rng) {
        std::normal_distribution<float> normal;
        for (float &x : host)
            x = ldexpf(normal(rng), static_cast<int>(rng() % 12) - 6);
        CHECK(cudaMemcpy(at, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
    }
};

void expect_same(const char *what, size_t bytes, const rank &k, const float *got,
                 const std::vector<float> &want) {
    const std::vector<float> have = download(got, want.size());
    if (memcmp(have.data(), want.data(), want.size() * sizeof(float)) == 0)
        return;
    fprintf(stderr, "WRONG: %s: %zu bytes, rank %d of %d\n", what, bytes, k.g.rank, k.g.size);
    exit(1);
}

/* @gap: bytes between the parts of the ranks. */
void check_gather(group &g, size_t bytes, size_t gap) {
    const size_t n = bytes / 4, stride = (bytes + gap) / 4, size = g.of.size();
    std::vector<numbers> mine, all;
    std::vector<float> want(size * stride);
    for (size_t r = 0; r < size; r++) {
        mine.emplace_back(n);
        mine[r].draw(g.rng);
        all.emplace_back(size * stride);
        CHECK(cudaMemset(all[r].at, 0, size * stride * sizeof(float)));
        std::copy(mine[r].host.begin(), mine[r].host.end(), want.begin() + r * stride);
    }
    CHECK(cudaDeviceSynchronize());
    for (size_t r = 0; r < size; r++)
        CHECK(one_shot_gather(g.of[r].g, mine[r].at, all[r].at, bytes, stride * 4, false,
                              g.of[r].stream));
    CHECK(cudaDeviceSynchronize());
    for (size_t r = 0; r < size; r++) {
        expect_same("all-gather", bytes, g.of[r], all[r].at, want);
        CHECK(cudaFree(mine[r].at));
        CHECK(cudaFree(all[r].at));
    }
}

void check_scatter(group &g, size_t bytes, size_t gap) {
    const size_t n = bytes / 4, stride = (bytes + gap) / 4, size = g.of.size();
    std::vector<numbers> parts, x;
    for (size_t r = 0; r < size; r++) {
        parts.emplace_back(size * stride);
        parts[r].draw(g.rng);
        x.emplace_back(n);
        x[r].draw(g.rng);
    }
    CHECK(cudaDeviceSynchronize());
    for (size_t r = 0; r < size; r++)
        CHECK(one_shot_scatter_add(g.of[r].g, parts[r].at, x[r].at, bytes, stride * 4, false,
                                   g.of[r].stream));
    CHECK(cudaDeviceSynchronize());
    for (size_t r = 0; r < size; r++) {
        std::vector<float> want(n);
        for (size_t i = 0; i < n; i++) {
            float sum = parts[0].host[r * stride + i];
            for (size_t s = 1; s < size; s++)
                sum += parts[s].host[r * stride + i];
            want[i] = x[r].host[i] + sum;
        }
        expect_same("reduce-scatter", bytes, g.of[r], x[r].at, want);
    }
    for (size_t r = 0; r < size; r++) {
        CHECK(cudaFree(parts[r].at));
        CHECK(cudaFree(x[r].at));
    }
}

/* Checks sums that are added to numbers of the rank. Several launches follow each other without a
 * wait in between. @overlap: each launch may begin before the previous one has ended, as in a step
 * of a model. Then all of them can be on the device at the same time, so each has fewer blocks. */
void check_add(group &g, size_t bytes, bool overlap) {
    enum { kTimes = 5 };
    const size_t n = bytes / 4, size = g.of.size();
    std::vector<numbers> part, x;
    for (size_t r = 0; r < size; r++) {
        part.emplace_back(n);
        part[r].draw(g.rng);
        x.emplace_back(n);
        x[r].draw(g.rng);
    }
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < kTimes; i++)
        for (size_t r = 0; r < size; r++) {
            one_shot_group of = g.of[r].g;
            of.most_blocks /= overlap ? kTimes : 1;
            CHECK(one_shot_add(of, part[r].at, x[r].at, 0.75f, bytes, overlap, g.of[r].stream));
        }
    CHECK(cudaDeviceSynchronize());
    for (size_t r = 0; r < size; r++) {
        std::vector<float> want = x[r].host;
        for (size_t i = 0; i < n; i++) {
            float sum = part[0].host[i];
            for (size_t s = 1; s < size; s++)
                sum += part[s].host[i];
            for (int t = 0; t < kTimes; t++)
                want[i] = fmaf(0.75f, sum, want[i]);
        }
        expect_same(overlap ? "added sums, launches overlap" : "added sums", bytes, g.of[r],
                    x[r].at, want);
    }
    for (size_t r = 0; r < size; r++) {
        CHECK(cudaFree(part[r].at));
        CHECK(cudaFree(x[r].at));
    }
}

/* Compares a BF16 number with the exact one. A norm in FP32 may be rounded to a neighbour of the
 * nearest BF16 number. */
bool is_near(uint16_t got, double want) {
    const double bound = std::max(std::abs(want) * 0x1p-7, 0x1p-120);
    return std::abs(static_cast<double>(from_bf16(got)) - want) <= bound;
}

/* Checks sums that are added to rows which are then normalised: the rows bit for bit, the norms
 * against FP64. */
void check_norm(group &g, int rows, int width, bool overlap) {
    const size_t n = static_cast<size_t>(rows) * width, size = g.of.size();
    const float eps = 1e-6f, factor = 0.75f, scale = 1.5f;
    std::vector<numbers> part, x;
    numbers weight(width);
    std::vector<uint16_t *> normed;
    weight.draw(g.rng);
    for (size_t r = 0; r < size; r++) {
        part.emplace_back(n);
        part[r].draw(g.rng);
        x.emplace_back(n);
        x[r].draw(g.rng);
        normed.push_back(allocate<uint16_t>(n));
    }
    CHECK(cudaDeviceSynchronize());
    for (size_t r = 0; r < size; r++)
        CHECK(one_shot_add_norm(g.of[r].g, part[r].at, x[r].at, factor,
                                {weight.at, eps, scale, normed[r], rows, width}, overlap,
                                g.of[r].stream));
    CHECK(cudaDeviceSynchronize());
    for (size_t r = 0; r < size; r++) {
        const std::vector<uint16_t> got = download(normed[r], n);
        std::vector<float> want = x[r].host;
        for (size_t i = 0; i < n; i++) {
            float sum = part[0].host[i];
            for (size_t s = 1; s < size; s++)
                sum += part[s].host[i];
            want[i] = fmaf(factor, sum, want[i]);
        }
        expect_same("sums of normalised rows", n * 4, g.of[r], x[r].at, want);
        for (int row = 0; row < rows; row++) {
            const float *of = &want[static_cast<size_t>(row) * width];
            double squares = 0;
            for (int i = 0; i < width; i++)
                squares += static_cast<double>(of[i]) * of[i];
            for (int i = 0; i < width; i++) {
                const double norm =
                    of[i] / std::sqrt(squares / width + eps) * scale * weight.host[i];
                if (is_near(got[static_cast<size_t>(row) * width + i], norm))
                    continue;
                fprintf(stderr, "WRONG: norm: %d rows of %d, rank %zu of %zu\n", rows, width, r,
                        size);
                exit(1);
            }
        }
    }
    for (size_t r = 0; r < size; r++) {
        CHECK(cudaFree(part[r].at));
        CHECK(cudaFree(x[r].at));
        CHECK(cudaFree(normed[r]));
    }
    CHECK(cudaFree(weight.at));
}

/* Rows whose threads have one, two or three units, and rows that do not fill the last warp. */
void check_norms(group &g, bool overlap) {
    for (const int width : {4, 132, 2048, 6144, 7168, 12000}) {
        check_norm(g, 1, width, overlap);
        check_norm(g, 8, width, overlap);
    }
}

/* Checks gathers and scatters in turn with sums, as in a step of a model. */
void check_parts(group &g) {
    for (const size_t bytes : kSizes)
        for (const size_t gap : {size_t(0), size_t(32)}) {
            check_gather(g, bytes, gap);
            g.fill(1024, false);
            g.launch(1024, false);
            g.check("a sum between other exchanges", 1024, false);
            check_scatter(g, bytes, gap);
        }
}

/* A kernel that waits for a missing rank ends when the stop word is set. */
void check_stop(group &g) {
    const rank &k = g.of[0];
    CHECK(one_shot_all_reduce(k.g, k.in, k.out, 1024, true, k.stream));
    if (cudaStreamQuery(k.stream) != cudaErrorNotReady) {
        fprintf(stderr, "WRONG: an exchange ended without the other ranks\n");
        exit(1);
    }
    *static_cast<volatile uint32_t *>(g.stop) = 1;
    CHECK(cudaStreamSynchronize(k.stream));
    *static_cast<volatile uint32_t *>(g.stop) = 0;
    g.reset(0);
}

void check_refused(group &g) {
    one_shot_group many = g.of[0].g, no_blocks = many;
    many.size = ONE_SHOT_RANKS + 1;
    no_blocks.most_blocks = 0;
    const rank &k = g.of[0];
    for (const size_t bytes : {size_t(0), size_t(8), size_t(ONE_SHOT_BYTES + 16)})
        if (one_shot_all_reduce(k.g, k.in, k.out, bytes, true, k.stream) != cudaErrorInvalidValue)
            exit(1);
    for (const one_shot_group &wrong : {many, no_blocks})
        if (one_shot_all_reduce(wrong, k.in, k.out, 16, true, k.stream) != cudaErrorInvalidValue)
            exit(1);
    for (const size_t stride : {size_t(16), size_t(40)}) /* less than the part; no whole unit */
        if (one_shot_gather(k.g, k.in, k.out, 32, stride, false, k.stream) != cudaErrorInvalidValue)
            exit(1);
    const one_shot_norm no_unit = {nullptr, 0, 1, nullptr, 1, 6},
                        long_row = {nullptr, 0, 1, nullptr, 1, 12292},
                        many_rows = {nullptr, 0, 1, nullptr, 129, 4096};
    for (const one_shot_norm &wrong : {no_unit, long_row, many_rows})
        if (one_shot_add_norm(k.g, nullptr, nullptr, 1, wrong, false, k.stream) !=
            cudaErrorInvalidValue)
            exit(1);
}

void time_graph(group &g) {
    enum { kOperations = 32, kReplays = 20 };
    record(g, kOperations, 16384);
    cudaEvent_t from, to;
    float ms = 0;
    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
    CHECK(cudaEventRecord(from, g.of[0].stream));
    for (int i = 0; i < kReplays; i++)
        for (rank &k : g.of)
            CHECK(cudaGraphLaunch(k.exec, k.stream));
    CHECK(cudaEventRecord(to, g.of[0].stream));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaEventElapsedTime(&ms, from, to));
    printf("16 KB between %zu streams of one device, in a graph: %.2f us\n", g.of.size(),
           static_cast<double>(ms) * 1e3 / (kOperations * kReplays));
}

} // namespace

int main() {
    /* One hardware queue for each stream. With fewer, a rank's kernel could be queued after the
     * kernel of a rank that waits for it. */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    int major = 0;
    CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    const bool can_overlap = major >= 9; /* programmatic dependent launch */
    for (const int size : {1, 2, 3, 8}) {
        group g(size);
        check_sizes(g);
        check_parts(g);
        for (const size_t bytes : kSizes)
            for (int overlap = 0; overlap <= (can_overlap ? 1 : 0); overlap++)
                check_add(g, bytes, overlap == 1);
        for (int overlap = 0; overlap <= (can_overlap ? 1 : 0); overlap++)
            check_norms(g, overlap == 1);
        check_wrap(g);
        printf("%d ranks ok\n", size);
    }
    group two(2);
    check_many(two);
    check_graph(two);
    check_refused(two);
    check_stop(two);
    printf("many exchanges, graphs, refusals and the stop word ok\n");
    time_graph(two);
    return 0;
}
