#include "generator/local/checkpoint/safetensors.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"

enum { kHeaderMax = 32 << 20, kLengthBytes = 8 };

typedef struct {
    safetensors *out;
    const unsigned char *data; /* after the header */
    size_t data_bytes;
    const char *path;
} reader;

static const struct {
    const char *name;
    size_t bytes;
    tensor_dtype dtype;
} kDtypes[] = {
    {"BF16", 2, DTYPE_BF16},       {"F16", 2, DTYPE_F16},       {"F32", 4, DTYPE_F32},
    {"F8_E4M3", 1, DTYPE_F8_E4M3}, {"BOOL", 1, DTYPE_OTHER},    {"U8", 1, DTYPE_OTHER},
    {"I8", 1, DTYPE_OTHER},        {"F8_E5M2", 1, DTYPE_OTHER}, {"I16", 2, DTYPE_OTHER},
    {"U16", 2, DTYPE_OTHER},       {"I32", 4, DTYPE_OTHER},     {"U32", 4, DTYPE_OTHER},
    {"I64", 8, DTYPE_OTHER},       {"U64", 8, DTYPE_OTHER},     {"F64", 8, DTYPE_OTHER},
};

/* ---- one tensor ---- */

static snap_status read_dtype(tensor *t, const js *spec, size_t *element, snap_err *err) {
    const char *name = js_get_str(spec, "dtype");
    for (size_t i = 0; name && i < sizeof kDtypes / sizeof *kDtypes; i++)
        if (strcmp(name, kDtypes[i].name) == 0) {
            t->dtype = kDtypes[i].dtype;
            *element = kDtypes[i].bytes;
            return SNAP_OK;
        }
    return err_set(err, SNAP_E_UNSUPPORTED, "dtype '%.40s' is not supported", name ? name : "");
}

/* *bytes: the size of a tensor of this shape */
static snap_status read_shape(tensor *t, const js *spec, size_t element, size_t *bytes,
                              snap_err *err) {
    const js *shape = js_get_array(spec, "shape");
    if (!shape || js_len(shape) > TENSOR_DIMS)
        return err_set(err, SNAP_E_INPUT, "'shape' must have at most %d dimensions", TENSOR_DIMS);
    t->n_dims = (int)js_len(shape);
    *bytes = element;
    for (int i = 0; i < TENSOR_DIMS; i++) {
        const js *dim = js_at(shape, (size_t)i);
        t->shape[i] = dim ? js_int(dim) : 1;
        if (dim && (!js_is_int(dim) || js_int(dim) < 0))
            return err_set(err, SNAP_E_INPUT, "'shape' must contain sizes of 0 or more");
        if (__builtin_mul_overflow(*bytes, (size_t)t->shape[i], bytes))
            return err_set(err, SNAP_E_INPUT, "the product of its shape overflows");
    }
    return SNAP_OK;
}

static snap_status read_offsets(const reader *r, tensor *t, const js *spec, size_t bytes,
                                snap_err *err) {
    const js *offsets = js_get_array(spec, "data_offsets");
    const js *first = js_at(offsets, 0), *last = js_at(offsets, 1);
    if (js_len(offsets) != 2 || !js_is_int(first) || !js_is_int(last))
        return err_set(err, SNAP_E_INPUT, "'data_offsets' must be two integers");
    int64_t begin = js_int(first), end = js_int(last);
    if (begin < 0 || end < begin || (uint64_t)end > r->data_bytes)
        return err_set(err, SNAP_E_INPUT,
                       "its bytes %lld to %lld lie outside the file's %zu bytes of data",
                       (long long)begin, (long long)end, r->data_bytes);
    if ((uint64_t)(end - begin) != bytes)
        return err_set(err, SNAP_E_INPUT, "it has %lld bytes, but its shape and dtype require %zu",
                       (long long)(end - begin), bytes);
    t->data = r->data + begin;
    t->bytes = bytes;
    return SNAP_OK;
}

static snap_status read_tensor(const reader *r, const char *name, const js *spec, snap_err *err) {
    tensor *t = &r->out->tensors[r->out->n];
    size_t element = 0, bytes = 0;
    snap_status st = SNAP_OK;
    *t = (tensor){.name = arena_strdup(&r->out->mem, name), .file = r->path};
    if (!t->name)
        return err_set(err, SNAP_E_NOMEM, "%s: out of memory for tensor '%s'", r->path, name);
    if (!js_is_object(spec))
        st = err_set(err, SNAP_E_INPUT, "its description must be an object");
    if (st == SNAP_OK)
        st = read_dtype(t, spec, &element, err);
    if (st == SNAP_OK)
        st = read_shape(t, spec, element, &bytes, err);
    if (st == SNAP_OK)
        st = read_offsets(r, t, spec, bytes, err);
    if (st != SNAP_OK)
        err_prefix(err, "%s: tensor '%.120s'", r->path, name);
    r->out->n++;
    return st;
}

/* ---- the header ---- */

static size_t count_keys(js *header) {
    size_t n = 0;
    for (void *it = js_first(header); it; it = js_next(header, it))
        n++;
    return n;
}

static int by_place(const void *a, const void *b) {
    const tensor *x = a, *y = b;
    if (x->data != y->data)
        return x->data < y->data ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* Checks that there are no gaps or overlaps. The format has neither; with either, the file is
 * damaged. */
static snap_status check_cover(const reader *r, snap_err *err) {
    const unsigned char *at = r->data;
    const tensor *before = NULL;
    for (size_t i = 0; i < r->out->n; i++) {
        const tensor *t = &r->out->tensors[i];
        const unsigned char *begin = t->data;
        if (begin < at)
            return err_set(err, SNAP_E_INPUT, "%s: tensors '%.120s' and '%.120s' overlap", r->path,
                           before ? before->name : "", t->name);
        if (begin > at)
            return err_set(err, SNAP_E_INPUT,
                           "%s: %zu bytes before tensor '%.120s' belong to no tensor", r->path,
                           (size_t)(begin - at), t->name);
        at = begin + t->bytes;
        before = t;
    }
    size_t rest = (size_t)(r->data + r->data_bytes - at);
    return rest == 0 ? SNAP_OK
                     : err_set(err, SNAP_E_INPUT, "%s: %zu bytes at the end belong to no tensor",
                               r->path, rest);
}

static snap_status read_header(const reader *r, js *header, snap_err *err) {
    size_t n = count_keys(header);
    snap_status st = SNAP_OK;
    if (!js_is_object(header))
        return err_set(err, SNAP_E_INPUT, "%s: the header must be an object", r->path);
    r->out->tensors = arena_alloc(&r->out->mem, n + 1, sizeof *r->out->tensors);
    if (!r->out->tensors)
        return err_set(err, SNAP_E_NOMEM, "%s: out of memory for %zu tensors", r->path, n);
    for (void *it = js_first(header); it && st == SNAP_OK; it = js_next(header, it))
        if (strcmp(js_key(it), "__metadata__") != 0)
            st = read_tensor(r, js_key(it), js_value(it), err);
    if (st != SNAP_OK)
        return st;
    qsort(r->out->tensors, r->out->n, sizeof *r->out->tensors, by_place);
    return check_cover(r, err);
}

static uint64_t load_length(const unsigned char *p) {
    uint64_t n = 0;
    for (int i = kLengthBytes - 1; i >= 0; i--)
        n = n << 8 | p[i];
    return n;
}

snap_status safetensors_parse(safetensors *out, const void *bytes, size_t n, const char *path,
                              snap_err *err) {
    const unsigned char *p = bytes;
    *out = (safetensors){0};
    char *kept = arena_strdup(&out->mem, path);
    if (!kept)
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", path);
    uint64_t length = p && n >= kLengthBytes ? load_length(p) : UINT64_MAX;
    if (length > kHeaderMax || length > n - kLengthBytes)
        return err_set(
            err, SNAP_E_INPUT,
            "%s: not a safetensors file, or truncated: a header of %llu bytes in a file of %zu "
            "(at most %d)",
            path, (unsigned long long)length, n, kHeaderMax);
    size_t header_bytes = (size_t)length;
    js *header = js_parse((const char *)p + kLengthBytes, header_bytes, path, err);
    if (!header)
        return err && err->code ? err->code : SNAP_E_INPUT;
    const reader r = {.out = out,
                      .data = p + kLengthBytes + header_bytes,
                      .data_bytes = n - kLengthBytes - header_bytes,
                      .path = kept};
    snap_status st = read_header(&r, header, err);
    js_free(header);
    return st;
}

/* ---- files ---- */

static snap_status map_file(int fd, const char *path, void **map, size_t *n, snap_err *err) {
    struct stat sb;
    if (fstat(fd, &sb) != 0)
        return err_set_errno(err, "cannot read the status of '%s'", path);
    if (sb.st_size < kLengthBytes)
        return err_set(err, SNAP_E_INPUT, "%s: not a safetensors file", path);
    *n = (size_t)sb.st_size;
    *map = mmap(NULL, *n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (*map == MAP_FAILED) {
        *map = NULL;
        return err_set_errno(err, "cannot map '%s'", path);
    }
    return SNAP_OK;
}

snap_status safetensors_open(safetensors *out, const char *path, snap_err *err) {
    void *map = NULL;
    size_t n = 0;
    *out = (safetensors){0};
    int fd;
    snap_status st = fs_open_regular(path, &fd, err);
    if (st != SNAP_OK)
        return st;
    st = map_file(fd, path, &map, &n, err);
    (void)close(fd);
    if (st == SNAP_OK)
        st = safetensors_parse(out, map, n, path, err);
    out->map = map;
    out->map_bytes = n;
    return st;
}

void safetensors_drop_pages(const safetensors *s) {
    if (s->map)
        (void)madvise(s->map, s->map_bytes, MADV_DONTNEED);
}

void safetensors_close(safetensors *s) {
    arena_release(&s->mem);
    if (s->map)
        (void)munmap(s->map, s->map_bytes);
    *s = (safetensors){0};
}
