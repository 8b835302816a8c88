#include "harness/bench/scaled_shapes.h"

enum { kSequence = 8192, kMemoryParts = 16, kBytes = 2 /* bytes of a BF16 number */ };
static const double kReadSeconds = 2e-3;

int64_t scaled_tokens(double read_rate, size_t memory, int d_c, int d_r) {
    const int64_t most = (int64_t)BENCH_MAX_BATCH * kSequence;
    double bytes_of_token = kBytes * (double)(d_c + d_r);
    double fit = read_rate * kReadSeconds / bytes_of_token;
    double room = (double)memory / kMemoryParts / bytes_of_token;
    if (memory && room < fit)
        fit = room;
    int64_t tokens = kSequence;
    while (tokens < most && 2 * (double)tokens <= fit)
        tokens *= 2;
    return tokens;
}

static bool has_shape(const bench_grid *g, const bench_shape *s) {
    for (int i = 0; i < g->n_list; i++) {
        const bench_shape *own = &g->list[i];
        if (own->heads == s->heads && own->s_q == s->s_q && own->batch == s->batch &&
            own->context == s->context)
            return true;
    }
    return false;
}

snap_status scaled_shapes_add(bench_grid *g, double read_rate, size_t memory, snap_err *err) {
    const int64_t tokens = scaled_tokens(read_rate, memory, g->d_c, g->d_r);
    const int64_t context = tokens < MLA_MAX_CONTEXT ? tokens : MLA_MAX_CONTEXT;
    const int batch = (int)(tokens / kSequence);
    const bench_shape shapes[] = {
        {.heads = 16, .s_q = 1, .batch = batch, .context = kSequence},
        {.heads = 128, .s_q = 1, .batch = batch, .context = kSequence},
        {.heads = 16, .s_q = 1, .batch = 1, .context = context},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        bench_shape s = shapes[i];
        s.d_c = g->d_c;
        s.d_r = g->d_r;
        if (has_shape(g, &s))
            continue;
        if (g->n_list == GRID_LIST)
            return err_set(err, SNAP_E_USAGE, "--shapes lists too many shapes: --scaled adds some");
        g->list[g->n_list++] = s;
    }
    return SNAP_OK;
}
