/* Checks the choice of experts (route() in rows.h) on a device. It has routers of models and odd
 * ones, and 1 to 100 rows.
 *   check_route        exits 1 at a failure
 *   check_route few    the cases with few numbers only, for compute-sanitizer
 *
 * Normalised rows and scores are compared with FP64 on the host. The choices must be those of
 * router_choose() for the device's scores. The lists of pairs must follow from the choices. */
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "generator/local/cuda/rows.h"
#include "kernels/cuda/test/device_memory.cuh"

using device::bf16;

namespace {

int failures;

struct shape {
    const char *name;
    int hidden, routed, zeros, shared, groups, kept, chosen;
    bool sigmoid, by_two, normalize, bias, message;
};

const shape shapes[] = {
    {"V3", 7168, 256, 0, 1, 8, 4, 8, true, true, true, true, false},
    {"V3, experts divided over ranks", 7168, 256, 0, 0, 8, 4, 8, true, true, true, true, true},
    {"LongCat", 6144, 512, 256, 0, 1, 1, 12, false, false, false, true, false},
    {"LongCat, experts divided", 6144, 512, 256, 0, 1, 1, 12, false, false, false, true, true},
    {"V2-Lite", 2048, 64, 0, 2, 1, 1, 6, false, false, false, false, false},
    {"V2", 5120, 160, 0, 2, 8, 3, 6, false, false, false, false, false},
    {"softmax, normalised", 2048, 96, 0, 0, 3, 2, 5, false, true, true, false, false},
    {"sigmoid, the best of each group", 1024, 128, 0, 1, 4, 2, 8, true, false, true, true, false},
    {"3 experts", 64, 3, 0, 0, 1, 1, 2, false, false, false, false, false},
    {"77 experts in 11 groups", 1032, 77, 0, 1, 11, 5, 7, true, true, true, false, false},
    {"33 groups", 512, 66, 0, 0, 33, 9, 8, true, true, true, true, false},
    {"64 chosen", 256, 200, 24, 3, 1, 1, 64, false, false, true, true, false},
    {"wide rows", 8200, 40, 0, 0, 4, 2, 4, true, true, true, true, false},
    {"the widest rows", 12000, 24, 0, 1, 1, 1, 2, false, false, false, false, false},
    {"the most experts", 256, 3072, 0, 0, 1, 1, 8, false, false, false, false, false},
};

uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

std::vector<float> random_numbers(size_t n, float spread, uint64_t seed) {
    std::vector<float> x(n);
    for (size_t i = 0; i < n; i++)
        x[i] = spread * (static_cast<float>(mix(seed + i) >> 40) * 0x1p-23f - 1);
    return x;
}

/* Waits about 20 us, and then copies @n numbers. route() may begin while this kernel waits. */
__global__ void write_late(const float *from, float *to, int64_t n) {
    device::let_next();
    device::wait_previous();
    for (const int64_t begin = clock64(); clock64() - begin < 30000;) {
    }
    for (int64_t i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        to[i] = from[i];
}

/* Operands and results of one call. */
struct test_case {
    const shape &s;
    int rows, experts, slots;
    std::vector<float> x, norm, gate, bias;
    float *source, *dev_x;
    std::vector<std::pair<void *, size_t>> results; /* device memory that route() writes */
    device::route_args args = {};

    test_case(const shape &s, int rows)
        : s(s), rows(rows), experts(s.routed + s.zeros), slots(s.chosen + s.shared),
          x(random_numbers(static_cast<size_t>(rows) * s.hidden, 2, 1)),
          norm(random_numbers(static_cast<size_t>(s.hidden), 1.5f, 1ull << 40)),
          gate(random_numbers(static_cast<size_t>(experts) * s.hidden, 0.06f, 2ull << 40)),
          bias(random_numbers(static_cast<size_t>(experts), 0.02f, 3ull << 40)) {
        if (rows > 2) /* scores of one row are NaN, and those of another are all equal */
            x[static_cast<size_t>(s.hidden) + 5] = INFINITY;
        for (int i = 0; rows > 3 && i < s.hidden; i++)
            x[static_cast<size_t>(3) * s.hidden + i] = 0;
        set_args();
    }

    template <typename T>
    T *result(size_t n) {
        T *p = allocate<T>(n);
        results.push_back({p, n * sizeof(T)});
        return p;
    }

    void set_args() {
        const size_t all = static_cast<size_t>(rows), pairs = all * slots,
                     lists = static_cast<size_t>(s.routed + s.shared);
        source = upload(x);
        args.x = dev_x = allocate<float>(x.size());
        args.rows = rows;
        args.hidden = s.hidden;
        args.norm = upload(norm);
        args.gate = upload(gate);
        args.bias = s.bias ? upload(bias) : nullptr;
        args.eps = 1e-6f;
        args.how = {experts, s.chosen, s.groups, s.kept, s.sigmoid, s.by_two, s.normalize, 2.5f};
        args.routed = s.routed;
        args.shared = s.shared;
        args.packed = result<bf16>(all * s.hidden);
        args.identity = s.zeros ? result<float>(all * s.hidden) : nullptr;
        args.message =
            s.message ? result<bf16>(all * device::message_row(s.hidden, s.chosen)) : nullptr;
        args.scores = result<float>(all * experts);
        args.chosen = result<int>(all * s.chosen);
        args.expert = result<int>(pairs);
        args.place = result<int>(pairs);
        args.weight = result<float>(pairs);
        args.first = result<int>(lists + 1);
        args.active = result<int>(lists);
        args.count = result<int>(1);
        args.row = result<int>(pairs);
        args.total = allocate<int>(lists);
        args.ticket = upload(std::vector<int>(all + 1));
    }

    /* Removes the rows and all results of an earlier call, and routes. The rows are written by a
     * kernel right before route(). */
    void run(const device::stream_of &stream) {
        for (const auto &r : results)
            CHECK(cudaMemsetAsync(r.first, 0xff, r.second, stream.stream));
        CHECK(cudaMemsetAsync(dev_x, 0xff, x.size() * sizeof(float), stream.stream));
        CHECK(device::launch(stream, write_late, dim3(8), 256, 0, source, dev_x,
                             static_cast<int64_t>(x.size())));
        CHECK(device::route(stream, args));
        CHECK(cudaStreamSynchronize(stream.stream));
    }
};

bool is_near(double got, double want, double bound) {
    return std::isnan(want) ? std::isnan(got) : fabs(got - want) <= bound;
}

/* Checks the normalised rows and the scores. An infinite number makes its row NaN. */
bool scores_are_right(const test_case &c, const std::vector<float> &scores) {
    const size_t hidden = static_cast<size_t>(c.s.hidden);
    const auto packed = download(c.args.packed, c.x.size());
    const auto identity = c.args.identity ? download(c.args.identity, c.x.size()) : c.x;
    bool ok = true;
    for (size_t r = 0; r < static_cast<size_t>(c.rows); r++) {
        std::vector<double> h(hidden);
        double squares = 0;
        for (size_t i = 0; i < hidden; i++)
            squares += static_cast<double>(c.x[r * hidden + i]) * c.x[r * hidden + i];
        const double scale =
            std::isinf(squares) ? NAN : 1 / sqrt(squares / c.s.hidden + c.args.eps);
        for (size_t i = 0; i < hidden; i++) {
            h[i] = scale * c.x[r * hidden + i] * c.norm[i];
            ok = ok && is_near(__bfloat162float(packed[r * hidden + i]), h[i], fabs(h[i]) / 250);
            if (c.args.identity)
                ok = ok && is_near(identity[r * hidden + i], h[i], fabs(h[i]) * 1e-6);
        }
        for (size_t e = 0; e < static_cast<size_t>(c.experts); e++) {
            double sum = 0, size = 0;
            for (size_t i = 0; i < hidden; i++) {
                const double term = h[i] * c.gate[e * hidden + i];
                sum += term;
                size += fabs(term);
            }
            ok = ok && is_near(scores[r * c.experts + e], sum, size * 1e-6);
        }
    }
    return ok;
}

/* The choice of one row. */
struct choice {
    std::vector<int> expert;
    std::vector<float> weight;
};

/* Reads the choice of a row from its message, or from the lists. */
choice choice_of(const test_case &c, size_t row) {
    const size_t k = static_cast<size_t>(c.s.chosen);
    if (!c.s.message) {
        const size_t at = row * c.slots;
        return {download(c.args.expert + at, k), download(c.args.weight + at, k)};
    }
    const bf16 *message = c.args.message + row * device::message_row(c.s.hidden, c.s.chosen);
    const int *expert = reinterpret_cast<const int *>(message + c.s.hidden);
    return {download(expert, k), download(reinterpret_cast<const float *>(expert + k), k)};
}

/* Messages begin with the normalised row. */
bool messages_have_rows(const test_case &c) {
    const size_t hidden = static_cast<size_t>(c.s.hidden);
    for (size_t r = 0; c.s.message && r < static_cast<size_t>(c.rows); r++) {
        const auto packed = download(c.args.packed + r * hidden, hidden);
        const auto sent =
            download(c.args.message + r * device::message_row(c.s.hidden, c.s.chosen), hidden);
        if (memcmp(packed.data(), sent.data(), hidden * sizeof(bf16)))
            return false;
    }
    return true;
}

/* The shared experts follow the chosen ones, each with weight 1. */
bool shared_are_right(const test_case &c, size_t row) {
    const size_t at = row * static_cast<size_t>(c.slots) + static_cast<size_t>(c.s.chosen),
                 n = static_cast<size_t>(c.s.shared);
    const auto expert = download(c.args.expert + at, n);
    const auto weight = download(c.args.weight + at, n);
    bool ok = true;
    for (size_t i = 0; i < n; i++)
        ok = ok && expert[i] == c.s.routed + static_cast<int>(i) && weight[i] == 1;
    return ok;
}

/* The choices are those of the CPU's function for the same scores. */
bool choices_are_right(const test_case &c, const std::vector<float> &scores) {
    const size_t k = static_cast<size_t>(c.s.chosen);
    bool ok = true;
    for (size_t r = 0; r < static_cast<size_t>(c.rows); r++) {
        std::vector<float> logits(scores.begin() + static_cast<int64_t>(r * c.experts),
                                  scores.begin() + static_cast<int64_t>((r + 1) * c.experts));
        std::vector<int32_t> expert(k);
        std::vector<float> weight(k);
        router_choose(&c.args.how, logits.data(), c.s.bias ? c.bias.data() : nullptr, expert.data(),
                      weight.data());
        const choice got = choice_of(c, r);
        const auto chosen = download(c.args.chosen + r * k, k);
        for (size_t i = 0; i < k; i++) {
            const int listed = expert[i] < c.s.routed ? expert[i] : PLACE_ZERO;
            ok = ok && chosen[i] == expert[i] && got.expert[i] == listed &&
                 is_near(got.weight[i], weight[i], fabs(weight[i]) * 1e-5);
        }
        ok = ok && shared_are_right(c, r);
    }
    return ok;
}

/* Each pair has a place of its own among those of its expert, and the place leads back to its row.
 * The active experts are those with pairs, the shared ones first. */
bool lists_are_right(const test_case &c) {
    const int experts = c.s.routed + c.s.shared;
    const size_t pairs = static_cast<size_t>(c.rows) * c.slots;
    const auto expert = download(c.args.expert, pairs), place = download(c.args.place, pairs);
    const auto first = download(c.args.first, static_cast<size_t>(experts) + 1);
    const auto count = download(c.args.count, 1);
    const auto row = download(c.args.row, pairs);
    std::vector<int> number(static_cast<size_t>(experts)), active;
    std::vector<bool> used(pairs);
    bool ok = first[0] == 0;
    for (size_t p = 0; p < pairs; p++) {
        const int e = expert[p], at = place[p];
        if (e < 0) {
            ok = ok && at == e;
            continue;
        }
        number[static_cast<size_t>(e)]++;
        const bool inside = at >= first[static_cast<size_t>(e)] &&
                            at < first[static_cast<size_t>(e) + 1] &&
                            !used[static_cast<size_t>(at)];
        ok = ok && inside && row[static_cast<size_t>(at)] == static_cast<int>(p) / c.slots;
        if (inside)
            used[static_cast<size_t>(at)] = true;
    }
    for (int e = 0; e < experts; e++)
        ok = ok && first[static_cast<size_t>(e) + 1] - first[static_cast<size_t>(e)] ==
                       number[static_cast<size_t>(e)];
    for (int e = 0; e < c.s.shared; e++)
        active.push_back(c.s.routed + e);
    for (int e = 0; e < c.s.routed; e++)
        if (number[static_cast<size_t>(e)])
            active.push_back(e);
    return ok && count[0] == static_cast<int>(active.size()) &&
           download(c.args.active, active.size()) == active;
}

/* The counters of thread blocks are zero again. */
bool counters_are_zero(const test_case &c) {
    for (int one : download(c.args.ticket, static_cast<size_t>(c.rows) + 1))
        if (one)
            return false;
    return true;
}

/* Routes twice, which must give the same bits. */
void check(const device::stream_of &s, const shape &shape, int rows) {
    test_case c(shape, rows);
    std::vector<float> scores[2];
    bool ok = true;
    for (std::vector<float> &one : scores) {
        c.run(s);
        one = download(c.args.scores, static_cast<size_t>(rows) * static_cast<size_t>(c.experts));
        ok = ok && counters_are_zero(c) && choices_are_right(c, one) && messages_have_rows(c) &&
             (shape.message || lists_are_right(c));
    }
    ok = ok && scores_are_right(c, scores[0]) &&
         !memcmp(scores[0].data(), scores[1].data(), scores[0].size() * sizeof(float));
    printf("%-32s %4d rows %s\n", shape.name, rows, ok ? "ok" : "FAILED");
    failures += !ok;
}

} // namespace

int main(int argc, char **argv) {
    const bool few = argc > 1 && !strcmp(argv[1], "few");
    setvbuf(stdout, nullptr, _IOLBF, 0);
    cudaDeviceProp prop;
    device::stream_of s = {};
    CHECK(cudaGetDeviceProperties(&prop, 0));
    CHECK(cudaStreamCreate(&s.stream));
    s.sms = prop.multiProcessorCount;
    s.hopper = prop.major == 9;
    for (const shape &one : shapes)
        for (int rows : {1, 2, 3, 7, 8, 9, 16, 17, 33, 64, 65, 100})
            if (!few || (one.hidden <= 1032 && (rows == 3 || rows == 9 || rows == 33)))
                check(s, one, rows);
    printf(failures ? "%d checks failed\n" : "all checks passed: ok\n", failures);
    return failures ? 1 : 0;
}
