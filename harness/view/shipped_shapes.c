#include "harness/view/shipped_shapes.h"

#include <string.h>

#include "base/fault.h"
#include "base/json.h"
#include "harness/record/info.h"

enum { kFileLimit = 1 << 20, kContent = 512, kRope = 64 /* the widths of `bench` by default */ };

/* Whether a file has only options of `bench` that change neither what a cell computes nor how it is
 * compared. The command of a gap gives the scope and the distribution itself. */
static bool has_plain_keys(const js *file) {
    static const char *const kPlain[] = {
        "why",   "heads",    "s-q",         "batch",   "context", "shapes",     "scaled",
        "scope", "min-time", "min-samples", "timeout", "rest",    "time-limit", "distribution"};
    for (void *it = js_first(file); it; it = js_next(file, it)) {
        bool plain = false;
        for (size_t i = 0; i < sizeof kPlain / sizeof *kPlain; i++)
            plain |= strcmp(js_key(it), kPlain[i]) == 0;
        if (!plain)
            return false;
    }
    return true;
}

static void put_value(buf *out, const js *v) {
    if (js_is_str(v))
        (void)buf_puts(out, js_str(v));
    else
        (void)buf_printf(out, "%lld", (long long)js_int(v));
}

/* The items of an array, or one value, separated by commas; "" if the key is absent. NULL if memory
 * is exhausted. */
static const char *list_of(arena *mem, const js *file, const char *key) {
    const js *v = js_get(file, key);
    buf text = {0};
    if (js_is_array(v))
        for (size_t i = 0; i < js_len(v); i++) {
            (void)buf_puts(&text, i ? "," : "");
            put_value(&text, js_at(v, i));
        }
    else if (v)
        put_value(&text, v);
    const char *out = text.failed ? NULL : arena_strdup(mem, buf_str(&text));
    buf_release(&text);
    return out;
}

/* Reads the shapes of one file: a list of them, or else all combinations of four axes. *n is 0 if
 * it has neither. False: out of memory. */
static bool read_shapes(arena *mem, const js *file, const bench_shape **out, int *n) {
    const char *list = list_of(mem, file, "shapes"), *axes[] = {"heads", "s-q", "batch", "context"};
    bench_grid *grid = arena_alloc(mem, 1, sizeof *grid);
    snap_err unused;
    *n = 0;
    for (size_t i = 0; list && i < sizeof axes / sizeof *axes; i++)
        axes[i] = list[0] ? "1" : list_of(mem, file, axes[i]);
    if (!grid || !list || !axes[0] || !axes[1] || !axes[2] || !axes[3])
        return false;
    bench_grid_text text = {.arms = "bf16",
                            .scopes = "kernel",
                            .heads = axes[0],
                            .s_q = axes[1],
                            .batch = axes[2],
                            .context = axes[3],
                            .shapes = list,
                            .d_c = kContent,
                            .d_r = kRope};
    if (bench_grid_parse(grid, &text, &unused) != SNAP_OK)
        return true;
    bench_shape *shapes = arena_alloc(mem, (size_t)bench_grid_shapes(grid), sizeof *shapes);
    for (int i = 0; shapes && i < bench_grid_shapes(grid); i++)
        shapes[(*n)++] = bench_grid_shape(grid, i);
    *out = shapes;
    return shapes != NULL;
}

bool shipped_shapes_list(arena *mem, shipped_shapes **out, size_t *n) {
    fault_mark before = fault_begin();
    js *rows = shipped_configs();
    *n = 0;
    *out = arena_alloc(mem, js_len(rows) + 1, sizeof **out);
    for (size_t i = 0; *out && i < js_len(rows); i++) {
        snap_err unused;
        const char *path = js_get_str(js_at(rows, i), "path"),
                   *name = js_get_str(js_at(rows, i), "name");
        js *file = path ? js_parse_file(path, kFileLimit, &unused) : NULL;
        shipped_shapes *s = &(*out)[*n];
        s->name = name ? arena_strdup(mem, name) : NULL;
        if (s->name && file && has_plain_keys(file) && read_shapes(mem, file, &s->shapes, &s->n) &&
            s->n)
            (*n)++;
        js_free(file);
    }
    js_free(rows);
    return !fault_since(before);
}
