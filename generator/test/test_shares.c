/* Tests the shares of the ranks of a split model, bound to the files of the whole model. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "generator/local/checkpoint/inventory.h"
#include "generator/local/random_model.h"
#include "generator/local/ranks/layout.h"
#include "generator/test/tiny_model.h"

enum { kMats = 1024, kPartsMost = 4 };

/* ---- the matrices of a model ---- */

typedef struct {
    const mat *of[kMats];
    int n;
} mats;

static void add(mats *all, const mat *m) {
    CU_ASSERT_FATAL(all->n < kMats);
    if (m->w)
        all->of[all->n++] = m;
}

static void add_ffn(mats *all, const ffn_weights *f) {
    add(all, &f->gate);
    add(all, &f->up);
    add(all, &f->down);
}

static mats collect(const model_weights *w) {
    mats all = {0};
    add(&all, &w->embed);
    add(&all, &w->head);
    for (int i = 0; i < w->blocks; i++) {
        const block_weights *k = &w->block[i];
        const attention_weights *a = &k->attention;
        const mat *const of[] = {&a->q, &a->q_a, &a->q_b, &a->kv_a, &a->kv_b, &a->o};
        for (size_t j = 0; j < sizeof of / sizeof *of; j++)
            add(&all, of[j]);
        if (k->dense)
            add_ffn(&all, &k->ffn);
        if (!k->moe)
            continue;
        add(&all, &k->experts.router);
        for (int e = 0; e < w->shape.n_routed_experts; e++)
            add_ffn(&all, &k->experts.expert[e]);
        add_ffn(&all, &k->experts.shared);
    }
    return all;
}

/* 0 = divided by rows, 1 = by columns, -1 = whole on each rank. */
static int axis_of(const char *name) {
    static const char *const axes[][6] = {
        {".q_proj.", ".q_b_proj.", ".kv_b_proj.", ".gate_proj.", ".up_proj.", NULL},
        {".o_proj.", ".down_proj.", NULL}};
    for (int axis = 0; axis < 2; axis++)
        for (int i = 0; axes[axis][i]; i++)
            if (strstr(name, axes[axis][i]))
                return axis;
    return -1;
}

static float *read_mat(const mat *m) {
    float *x = calloc((size_t)(m->rows * m->cols), sizeof *x);
    CU_ASSERT_PTR_NOT_NULL_FATAL(x);
    for (int64_t i = 0; i < m->rows; i++)
        mat_read_row(m, i, x + i * m->cols);
    return x;
}

/* ---- the shares together are the model ---- */

static void bind_shares(model_weights *w, const tiny_model *whole, int parts) {
    snap_err err = {0};
    for (int r = 0; r < parts; r++) {
        model_shape shape = whole->shape;
        const weights_share share = {r, parts, 0, 1};
        CU_ASSERT_EQUAL_FATAL(rank_layout_split(&shape, parts, &err), SNAP_OK);
        CU_ASSERT_EQUAL_FATAL(weights_bind_share(&w[r], &shape, &share, whole->files, &err),
                              SNAP_OK);
    }
}

/* Joins the parts of a matrix by rows or by columns, and compares the numbers with the whole. */
static void check_joined(const mat *whole, const mats *shares, int parts, int at) {
    int axis = axis_of(whole->w->name);
    float *want = read_mat(whole),
          *joined = calloc((size_t)(whole->rows * whole->cols), sizeof *joined);
    CU_ASSERT_PTR_NOT_NULL_FATAL(joined);
    for (int r = 0; r < parts; r++) {
        const mat *m = shares[r].of[at];
        CU_ASSERT_EQUAL_FATAL(m->rows, axis == 0 ? whole->rows / parts : whole->rows);
        CU_ASSERT_EQUAL_FATAL(m->cols, axis == 1 ? whole->cols / parts : whole->cols);
        int64_t row = axis == 0 ? r * m->rows : 0, col = axis == 1 ? r * m->cols : 0;
        float *x = read_mat(m);
        for (int64_t i = 0; i < m->rows; i++)
            memcpy(joined + (row + i) * whole->cols + col, x + i * m->cols,
                   (size_t)m->cols * sizeof *x);
        free(x);
        if (axis < 0)
            CU_ASSERT_EQUAL(
                memcmp(joined, want, (size_t)(whole->rows * whole->cols) * sizeof *want), 0);
    }
    CU_ASSERT_EQUAL(memcmp(joined, want, (size_t)(whole->rows * whole->cols) * sizeof *want), 0);
    free(joined);
    free(want);
}

/* Counts matrices whose shares begin inside a block of e4m3 weights. */
static int begins_inside(const mat *m) {
    return m->scale && (m->first_row % m->block || m->first_col % m->block);
}

static int check_fixture(const char *name, tiny_flavour flavour, int parts) {
    tiny_model t;
    model_weights w[kPartsMost] = {0};
    mats whole, shares[kPartsMost];
    int inside = 0;
    tiny_open_as(&t, name, flavour);
    bind_shares(w, &t, parts);
    whole = collect(&t.weights);
    for (int r = 0; r < parts; r++) {
        shares[r] = collect(&w[r]);
        CU_ASSERT_EQUAL_FATAL(shares[r].n, whole.n);
    }
    for (int i = 0; i < whole.n; i++) {
        check_joined(whole.of[i], shares, parts, i);
        inside += begins_inside(shares[parts - 1].of[i]);
    }
    for (int r = 0; r < parts; r++)
        weights_release(&w[r]);
    tiny_close(&t);
    return inside;
}

static void test_joined(void) {
    for (int i = 0; tiny_names[i]; i++) {
        (void)check_fixture(tiny_names[i], TINY_PLAIN, 1);
        (void)check_fixture(tiny_names[i], TINY_PLAIN, 2);
        CU_ASSERT(check_fixture(tiny_names[i], TINY_E4M3, 2) > 0);
    }
    (void)check_fixture("v3", TINY_PLAIN, kPartsMost);
    CU_ASSERT(check_fixture("v2-lite", TINY_E4M3, kPartsMost) > 0);
}

/* A share has the numbers of a checkpoint that was written for this rank alone. */
static void test_checkpoint_of_a_rank(void) {
    for (int i = 0; tiny_names[i]; i++) {
        tiny_model t, alone;
        model_weights w[2] = {0};
        tiny_open(&t, tiny_names[i]);
        bind_shares(w, &t, 2);
        for (int r = 0; r < 2; r++) {
            tiny_open_share(&alone, tiny_names[i], r, 2);
            mats got = collect(&w[r]), want = collect(&alone.weights);
            CU_ASSERT_EQUAL_FATAL(got.n, want.n);
            for (int k = 0; k < got.n; k++) {
                float *a = read_mat(got.of[k]), *b = read_mat(want.of[k]);
                CU_ASSERT_EQUAL_FATAL(got.of[k]->rows, want.of[k]->rows);
                CU_ASSERT_EQUAL_FATAL(got.of[k]->cols, want.of[k]->cols);
                CU_ASSERT_EQUAL(
                    memcmp(a, b, (size_t)(got.of[k]->rows * got.of[k]->cols) * sizeof *a), 0);
                free(a);
                free(b);
            }
            tiny_close(&alone);
            weights_release(&w[r]);
        }
        tiny_close(&t);
    }
}

/* ---- the bytes that a rank touches ---- */

/* A checkpoint whose file is in memory and has no data yet: a page of it gets memory, which fstat()
 * counts, when it is first read. All numbers are 0. Matrices come first and begin at a page. */
typedef struct {
    char dir[64], link[96];
    int fd;
    size_t start, bytes;    /* where the data begin and where they end so far, in bytes from the
                               start of the file */
    int64_t divided, whole; /* bytes of the matrices that are divided, and of all others */
    int tensors;
    bool matrices; /* matrices are added now, not other tensors */
    buf header;
} sparse_file;

enum { kPage = 4096, kBlock = 128 };

static void add_entry(sparse_file *f, const char *name, const char *type, int64_t rows,
                      int64_t cols, size_t element) {
    size_t bytes = (size_t)(rows * (cols ? cols : 1)) * element;
    (void)buf_printf(&f->header, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%lld", name, type,
                     (long long)rows);
    if (cols)
        (void)buf_printf(&f->header, ",%lld", (long long)cols);
    (void)buf_printf(&f->header, "],\"data_offsets\":[%zu,%zu]}", f->bytes, f->bytes + bytes);
    f->bytes += bytes;
    f->tensors++;
    *(axis_of(name) >= 0 && !strstr(name, "scale") ? &f->divided : &f->whole) += (int64_t)bytes;
}

static snap_status add_tensor(void *ctx, const char *name, int64_t rows, int64_t cols,
                              snap_err *err) {
    sparse_file *f = ctx;
    bool matrix = axis_of(name) >= 0;
    char scale[160];
    (void)err;
    if (matrix && f->matrices)
        add_entry(f, name, "F8_E4M3", rows, cols, 1);
    if (f->matrices)
        return SNAP_OK;
    (void)snprintf(scale, sizeof scale, "%s_scale_inv", name);
    if (matrix)
        add_entry(f, scale, "F32", (rows + kBlock - 1) / kBlock, (cols + kBlock - 1) / kBlock, 4);
    else
        add_entry(f, name, "F32", rows, cols, 4);
    return SNAP_OK;
}

static void sparse_open(sparse_file *f, const model_shape *s) {
    char target[64];
    *f = (sparse_file){.dir = "/tmp/snapmla-sparse-XXXXXX", .matrices = true};
    f->fd = memfd_create("sparse", MFD_CLOEXEC);
    CU_ASSERT_FATAL(f->fd >= 0 && mkdtemp(f->dir));
    (void)buf_puts(&f->header, "{\"__metadata__\":{}");
    CU_ASSERT_EQUAL(inventory_each(s, add_tensor, f, NULL), SNAP_OK);
    f->matrices = false;
    CU_ASSERT_EQUAL(inventory_each(s, add_tensor, f, NULL), SNAP_OK);
    (void)buf_puts(&f->header, "}");
    while ((f->header.len + 8) % kPage)
        (void)buf_puts(&f->header, " ");
    uint64_t length = f->header.len;
    f->start = f->header.len + 8;
    CU_ASSERT_EQUAL(ftruncate(f->fd, (off_t)(f->start + f->bytes)), 0);
    CU_ASSERT_EQUAL(pwrite(f->fd, &length, 8, 0), 8);
    CU_ASSERT_EQUAL(pwrite(f->fd, f->header.data, f->header.len, 8), (ssize_t)f->header.len);
    (void)snprintf(target, sizeof target, "/proc/self/fd/%d", f->fd);
    (void)snprintf(f->link, sizeof f->link, "%s/model.safetensors", f->dir);
    CU_ASSERT_EQUAL_FATAL(symlink(target, f->link), 0);
}

static void sparse_close(sparse_file *f) {
    (void)unlink(f->link);
    (void)rmdir(f->dir);
    (void)close(f->fd);
    buf_release(&f->header);
}

/* Bytes of the data that have been read. */
static int64_t touched(const sparse_file *f) {
    struct stat sb;
    CU_ASSERT_EQUAL_FATAL(fstat(f->fd, &sb), 0);
    return (int64_t)sb.st_blocks * 512 - (int64_t)f->start;
}

/* Bytes of the sparse file that this process has mapped and holds. */
static int64_t held(void) {
    long long all = 0, kib = 0;
    unsigned long long first, end;
    bool ours = false;
    char *rest = NULL;
    buf maps = {0};
    CU_ASSERT_EQUAL_FATAL(fs_read("/proc/self/smaps", &maps, NULL), SNAP_OK);
    for (char *line = strtok_r(maps.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (sscanf(line, "%llx-%llx ", &first, &end) == 2) /* the next mapping */
            ours = strstr(line, "memfd:sparse");
        if (ours && sscanf(line, "Rss: %lld", &kib) == 1)
            all += kib * 1024;
    }
    buf_release(&maps);
    return all;
}

/* Reads all numbers of one rank. Returns how many bytes of the file were read for that. *kept: how
 * many of them the process still holds after checkpoint_drop_pages(). */
static int64_t read_share(const model_shape *whole, int rank, int parts, sparse_file *f,
                          int64_t *kept) {
    checkpoint *c = NULL;
    model_weights w = {0};
    snap_err err = {0};
    model_shape shape = *whole;
    const weights_share share = {rank, parts, 0, 1};
    sparse_open(f, whole);
    CU_ASSERT_EQUAL_FATAL(checkpoint_open(&c, f->dir, &err), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(rank_layout_split(&shape, parts, &err), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(weights_bind_share(&w, &shape, &share, c, &err), SNAP_OK);
    mats all = collect(&w);
    for (int i = 0; i < all.n; i++)
        free(read_mat(all.of[i]));
    int64_t bytes = touched(f);
    CU_ASSERT(held() >= bytes);
    checkpoint_drop_pages(c);
    *kept = held();
    weights_release(&w);
    checkpoint_close(c);
    sparse_close(f);
    return bytes;
}

/* The shape of a small model in which a rank's part of a row is a whole number of pages. */
static model_shape wide_shape(void) {
    model_shape s;
    snap_err err = {0};
    CU_ASSERT_EQUAL_FATAL(model_shape_open(&s, "generator/test/model/v3", &err), SNAP_OK);
    s.hidden_size = 128;
    s.num_hidden_layers = s.first_k_dense_replace + 1;
    s.num_attention_heads = 8;
    s.v_head_dim = 2 * kPage / 8;
    s.intermediate_size = 4 * kPage;
    s.moe_intermediate_size = 2 * kPage;
    s.fp8_block = kBlock;
    return s;
}

static void test_bytes_touched(void) {
    model_shape s = wide_shape();
    sparse_file f;
    int64_t kept, bytes = read_share(&s, 0, 1, &f, &kept);
    int64_t edges = (int64_t)f.tensors * 2 * kPage; /* first and last page of each tensor */
    CU_ASSERT(bytes >= f.divided + f.whole);
    CU_ASSERT(bytes <= f.divided + f.whole + kPage);
    for (int r = 0; r < 2; r++) {
        bytes = read_share(&s, r, 2, &f, &kept);
        if (getenv("SHOW_FIGURES"))
            (void)printf("\n| rank %d of 2 | divided %lld | whole %lld | touched %lld |", r,
                         (long long)f.divided, (long long)f.whole, (long long)bytes);
        CU_ASSERT(bytes >= f.divided / 2);
        CU_ASSERT(bytes <= f.divided / 2 + f.whole + edges);
        CU_ASSERT(edges < f.divided / 8);
        CU_ASSERT_EQUAL(kept, 0);
    }
}

/* ---- whole experts on each rank (EP) ---- */

/* Whether an expert has the tensors of the whole model. */
static bool is_whole(const ffn_weights *f, const ffn_weights *of) {
    return f->gate.w == of->gate.w && f->up.w == of->up.w && f->down.w == of->down.w &&
           f->gate.rows == of->gate.rows && f->gate.first_row == 0 &&
           f->down.cols == of->down.cols && f->down.first_col == 0;
}

static void check_experts(const moe_weights *m, const moe_weights *whole, int experts, int rank,
                          int ranks) {
    CU_ASSERT_PTR_EQUAL(m->router.w, whole->router.w);
    CU_ASSERT_EQUAL(m->router.rows, whole->router.rows);
    for (int e = 0; e < experts; e++) {
        bool own = e / (experts / ranks) == rank;
        CU_ASSERT_EQUAL(is_whole(&m->expert[e], &whole->expert[e]), own);
        CU_ASSERT_EQUAL(m->expert[e].gate.w != NULL, own);
    }
}

/* Each routed expert is whole on exactly one rank. The shared experts are whole, or divided by TP.
 * Their columns then are a part of those of the whole. */
static void check_whole_experts(const char *name, const rank_layout *l) {
    tiny_model t;
    int ranks = rank_layout_size(l);
    tiny_open(&t, name);
    for (int r = 0; r < ranks; r++) {
        model_weights w = {0};
        model_shape shape = t.shape;
        const weights_share share = {r % l->parts, l->parts, r, ranks};
        CU_ASSERT_EQUAL_FATAL(rank_layout_shape(&shape, l, NULL), SNAP_OK);
        CU_ASSERT_EQUAL_FATAL(weights_bind_share(&w, &shape, &share, t.files, NULL), SNAP_OK);
        CU_ASSERT_EQUAL(weights_experts(&w) * ranks, t.shape.n_routed_experts);
        for (int i = 0; i < w.blocks; i++) {
            const moe_weights *m = &w.block[i].experts, *whole = &t.weights.block[i].experts;
            if (!w.block[i].moe)
                continue;
            check_experts(m, whole, t.shape.n_routed_experts, r, ranks);
            CU_ASSERT_EQUAL(m->shared.gate.rows * l->parts, whole->shared.gate.rows);
            CU_ASSERT_EQUAL(m->shared.down.first_col, r % l->parts * m->shared.down.cols);
        }
        weights_release(&w);
    }
    tiny_close(&t);
}

static void test_whole_experts(void) {
    static const char *const names[] = {"v2-lite", "v3", "longcat", NULL};
    const rank_layout dp = {2, 1, true}, tp = {1, 2, true};
    for (int i = 0; names[i]; i++) {
        check_whole_experts(names[i], &dp);
        check_whole_experts(names[i], &tp);
    }
}

static void check_drop(const checkpoint *c, const mat *m) {
    float *before = read_mat(m);
    checkpoint_drop_pages(c);
    float *after = read_mat(m);
    CU_ASSERT_EQUAL(memcmp(before, after, (size_t)(m->rows * m->cols) * sizeof *before), 0);
    free(before);
    free(after);
}

/* Dropping pages changes no number, neither of a file nor of a checkpoint in memory. */
static void test_dropped_pages(void) {
    tiny_model t;
    checkpoint *c = NULL;
    model_weights w = {0};
    tiny_open(&t, "v3");
    check_drop(t.files, &t.weights.embed);
    CU_ASSERT_EQUAL_FATAL(random_checkpoint(&c, &t.shape, NULL), SNAP_OK);
    CU_ASSERT_EQUAL_FATAL(weights_bind(&w, &t.shape, c, NULL), SNAP_OK);
    check_drop(c, &w.embed);
    weights_release(&w);
    checkpoint_close(c);
    tiny_close(&t);
}

/* ---- what is refused ---- */

static snap_status bind_second(const tiny_model *t, const model_shape *whole, snap_err *err) {
    model_weights w = {0};
    model_shape shape = *whole;
    const weights_share share = {1, 2, 0, 1};
    CU_ASSERT_EQUAL_FATAL(rank_layout_split(&shape, 2, err), SNAP_OK);
    snap_status st = weights_bind_share(&w, &shape, &share, t->files, err);
    weights_release(&w);
    return st;
}

/* The files must be those of the whole model. Those of one rank are refused before anything outside
 * of them could be read. */
static void test_other_files(void) {
    tiny_model whole, share;
    snap_err err = {0};
    tiny_open(&whole, "v3");
    tiny_open_share(&share, "v3", 1, 2);
    CU_ASSERT_EQUAL(bind_second(&share, &whole.shape, &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(err.text, "tensor 'model.layers.0.self_attn.q_b_proj.weight' has"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "config.json requires 2: [256, 48]"));
    tiny_close(&share);
    tiny_close(&whole);
}

static void test_truncated(void) {
    tiny_model t;
    checkpoint *c = NULL;
    struct stat sb;
    char path[96];
    snap_err err = {0};
    tiny_open_as(&t, "r1", TINY_E4M3);
    (void)snprintf(path, sizeof path, "%s/model.safetensors", t.dir);
    CU_ASSERT_EQUAL_FATAL(stat(path, &sb), 0);
    checkpoint_close(t.files);
    t.files = NULL;
    CU_ASSERT_EQUAL_FATAL(truncate(path, sb.st_size - 1), 0);
    CU_ASSERT_EQUAL(checkpoint_open(&c, t.dir, &err), SNAP_E_INPUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "outside the file's"));
    tiny_close(&t);
}

CU_TestInfo tests_shares[] = {
    {"the shares of all ranks together make up the model", test_joined},
    {"a share is the checkpoint of a rank", test_checkpoint_of_a_rank},
    {"a rank reads only the bytes of its share", test_bytes_touched},
    {"dropped pages", test_dropped_pages},
    {"each routed expert is on one rank", test_whole_experts},
    {"files of another model", test_other_files},
    {"a truncated file", test_truncated},
    CU_TEST_INFO_NULL,
};
