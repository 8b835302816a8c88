#include "generator/local/checkpoint/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"
#include "generator/local/checkpoint/safetensors.h"

enum { kShardsMax = 4096, kIndexMax = 64 << 20 };

struct checkpoint {
    safetensors *shards;
    char **names; /* file names of the shards, without the folder */
    size_t n_shards;
    tensor *tensors; /* tensors of all shards, sorted by name */
    size_t n;
    arena mem; /* owns the data of tensors that are in no file */
};

static const char kSingle[] = "model.safetensors", kIndex[] = "model.safetensors.index.json";

/* ---- shards ---- */

/* Whether @name can be a .safetensors file in the same folder. An index may not refer to files
 * elsewhere, nor to itself or another index. */
static bool is_shard_name(const char *name) {
    return *name != '\0' && *name != '.' && !strchr(name, '/') && text_ends(name, ".safetensors");
}

static snap_status add_shard(checkpoint *c, const char *name, snap_err *err) {
    for (size_t i = c->n_shards; i > 0; i--) /* mostly the last shard again */
        if (strcmp(c->names[i - 1], name) == 0)
            return SNAP_OK;
    if (!is_shard_name(name))
        return err_set(err, SNAP_E_INPUT,
                       "shard '%.120s' is not a .safetensors file in this folder", name);
    if (c->n_shards == kShardsMax)
        return err_set(err, SNAP_E_INPUT, "more than %d shards", kShardsMax);
    c->names[c->n_shards] = strdup(name);
    if (!c->names[c->n_shards])
        return err_set(err, SNAP_E_NOMEM, "out of memory for a shard's name");
    c->n_shards++;
    return SNAP_OK;
}

static snap_status list_shards(checkpoint *c, js *map, snap_err *err) {
    snap_status st = SNAP_OK;
    for (void *it = js_first(map); it && st == SNAP_OK; it = js_next(map, it)) {
        const char *name = js_str(js_value(it));
        st = name ? add_shard(c, name, err)
                  : err_set(err, SNAP_E_INPUT, "tensor '%.120s': its shard must be a string",
                            js_key(it));
    }
    return st;
}

static snap_status open_shards(checkpoint *c, const char *dir, snap_err *err) {
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < c->n_shards && st == SNAP_OK; i++) {
        char *path = fs_join(dir, c->names[i]);
        st = path ? safetensors_open(&c->shards[i], path, err)
                  : err_set(err, SNAP_E_NOMEM, "out of memory for a path");
        free(path);
    }
    return st;
}

/* ---- the tensors of all shards ---- */

static int by_name(const void *a, const void *b) {
    const tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static snap_status sort(checkpoint *c, snap_err *err) {
    qsort(c->tensors, c->n, sizeof *c->tensors, by_name);
    for (size_t i = 1; i < c->n; i++)
        if (strcmp(c->tensors[i - 1].name, c->tensors[i].name) == 0)
            return err_set(err, SNAP_E_INPUT, "tensor '%.120s' is in both '%s' and '%s'",
                           c->tensors[i].name, c->tensors[i - 1].file, c->tensors[i].file);
    return SNAP_OK;
}

static snap_status collect(checkpoint *c, snap_err *err) {
    size_t n = 0;
    for (size_t i = 0; i < c->n_shards; i++)
        n += c->shards[i].n;
    c->tensors = calloc(n + 1, sizeof *c->tensors);
    if (!c->tensors)
        return err_set(err, SNAP_E_NOMEM, "out of memory for %zu tensors", n);
    for (size_t i = 0; i < c->n_shards; i++)
        for (size_t k = 0; k < c->shards[i].n; k++)
            c->tensors[c->n++] = c->shards[i].tensors[k];
    return sort(c, err);
}
static bool is_in(const tensor *t, const char *shard) {
    const char *slash = strrchr(t->file, '/');
    return strcmp(slash ? slash + 1 : t->file, shard) == 0;
}

static snap_status check_index(const checkpoint *c, js *map, snap_err *err) {
    for (void *it = js_first(map); it; it = js_next(map, it)) {
        const tensor *t = checkpoint_find(c, js_key(it));
        const char *shard = js_str(js_value(it));
        if (!t || !shard || !is_in(t, shard))
            return err_set(err, SNAP_E_INPUT, "tensor '%.120s' is not in '%.120s'", js_key(it),
                           shard ? shard : "");
    }
    return SNAP_OK;
}

/* ---- opening ---- */

static checkpoint *checkpoint_new(void) {
    checkpoint *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->shards = calloc(kShardsMax, sizeof *c->shards);
    c->names = calloc(kShardsMax, sizeof *c->names);
    if (c->shards && c->names)
        return c;
    checkpoint_close(c);
    return NULL;
}

static snap_status open_indexed(checkpoint *c, const char *dir, const char *path, snap_err *err) {
    js *map, *index = js_parse_file(path, kIndexMax, err);
    snap_status st = SNAP_OK;
    if (!index)
        return err && err->code ? err->code : SNAP_E_INPUT;
    TRY(js_need_object(index, "weight_map", &map, path, err));
    TRY(list_shards(c, map, err));
    TRY(open_shards(c, dir, err));
    TRY(collect(c, err));
    TRY(check_index(c, map, err));
cleanup:
    if (st == SNAP_E_INPUT && err && !strstr(err->text, dir))
        err_prefix(err, "%s", path);
    js_free(index);
    return st;
}

static snap_status open_single(checkpoint *c, const char *dir, snap_err *err) {
    snap_status st = SNAP_OK;
    TRY(add_shard(c, kSingle, err));
    TRY(open_shards(c, dir, err));
    TRY(collect(c, err));
cleanup:
    return st;
}

snap_status checkpoint_open(checkpoint **out, const char *dir, snap_err *err) {
    checkpoint *c = checkpoint_new();
    char *index = fs_join(dir, kIndex);
    snap_status st = SNAP_E_NOMEM;
    *out = NULL;
    if (!c || !index)
        (void)err_set(err, st, "out of memory for a checkpoint");
    else
        st = fs_exists(index) ? open_indexed(c, dir, index, err) : open_single(c, dir, err);
    free(index);
    if (st == SNAP_OK)
        *out = c;
    else
        checkpoint_close(c);
    return st;
}

snap_status checkpoint_of(checkpoint **out, tensor *tensors, size_t n, arena *mem, snap_err *err) {
    snap_status st = SNAP_OK;
    checkpoint *c = calloc(1, sizeof *c);
    *out = NULL;
    if (!c) {
        free(tensors);
        arena_release(mem);
        return err_set(err, SNAP_E_NOMEM, "out of memory for a checkpoint");
    }
    *c = (checkpoint){.tensors = tensors, .n = n, .mem = *mem};
    *mem = (arena){0};
    TRY(sort(c, err));
    *out = c;
    c = NULL;
cleanup:
    checkpoint_close(c);
    return st;
}

void checkpoint_close(checkpoint *c) {
    if (!c)
        return;
    for (size_t i = 0; i < c->n_shards; i++) {
        safetensors_close(&c->shards[i]);
        free(c->names[i]);
    }
    free(c->shards);
    free(c->names);
    free(c->tensors);
    arena_release(&c->mem);
    free(c);
}

void checkpoint_drop_pages(const checkpoint *c) {
    for (size_t i = 0; i < c->n_shards; i++)
        safetensors_drop_pages(&c->shards[i]);
}

const tensor *checkpoint_find(const checkpoint *c, const char *name) {
    const tensor key = {.name = name};
    return bsearch(&key, c->tensors, c->n, sizeof *c->tensors, by_name);
}
