/* Checks products of e4m3 weights on a Hopper device (codes.h), and measures their times.
 *   check_codes        compares with FP64 on the host, and exits 1 at a failure
 *   check_codes time   times for the sizes of DeepSeek-V3, beside those of BF16 weights
 *                      and those of cuBLASLt's FP8 products
 *
 * gemm_few_codes() must differ from the exact product of x and the unrounded weights by rounding
 * errors of FP32 only. quantise_rows() and rows_to_fp16() must have the bits of the host.
 * gemm_many_codes(), gemm_expert_codes() and gemm_stream_k() may differ from the exact product of
 * the codes by what the tensor cores lose in the sums of 128 products: about 13 bits of each
 * product and sum remain. */
#include <cstring>

#include "generator/local/cuda/maps.h"
#include "generator/test/cuda/code_case.cuh"
#include "generator/test/cuda/code_times.cuh"

using namespace codes;
using device::bf16;

namespace {

int failures;

void report(const char *what, bool ok) {
    printf("%-72s %s\n", what, ok ? "ok" : "FAILED");
    failures += !ok;
}

/* As test_case::chosen: the experts have the numbers of rows of varied_rows. */
enum { VARIED = -1 };

/* Fewer and more rows than those of each width of gemm_expert_codes(), and of one tile. */
const int varied_rows[] = {0,  1,   16,  17,  31,  33,  48,  50,  64,  79, 81, 96,
                           97, 112, 113, 128, 129, 144, 145, 160, 161, 0,  331};

/* Experts and the rows that each has. */
struct lists {
    std::vector<int> first, active, row;
    std::vector<int> place; /* [rows][places] the pairs of each row, then -1 */
    int places;
    device::expert_list dev;

    /* Each row chooses @chosen of the experts. Expert 1 has no row, if there are others. */
    lists(int experts, int rows, int chosen, uint64_t seed) {
        std::vector<std::vector<int>> of(static_cast<size_t>(experts));
        for (int e = 0; e < experts && chosen == VARIED; e++)
            for (int i = 0; i < varied_rows[e]; i++)
                of[static_cast<size_t>(e)].push_back(
                    static_cast<int>(mix(seed + 1000 * e + i) % rows));
        for (int i = 0; i < rows; i++)
            for (int c = 0, at = static_cast<int>(mix(seed + i) % experts); c < chosen; at++)
                if (at % experts != 1 || experts == 1) {
                    of[static_cast<size_t>(at % experts)].push_back(i);
                    c++;
                }
        for (int e = 0; e < experts; e++) {
            first.push_back(static_cast<int>(row.size()));
            if (!of[static_cast<size_t>(e)].empty())
                active.push_back(e);
            row.insert(row.end(), of[static_cast<size_t>(e)].begin(),
                       of[static_cast<size_t>(e)].end());
        }
        first.push_back(static_cast<int>(row.size()));
        const std::vector<int> count = {static_cast<int>(active.size())};
        dev = {upload(first), upload(active), upload(count), upload(row), 0, 0, false};
        find_places(rows);
    }

    void find_places(int rows) {
        std::vector<std::vector<int>> of(static_cast<size_t>(rows));
        for (size_t i = 0; i < row.size(); i++)
            of[static_cast<size_t>(row[i])].push_back(static_cast<int>(i));
        size_t most = 0;
        for (const auto &pairs : of)
            most = std::max(most, pairs.size());
        places = static_cast<int>(most);
        for (auto &pairs : of) {
            pairs.resize(most, -1);
            place.insert(place.end(), pairs.begin(), pairs.end());
        }
    }
};

struct test_case {
    const char *name;
    int rows, n, k;
    device::gemm_end end;
    int experts, chosen; /* 0: no lists; chosen may be VARIED */
    int gap;             /* numbers between the rows of x */
};

/* Rows for rows_to_fp16(). */
struct fp16_shape {
    int rows, count, k, pitch; /* count: rows that are converted */
};

/* A product and its result. */
struct subject {
    test_case t;
    weights w;
    rows x;
    std::vector<int> group_of, row_of; /* for each row of y: its expert, and its row of x */
    std::vector<int> place;            /* [rows][places], as in lists */
    int places;
    device::gemm_args args;
    size_t numbers;

    subject(const test_case &t, bool uniform, uint64_t seed)
        : t(t), w(t.experts ? t.experts : 1, t.n, t.k, uniform, seed),
          x(t.rows, t.k, t.k + t.gap, seed + (1ull << 50)), places(0), args{} {
        args.w_codes = {w.dev_code, w.dev_scale};
        args.w_uniform = uniform;
        args.x = x.dev_x;
        args.x_row = x.pitch;
        args.y_row = t.end == device::ends_gate ? t.n / 2 : t.n;
        args.groups = w.groups;
        args.rows = t.rows;
        args.n = t.n;
        args.k = t.k;
        args.factor = 0.5f;
        args.end = t.end;
        args.x_rows = t.rows;
        if (t.experts) {
            const lists l(t.experts, t.rows, t.chosen, seed);
            args.listed = true;
            args.experts = l.dev;
            row_of = l.row;
            place = l.place;
            places = l.places;
            for (int e = 0; e < t.experts; e++)
                group_of.insert(group_of.end(), static_cast<size_t>(l.first[e + 1] - l.first[e]),
                                e);
        } else {
            for (int i = 0; i < t.rows; i++)
                row_of.push_back(i);
            group_of.assign(static_cast<size_t>(t.rows), 0);
        }
        numbers = row_of.size() * static_cast<size_t>(args.y_row);
    }

    bool is_bf16() const {
        return t.end == device::ends_bf16 || t.end == device::ends_gate;
    }

    /* Runs a product into memory that holds ones. */
    template <typename F>
    std::vector<float> run(const F &product) {
        std::vector<float> ones(numbers, 1), out(numbers);
        std::vector<bf16> narrow(numbers, __float2bfloat16_rn(1));
        device::gemm_args a = args;
        float *wide_y = upload(ones);
        bf16 *narrow_y = upload(narrow);
        a.y = is_bf16() ? static_cast<void *>(narrow_y) : wide_y;
        CHECK(product(a));
        if (!is_bf16())
            return download(wide_y, numbers);
        narrow = download(narrow_y, numbers);
        for (size_t i = 0; i < numbers; i++)
            out[i] = __bfloat162float(narrow[i]);
        return out;
    }

    /* The number of y in row @i and column @col, from the exact sums, and how far a result may be
     * from it, if a sum may be wrong by @part of the magnitudes of its products. */
    template <typename F>
    exact expected(const F &sum_of, int i, int col, double part) {
        const int g = group_of[static_cast<size_t>(i)], r = row_of[static_cast<size_t>(i)];
        if (t.end != device::ends_gate) {
            const exact s = sum_of(w, x, g, r, col);
            if (t.end == device::ends_add_f32)
                return {1 + 0.5 * s.sum, 0.5 * part * s.magnitude + 1e-6};
            return {s.sum, part * s.magnitude + (is_bf16() ? fabs(s.sum) / 256 : 0) + 1e-30};
        }
        const int at = col / 8 * 16 + col % 8;
        const exact gate = sum_of(w, x, g, r, at), up = sum_of(w, x, g, r, at + 8);
        const double silu = gate.sum / (1 + exp(-gate.sum)), y = silu * up.sum;
        /* the derivative of silu is at most 1.1 */
        return {y, 1.1 * part * gate.magnitude * (fabs(up.sum) + part * up.magnitude) +
                       part * up.magnitude * fabs(silu) + fabs(y) / 128 + 1e-30};
    }

    /* Compares a fifth of the results, or fewer of a large product. */
    template <typename F>
    bool agrees(const std::vector<float> &y, const F &sum_of, double part) {
        const int step = numbers > 2000000 ? 37 : 5;
        for (int i = 0; i < static_cast<int>(row_of.size()); i++)
            for (int col = (i * 3) % step; col < args.y_row; col += step) {
                const exact e = expected(sum_of, i, col, part);
                const double got = y[static_cast<size_t>(i * args.y_row + col)];
                if (!(fabs(got - e.sum) <= e.magnitude)) {
                    printf("  row %d column %d: %.9g, expected %.9g within %.3g\n", i, col, got,
                           e.sum, e.magnitude);
                    return false;
                }
            }
        return true;
    }
};

/* A product of few rows, as the model computes it (product.cu). */
std::vector<float> few_product(const device::stream_of &s, subject &c) {
    const int rows = c.t.rows, k = c.t.k;
    __half *half = allocate<__half>(static_cast<size_t>(rows) * k);
    float *inverse = allocate<float>(static_cast<size_t>(rows));
    CHECK(rows_to_fp16(s, {c.args.x, c.args.x_row, nullptr, rows, k, half, inverse}));
    c.args.x_fp16 = {half, inverse};
    return c.run([&](const device::gemm_args &a) { return gemm_few_codes(s, a); });
}

/* An instruction adds 17 numbers and may lose 2^-24 of their magnitudes for each. Four instructions
 * follow each other, and then about 20 additions in FP32. So the error is at most 5e-6 of the
 * magnitudes; the limit is twice that. */
void check_few(const device::stream_of &s, const test_case &t, uint64_t seed) {
    char what[96];
    subject c(t, false, seed);
    const std::vector<float> y = few_product(s, c);
    snprintf(what, sizeof what, "few: %s: FP64", t.name);
    report(what, c.agrees(y, unrounded_product, 1e-5));
}

/* Rows of x with large, small and mixed magnitudes. The sums of all rows are below the largest
 * FP32 number. */
void check_few_magnitudes(const device::stream_of &s) {
    const test_case t = {"", 10, 64, 1024, device::ends_f32, 0, 0, 0};
    subject c(t, false, 11);
    static const float factors[] = {1e30f, 1e-20f, 1e6f, 1e-6f, 0x1p105f, 0x1p-70f};
    for (size_t i = 0; i < c.x.x.size(); i++) {
        const float f = i / 1024 < 6 ? factors[i / 1024] : factors[2 + i % 2] * (i % 7 ? 1 : 1e-8f);
        c.x.x[i] = __float2bfloat16_rn(__bfloat162float(c.x.x[i]) * f);
    }
    c.args.x = c.x.dev_x = upload(c.x.x);
    const auto y = few_product(s, c);
    report("few: large and small numbers: FP64", c.agrees(y, unrounded_product, 1e-5));
}

/* A NaN or an infinity in a row of x, a code that is NaN and scales that are NaN must not change
 * other numbers of y. k ends inside a unit of 64. */
void check_few_not_finite(const device::stream_of &s) {
    enum { kRows = 8, kCols = 40, kDeep = 592 };
    const test_case t = {"", kRows, kCols, kDeep, device::ends_f32, 0, 0, 0};
    subject c(t, false, 21);
    bool ok = true;
    c.x.x[3 * kDeep + 585] = __float2bfloat16_rn(NAN);
    c.x.x[5 * kDeep] = __float2bfloat16_rn(NAN);
    c.x.x[6 * kDeep + 77] = __float2bfloat16_rn(INFINITY);
    c.w.code[c.w.at(0, 2, 0)] = 0x7f;
    for (int block = 0; block < kDeep; block += 128)
        c.w.scale_at(0, 24, block) = NAN; /* of the rows 24 .. 31 */
    c.w.finish();
    c.args.w_codes = {c.w.dev_code, c.w.dev_scale};
    c.args.x = c.x.dev_x = upload(c.x.x);
    const auto y = few_product(s, c);
    for (int i = 0; i < kRows; i++)
        for (int col = 0; col < kCols; col++) {
            const bool nan = i == 3 || i == 5 || col == 2 || col / 8 == 3;
            const float got = y[static_cast<size_t>(i * kCols + col)];
            ok = ok && (i == 6 ? nan || !std::isfinite(got) : std::isnan(got) == nan);
            ok = ok && (nan || i == 6 || std::isfinite(got));
        }
    report("few: NaNs and infinities change only their rows and columns", ok);
}

/* The FP16 number of x * 2^@exponent. All NaNs are the same. */
uint16_t half_bits(float x, int exponent) {
    const __half h = __float2half_rn(ldexpf(x, exponent));
    return std::isnan(x) ? 0x7fff : __half_as_ushort(h);
}

/* Compares what rows_to_fp16() wrote with the host. The rows from @count on must not change. */
bool scaled_pair(const std::vector<bf16> &x, const fp16_shape &shape,
                 const std::vector<__half> &half, const std::vector<float> &inverse) {
    bool ok = true;
    for (int i = 0; i < shape.rows; i++) {
        float largest = 0;
        const bf16 *row = &x[static_cast<size_t>(i) * shape.pitch];
        const __half *got = &half[static_cast<size_t>(i) * shape.k];
        for (int j = 0; j < shape.k; j++)
            if (std::isfinite(__bfloat162float(row[j])))
                largest = fmaxf(largest, fabsf(__bfloat162float(row[j])));
        const int exponent = largest > 0 ? std::min(14 - std::ilogb(largest), 126) : 0;
        ok = ok && inverse[i] == (i < shape.count ? ldexpf(1, -exponent) : 0);
        for (int j = 0; j < shape.k; j++) {
            const uint16_t bits = __half_as_ushort(got[j]);
            const uint16_t expected =
                i < shape.count ? half_bits(__bfloat162float(row[j]), exponent) : 0;
            ok = ok && (std::isnan(__half2float(got[j])) ? 0x7fff : bits) == expected;
        }
    }
    return ok;
}

/* Number @j of row @i of x. i % 12 chooses the kind of numbers. (check_fp16_rows() fills row 12
 * with subnormal numbers.) */
float number_of_row(int i, int j) {
    const float x = uniform(static_cast<uint64_t>(i) * 100000 + j);
    static const float magnitudes[] = {1, 0x1p127f, 0x1p120f, 0x1p-100f, 0x1p-120f, 0x1p-126f};
    switch (i % 12) {
    case 0:
        return j % 2 ? -0.0f : 0;
    case 1: /* from 2^-60 to 1 */
        return ldexpf(x, -(j % 61));
    case 2: /* all magnitudes */
        return ldexpf(x, 127 - j % 260);
    case 3:
        return j % 100 == 99 ? INFINITY : x;
    case 4:
        return j % 100 == 98 ? -INFINITY : j % 100 == 5 ? NAN : ldexpf(x, 100);
    case 5: /* the only finite numbers are zeros */
        return j % 3 == 0 ? NAN : j % 3 == 1 ? INFINITY : 0;
    default:
        return x * magnitudes[i % 12 - 6];
    }
}

/* 2^-133 * n, a subnormal BF16 number. */
bf16 subnormal(int n) {
    return __ushort_as_bfloat16(static_cast<unsigned short>(n % 128 | n % 3 << 15 & 0x8000));
}

void check_fp16_rows(const device::stream_of &s, const fp16_shape &shape, bool counted) {
    char what[96];
    const auto numbers = static_cast<size_t>(shape.rows) * shape.k;
    std::vector<bf16> x(static_cast<size_t>(shape.rows) * shape.pitch);
    for (int i = 0; i < shape.rows; i++)
        for (int j = 0; j < shape.pitch; j++)
            x[static_cast<size_t>(i) * shape.pitch + j] =
                i == 12 ? subnormal(j) : __float2bfloat16_rn(number_of_row(i, j));
    __half *half = allocate<__half>(numbers);
    float *inverse = allocate<float>(static_cast<size_t>(shape.rows));
    CHECK(cudaMemset(half, 0, numbers * sizeof *half));
    CHECK(cudaMemset(inverse, 0, static_cast<size_t>(shape.rows) * sizeof *inverse));
    const int *count = counted ? upload(std::vector<int>{shape.count}) : nullptr;
    CHECK(rows_to_fp16(s, {upload(x), shape.pitch, count, shape.rows, shape.k, half, inverse}));
    snprintf(what, sizeof what, "few: %d rows of %d in FP16", shape.count, shape.k);
    report(what, scaled_pair(x, shape, download(half, numbers),
                             download(inverse, static_cast<size_t>(shape.rows))));
}

/* Compares what quantise_rows() wrote with the host. */
bool quantised(subject &c, const uint8_t *code, const float *scale, int memory_rows) {
    const int k = c.t.k, blocks = static_cast<int>(device::code_blocks(k));
    const auto codes_got = download(code, static_cast<size_t>(memory_rows) * k);
    const int64_t pitch = device::row_scale_pitch(memory_rows);
    const auto scales_got = download(scale, static_cast<size_t>(pitch * blocks));
    for (size_t i = 0; i < c.row_of.size(); i++)
        for (int j = 0; j < k; j++)
            if (scales_got[static_cast<size_t>(j / 128 * pitch + i)] !=
                    c.x.scale_at(c.row_of[i], j) ||
                codes_got[i * k + j] != c.x.code[static_cast<size_t>(c.row_of[i]) * k + j])
                return false;
    return true;
}

void check_many(const device::stream_of &s, const test_case &t, bool uniform, uint64_t seed) {
    char what[96];
    subject c(t, uniform, seed);
    /* The memory has more rows than pairs exist, as in a model. */
    const int memory_rows = static_cast<int>(c.row_of.size()) + (t.experts ? 5 : 0);
    uint8_t *code = allocate<uint8_t>(static_cast<size_t>(memory_rows) * t.k);
    const auto scales =
        static_cast<size_t>(device::row_scale_pitch(memory_rows) * device::code_blocks(t.k));
    float *scale = allocate<float>(scales);
    /* These bits are no codes and no scales that quantise_rows() writes. */
    CHECK(cudaMemset(code, 0x7f, static_cast<size_t>(memory_rows) * t.k));
    CHECK(cudaMemset(scale, 0xff, scales * sizeof *scale));
    CHECK(quantise_rows(s, {c.x.dev_x, c.x.pitch, nullptr, t.rows, t.k, code, scale, memory_rows,
                            t.experts ? upload(c.place) : nullptr, c.places}));
    snprintf(what, sizeof what, "many: %s: quantised rows", t.name);
    report(what, quantised(c, code, scale, memory_rows));
    c.args.x_codes = {code, scale};
    c.args.x_rows = memory_rows;
    const std::vector<float> y = c.run([&](const device::gemm_args &a) {
        return t.experts ? gemm_expert_codes(s, a) : gemm_many_codes(s, a);
    });
    snprintf(what, sizeof what, "many: %s: FP64 of the codes%s", t.name,
             uniform ? ", uniform scales" : "");
    report(what, c.agrees(y, coded_product, 0x1p-8));
    if (t.experts || t.rows > 128)
        return;
    c.args.partial = test_sums();
    const std::vector<float> shared =
        c.run([&](const device::gemm_args &a) { return gemm_stream_k(s, a); });
    snprintf(what, sizeof what, "stream-K: %s: FP64 of the codes%s", t.name,
             uniform ? ", uniform scales" : "");
    const std::vector<int> marks = download(c.args.partial.ready, device::STREAM_K_BLOCKS);
    report(what, c.agrees(shared, coded_product, 0x1p-8) &&
                     std::all_of(marks.begin(), marks.end(), [](int mark) { return mark == 0; }));
}

/* Row i of the weights has code i in one column and zeros elsewhere. */
void check_all_codes(const device::stream_of &s) {
    const test_case t = {"all codes", 9, 256, 128, device::ends_f32, 0, 0, 0};
    subject c(t, false, 77);
    bool few = true, many = true;
    c.w.code.assign(c.w.code.size(), 0);
    for (int i = 0; i < 256; i++) {
        c.w.code[c.w.at(0, i, i % 128)] = static_cast<uint8_t>(i);
        c.w.scale_at(0, i, 0) = 0.75f;
    }
    c.w.finish();
    c.x.x.assign(c.x.x.size(), __float2bfloat16_rn(1));
    c.args.x = c.x.dev_x = upload(c.x.x);
    uint8_t *code = allocate<uint8_t>(9 * 128);
    float *scale = allocate<float>(device::row_scale_pitch(9));
    CHECK(quantise_rows(s, {c.x.dev_x, 128, nullptr, 9, 128, code, scale, 9, nullptr, 0}));
    c.args.w_codes = {c.w.dev_code, c.w.dev_scale};
    c.args.x_codes = {code, scale};
    const auto a = few_product(s, c),
               b = c.run([&](const device::gemm_args &g) { return gemm_many_codes(s, g); });
    for (int i = 0; i < 9 * 256; i++) {
        const float exact = decoded(static_cast<uint8_t>(i)) * 0.75f;
        few = few && (std::isnan(exact) ? std::isnan(a[i]) : a[i] == exact);
        many = many && (std::isnan(exact) ? std::isnan(b[i])
                                          : fabsf(b[i] - exact) <= fabsf(exact) * 0x1p-11f);
    }
    report("few: all 256 codes", few);
    report("many: all 256 codes", many);
}

/* A row that is not finite must not change the others. */
void check_not_finite(const device::stream_of &s, float bad) {
    const test_case t = {"", 20, 64, 256, device::ends_f32, 0, 0, 0};
    subject c(t, false, 5);
    bool ok = true;
    c.x.x[3 * 256 + 17] = __float2bfloat16_rn(bad);
    CHECK(cudaMemcpy(c.x.dev_x, c.x.x.data(), c.x.x.size() * sizeof(bf16), cudaMemcpyHostToDevice));
    uint8_t *code = allocate<uint8_t>(20 * 256);
    float *scale = allocate<float>(40);
    CHECK(quantise_rows(s, {c.x.dev_x, 256, nullptr, 20, 256, code, scale, 20, nullptr, 0}));
    c.args.x_codes = {code, scale};
    const auto y = c.run([&](const device::gemm_args &g) { return gemm_many_codes(s, g); });
    for (int i = 0; i < 20 * 64; i++)
        ok = ok && std::isfinite(y[i]) == (i / 64 != 3);
    report(std::isnan(bad) ? "many: a NaN stays in its row" : "many: an infinity stays in its row",
           ok);
}

void check_scales(const device::stream_of &s) {
    enum { kRows = 392, kAcross = 5, kFrom = 136, kCount = 248, kWidth = 320, kTo = 24 };
    std::vector<float> from(4 * kAcross);
    bool ok = true;
    for (size_t i = 0; i < from.size(); i++)
        from[i] = static_cast<float>(i) + 1;
    for (int by_eights = 0; by_eights < 2; by_eights++) {
        const int n = kTo + (by_eights ? 2 : 1) * kCount;
        const auto size = static_cast<size_t>(device::code_scales(n, kWidth));
        float *to = allocate<float>(size);
        CHECK(cudaMemset(to, 0, size * sizeof(float)));
        CHECK(place_code_scales(
            s, {upload(from), kAcross, kFrom, kCount, 128, kWidth, to, kTo, by_eights == 1}));
        const auto got = download(to, size);
        for (int i = 0; i < kCount; i++)
            for (int block = 0; block < 3; block++) {
                const int row = kTo + (by_eights ? i / 8 * 16 + i % 8 : i);
                const float expected = from[(kFrom + i) / 128 * kAcross + 1 + block];
                ok = ok && got[(row / 16 * device::code_pitch(kWidth) + block) * 2 + row / 8 % 2] ==
                               expected;
            }
    }
    report("scales of rows that begin inside a block", ok);
}

const test_case few_cases[] = {
    {"one row", 1, 64, 256, device::ends_f32, 0, 0, 0},
    {"8 rows, ragged", 8, 72, 592, device::ends_f32, 0, 0, 8},
    {"5 rows, k of three slices", 5, 4104, 5136, device::ends_add_f32, 0, 0, 0},
    {"k below a unit", 3, 24, 48, device::ends_bf16, 0, 0, 0},
    {"gate", 7, 512, 1536, device::ends_gate, 0, 0, 0},
    {"20 rows", 20, 136, 2176, device::ends_f32, 0, 0, 0},
    {"experts", 8, 144, 384, device::ends_gate, 9, 3, 0},
    {"experts, 30 rows", 30, 200, 2304, device::ends_f32, 4, 2, 8},
};

const test_case many_cases[] = {
    {"9 rows", 9, 64, 256, device::ends_f32, 0, 0, 0},
    {"64 rows", 64, 328, 2192, device::ends_f32, 0, 0, 0},
    {"50 rows, tiles of 256", 50, 34056, 144, device::ends_bf16, 0, 0, 8},
    {"ragged", 77, 328, 592, device::ends_f32, 0, 0, 8},
    {"one block of k", 16, 200, 128, device::ends_f32, 0, 0, 0},
    {"a range of an SM longer than the ring", 9, 2112, 7168, device::ends_f32, 0, 0, 0},
    {"wide tiles, divided", 20, 36864, 4112, device::ends_gate, 0, 0, 0},
    {"wide tiles of 128 rows, divided", 128, 34048, 4304, device::ends_add_f32, 0, 0, 8},
    {"narrow tiles of 128 rows, divided", 100, 7168, 4304, device::ends_bf16, 0, 0, 0},
    {"k below a block", 16, 72, 48, device::ends_bf16, 0, 0, 0},
    {"k longer than the ring", 130, 144, 2192, device::ends_add_f32, 0, 0, 0},
    {"gate", 100, 512, 1024, device::ends_gate, 0, 0, 0},
    {"tiles of 128 by 128", 1500, 1400, 272, device::ends_f32, 0, 0, 0},
    {"tiles of 128 by 128, several per block", 1700, 6000, 1040, device::ends_bf16, 0, 0, 0},
    {"tiles of 128 by 128, k longer than the ring", 1500, 1400, 1424, device::ends_add_f32, 0, 0,
     8},
    {"gate, tiles of 128 by 128", 1500, 1392, 912, device::ends_gate, 0, 0, 0},
    {"tiles of 128 by 64, several per block", 800, 2312, 1168, device::ends_f32, 0, 0, 0},
    {"tiles of 128 by 256", 1100, 2120, 1424, device::ends_bf16, 0, 0, 8},
    {"tiles of 128 by 256, several per block, some half full", 930, 8424, 1040,
     device::ends_add_f32, 0, 0, 8},
    {"gate, tiles of 128 by 256", 400, 5200, 912, device::ends_gate, 0, 0, 0},
    {"more rows and columns than are quantised at a time", 1100, 72, 4112, device::ends_f32, 0, 0,
     8},
    {"experts with few rows", 40, 144, 384, device::ends_gate, 9, 3, 0},
    {"experts with few rows, two tiles", 200, 528, 1168, device::ends_f32, 4, 2, 8},
    {"experts with few rows, several tiles per block", 500, 4112, 272, device::ends_f32, 9, 3, 8},
    {"experts with many rows", 600, 272, 784, device::ends_gate, 5, 2, 0},
    {"experts with many rows, several tiles per block", 900, 5136, 656, device::ends_gate, 9, 3, 0},
    {"one expert", 513, 1040, 256, device::ends_f32, 1, 1, 0},
    {"experts with 0 to 331 rows", 400, 272, 656, device::ends_f32, 23, VARIED, 8},
    {"experts with 0 to 331 rows, gate", 400, 528, 1168, device::ends_gate, 23, VARIED, 0},
    {"experts with 0 to 331 rows, k below a block", 400, 1032, 48, device::ends_f32, 23, VARIED, 0},
    {"more than 32 experts, and rows with more than 32 of them", 40, 144, 272, device::ends_f32, 70,
     40, 0},
};

} // namespace

int main(int argc, char **argv) {
    const bool times = argc == 2 && strcmp(argv[1], "time") == 0;
    if (argc > 1 && !times) {
        fprintf(stderr, "usage: check_codes [time]\n");
        return 2;
    }
    setvbuf(stdout, nullptr, _IOLBF, 0);
    cudaDeviceProp prop;
    device::stream_of s = {};
    CHECK(cudaGetDeviceProperties(&prop, 0));
    if (prop.major != 9) {
        printf("skipped: %s is not a Hopper device\n", prop.name);
        return 0;
    }
    CHECK(cudaStreamCreate(&s.stream));
    s.hopper = true;
    s.sms = prop.multiProcessorCount;
    CHECK(device::maps_init());
    CHECK(device::gemm_few_sm90_init()); /* BF16 weights, for the times */
    CHECK(device::gemm_many_init());
    CHECK(device::gemm_few_codes_init());
    CHECK(device::gemm_many_codes_init());
    CHECK(device::gemm_expert_codes_init());
    CHECK(device::gemm_stream_k_init());
    if (times) {
        time_all(s);
        return 0;
    }
    check_scales(s);
    check_all_codes(s);
    for (size_t i = 0; i < sizeof few_cases / sizeof *few_cases; i++)
        check_few(s, few_cases[i], 1000 * i);
    check_few_magnitudes(s);
    check_fp16_rows(s, {13, 13, 592, 600}, false);
    check_fp16_rows(s, {20, 14, 18432, 18432}, true);
    check_fp16_rows(s, {13, 13, 8, 8}, false);
    check_fp16_rows(s, {1000, 1000, 4104, 4104}, false);
    check_few_not_finite(s);
    for (size_t i = 0; i < sizeof many_cases / sizeof *many_cases; i++)
        for (int uniform = 0; uniform < 2; uniform++)
            check_many(s, many_cases[i], uniform == 1, 1000 * i);
    check_not_finite(s, NAN);
    check_not_finite(s, INFINITY);
    printf(failures ? "%d checks failed\n" : "all checks passed: ok\n", failures);
    return failures != 0;
}
