/* Copies logits to the host, or only what a draw needs of them (reading.h).
 *
 * One block per row. The vocabulary is divided into parts, and one warp adds up p over a part; then
 * the parts are added up in order. So the sum of a row has the same bits each time. The tokens to
 * list are found with a histogram: its buckets are ranges of the logit, and the tokens up to one
 * bucket beyond the one in which the wanted share is reached are listed. The host sorts them. */
#include <cmath>
#include <cstring>

#include "generator/local/cuda/model.h"
#include "kernels/cuda/device.h"

using namespace device;

namespace {

enum {
    kThreads = 1024,
    kParts = 256,
    kBuckets = 512,
    kBucketsPerUnit = 16, /* buckets for each unit of (largest - logit) / temperature; the last
                             bucket has all tokens beyond */
};

struct row_memory {
    double part[kParts], mass[kBuckets];
    double sum, left; /* sum: of p over the row; left: what remains of share * sum after the parts
                         before part `ends` */
    int ends;         /* index of the part in which the share ends, or of the last bucket to list */
    int n;
};

/* A row of logits, and the p of its tokens. */
struct row_of {
    const float *x;
    int vocab;
    double largest, temperature;

    __device__ double fall(int id) const {
        return (largest - static_cast<double>(x[id])) / temperature;
    }
    __device__ double p(int id) const {
        return exp(-fall(id));
    }
    /* The bucket of a token whose p is > 0. */
    __device__ int bucket(int id) const {
        return min(static_cast<int>(fall(id) * kBucketsPerUnit), kBuckets - 1);
    }
    __device__ int part_length() const {
        return (vocab + kParts - 1) / kParts;
    }
};

__device__ double warp_sum(double x) {
    for (int m = 16; m > 0; m /= 2)
        x += __shfl_xor_sync(~0u, x, m);
    return x;
}

/* Computes part[], the sum of p of each part. If a list is wanted, also computes mass[]: for each
 * bucket its number of tokens (READ_TOP) or their sum of p. */
__device__ void add_up(const row_of &r, reading_kind kind, row_memory &s) {
    const bool buckets = kind != READ_SHARE, counts = kind == READ_TOP;
    const int lane = threadIdx.x % 32, length = r.part_length();
    for (int part = threadIdx.x / 32; part < kParts; part += kThreads / 32) {
        double sum = 0;
        for (int id = part * length + lane; id < min((part + 1) * length, r.vocab); id += 32) {
            const double p = r.p(id);
            sum += p;
            if (buckets && p > 0)
                atomicAdd(&s.mass[r.bucket(id)], counts ? 1.0 : p);
        }
        sum = warp_sum(sum);
        if (lane == 0)
            s.part[part] = sum;
    }
    __syncthreads();
}

/* Called by one thread: computes s.sum, the sum of p over the row, and finds the part in which the
 * running sum of p exceeds share * s.sum. s.ends is the index of that part, s.left what remains of
 * share * s.sum after the parts before it. */
__device__ void find_part(double share, row_memory &s) {
    double sum = 0;
    for (int i = 0; i < kParts; i++)
        sum += s.part[i];
    s.sum = sum;
    s.left = share * sum;
    s.ends = -1;
    int last = 0;
    for (int i = 0; i < kParts && s.ends < 0; i++) {
        last = s.part[i] > 0 ? i : last;
        if (s.left < s.part[i])
            s.ends = i;
        else
            s.left -= s.part[i];
    }
    if (s.ends < 0) { /* possible through rounding: use the last part that is not empty */
        s.ends = last;
        s.left = s.part[last];
    }
}

/* Called by one warp: finds the token at which the share ends. */
__device__ int find_token(const row_of &r, const row_memory &s) {
    const int lane = threadIdx.x % 32, length = r.part_length(),
              end = min((s.ends + 1) * length, r.vocab);
    double before = 0;
    int last = 0;
    for (int first = s.ends * length; first < end; first += 32) {
        const double p = first + lane < end ? r.p(first + lane) : 0;
        double upto = p;
        for (int m = 1; m < 32; m *= 2) {
            const double other = __shfl_up_sync(~0u, upto, m);
            upto += lane >= m ? other : 0;
        }
        const unsigned beyond = __ballot_sync(~0u, p > 0 && before + upto > s.left),
                       any = __ballot_sync(~0u, p > 0);
        if (beyond)
            return first + __ffs(static_cast<int>(beyond)) - 1;
        last = any ? first + 31 - __clz(static_cast<int>(any)) : last;
        before += __shfl_sync(~0u, upto, 31);
    }
    return last;
}

/* Called by one thread: sets s.ends to the bucket after the one in which @goal is reached, and s.n
 * to 0. */
__device__ void find_bucket(double goal, row_memory &s) {
    double reached = 0;
    s.ends = kBuckets;
    s.n = 0;
    for (int i = 0; i < kBuckets && s.ends == kBuckets; i++) {
        reached += s.mass[i];
        if (reached >= goal)
            s.ends = i + 1;
    }
}

__device__ void list_tokens(const row_of &r, row_memory &s, token_logit *list) {
    for (int id = threadIdx.x; id < r.vocab; id += kThreads) {
        if (!(r.p(id) > 0) || r.bucket(id) > s.ends)
            continue;
        const int at = atomicAdd(&s.n, 1);
        if (at < READING_MOST)
            list[at] = {id, r.x[id]};
    }
    __syncthreads();
}

/* Decodes the logit from best_token()'s key. */
__device__ float logit_of(unsigned long long key) {
    const uint32_t order = static_cast<uint32_t>(key >> 32);
    return __uint_as_float(order & 0x80000000u ? order ^ 0x80000000u : ~order);
}

__global__ void __launch_bounds__(kThreads)
    read_row(const float *logits, int vocab, const unsigned long long *key, const reading *wanted,
             row_reading *answer, token_logit *list) {
    __shared__ row_memory s;
    wait_previous();
    const int64_t row = blockIdx.x;
    const reading w = wanted[row];
    const float largest = logit_of(key[row]);
    row_reading a = {0, w.kind, next_token_of(key[row]), 0, largest};
    if (a.token < 0)
        a.kind = READ_NOT_FINITE;
    else if (a.kind >= READ_SHARE) {
        const row_of r = {logits + row * vocab, vocab, static_cast<double>(largest), w.temperature};
        const bool lists = a.kind > READ_SHARE;
        for (int i = threadIdx.x; i < kBuckets; i += kThreads)
            s.mass[i] = 0;
        __syncthreads();
        add_up(r, w.kind, s);
        if (threadIdx.x == 0) {
            find_part(w.share, s);
            if (lists)
                find_bucket(w.kind == READ_TOP ? w.share : w.share * s.sum, s);
        }
        __syncthreads();
        if (lists)
            list_tokens(r, s, list + row * READING_MOST);
        else if (threadIdx.x < 32)
            a.token = find_token(r, s);
        a.sum = s.sum;
        a.n = lists ? s.n : 0;
        if (a.n > READING_MOST)
            a.kind = READ_LOGITS;
    }
    if (threadIdx.x == 0)
        answer[row] = a;
}

/* ---- host ------------------------------------------------------------------------------------ */

template <typename T>
cudaError_t to_host(const cuda_model *m, T *to, const T *from, int64_t n) {
    return cudaMemcpyAsync(to, from, static_cast<size_t>(n) * sizeof(T), cudaMemcpyDeviceToHost,
                           m->s.stream);
}

/* Copies @count rows of b.logits, beginning with row @first, to @to in host memory. The copy goes
 * through pinned memory and is complete on return. */
snap_status copy_rows(cuda_model *m, int first, int count, float *to, snap_err *err) {
    const int64_t vocab = m->shape.vocab_size;
    cudaError_t e = to_host(m, m->logits_host, m->b.logits + first * vocab, count * vocab);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(m->s.stream);
    if (e == cudaSuccess)
        memcpy(to, m->logits_host, static_cast<size_t>(count * vocab) * sizeof *to);
    return cuda_check(e, "device work", err);
}

cudaError_t read_rows(cuda_model *m, int first, int count, const reading *wanted) {
    const size_t bytes = static_cast<size_t>(count) * sizeof *wanted;
    memcpy(m->read_host.wanted, wanted + first, bytes);
    cudaError_t e = cudaMemcpyAsync(m->read.wanted, m->read_host.wanted, bytes,
                                    cudaMemcpyHostToDevice, m->s.stream);
    if (e == cudaSuccess)
        e = launch(m->s, read_row, dim3(static_cast<unsigned>(count)), kThreads, 0, m->b.logits,
                   m->shape.vocab_size, m->b.key + first, m->read.wanted, m->read.answer,
                   m->read.list);
    bool lists = false;
    for (int i = 0; i < count; i++)
        lists |= wanted[first + i].kind > READ_SHARE;
    if (e == cudaSuccess)
        e = to_host(m, m->read_host.answer + first, m->read.answer, count);
    if (e == cudaSuccess && lists)
        e = to_host(m, m->read_host.list + int64_t(first) * READING_MOST, m->read.list,
                    int64_t(count) * READING_MOST);
    return e == cudaSuccess ? cudaStreamSynchronize(m->s.stream) : e;
}

/* Copies the keys of the rows, and their logits if they are requested. Without logits the copy is
 * complete after the next synchronisation. */
snap_status copy_all(cuda_model *m, int first, int count, const cuda_model_results *out,
                     snap_err *err) {
    snap_status st =
        cuda_check(to_host(m, m->key_host + first, m->b.key + first, count), "device work", err);
    if (st == SNAP_OK && out->logits)
        st = copy_rows(m, 0, count, out->logits + int64_t(first) * m->shape.vocab_size, err);
    for (int i = first; out->wanted && i < first + count; i++) {
        out->got[i] = {};
        out->got[i].kind = m->key_host[i] == KEY_NOT_FINITE ? READ_NOT_FINITE : READ_LOGITS;
    }
    return st;
}

bool all_logits(const reading *wanted, int first, int count) {
    for (int i = 0; wanted && i < count; i++)
        if (wanted[first + i].kind != READ_LOGITS)
            return false;
    return true;
}

} // namespace

snap_status read_logits(cuda_model *m, int first, int count, const cuda_model_results *out,
                        snap_err *err) {
    const int64_t vocab = m->shape.vocab_size;
    if (all_logits(out->wanted, first, count))
        return copy_all(m, first, count, out, err);
    snap_status st = cuda_check(read_rows(m, first, count, out->wanted), "device work", err);
    for (int i = first; i < first + count && st == SNAP_OK; i++) {
        const row_reading &a = m->read_host.answer[i];
        out->got[i] = {static_cast<reading_kind>(a.kind),
                       a.token,
                       a.n,
                       m->read_host.list + int64_t(i) * READING_MOST,
                       a.largest,
                       a.sum};
        if (a.kind == READ_LOGITS)
            st = copy_rows(m, i - first, 1, out->logits + i * vocab, err);
    }
    return st;
}
