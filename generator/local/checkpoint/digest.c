#include "generator/local/checkpoint/digest.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/parallel.h"
#include "base/text.h"

typedef struct {
    char *path;
    const char *name; /* borrowed from the directory entry */
    char hex[HASH_HEX];
    snap_err err;
} member;

static int is_member(const struct dirent *e) {
    static const char *const ends[] = {".safetensors", ".json",  ".model",
                                       ".tiktoken",    ".jinja", ".txt"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends && e->d_name[0] != '.'; i++)
        if (text_ends(e->d_name, ends[i]))
            return 1;
    return 0;
}

/* Compares bytes, independent of the locale. */
static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void hash_member(void *ctx, int worker, int64_t i) {
    (void)worker;
    member *m = (member *)ctx + i;
    if (hash_file(m->path, m->hex, &m->err) != SNAP_OK)
        m->hex[0] = '\0';
}

/* Collects the regular files among the entries. *n = their number; the caller frees them. */
static snap_status collect(member **out, size_t *n, const char *dir, struct dirent **entries,
                           int all, snap_err *err) {
    struct stat s;
    member *m = calloc((size_t)all + 1, sizeof *m);
    *out = m;
    if (!m)
        return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", dir);
    for (int i = 0; i < all; i++) {
        member *to = &m[*n];
        to->name = entries[i]->d_name;
        to->path = fs_join(dir, to->name);
        if (!to->path)
            return err_set(err, SNAP_E_NOMEM, "out of memory for '%s'", dir);
        if (stat(to->path, &s) == 0 && S_ISREG(s.st_mode))
            ++*n;
        else
            free(to->path);
    }
    return *n ? SNAP_OK : err_set(err, SNAP_E_INPUT, "'%s' contains no files of a checkpoint", dir);
}

/* Hashes the output that sha256sum would print. */
static snap_status join(const member *m, size_t n, char out[HASH_HEX], snap_err *err) {
    buf lines = {0};
    snap_status st = SNAP_OK;
    for (size_t i = 0; i < n; i++) {
        if (!m[i].hex[0])
            TRY(err_set(err, m[i].err.code, "%s", m[i].err.text));
        (void)buf_printf(&lines, "%s  %s\n", m[i].hex, m[i].name);
    }
    TRY(buf_check(&lines, "a checkpoint's hashes", err));
    TRY(hash_bytes(lines.data, lines.len, out, err));
cleanup:
    buf_release(&lines);
    return st;
}

snap_status checkpoint_digest(const char *dir, char out[HASH_HEX], snap_err *err) {
    struct dirent **entries = NULL;
    parallel *pool = NULL;
    size_t n = 0;
    snap_status st = SNAP_OK;
    member *m = NULL;
    int all = scandir(dir, &entries, is_member, by_name);
    if (all < 0)
        return err_set_errno(err, "cannot read the folder '%s'", dir);
    TRY(collect(&m, &n, dir, entries, all, err));
    TRY(parallel_create(&pool, 0, err));
    parallel_for(pool, (int64_t)n, hash_member, m);
    TRY(join(m, n, out, err));
cleanup:
    parallel_free(pool);
    for (size_t i = 0; i < n; i++)
        free(m[i].path);
    for (int i = 0; i < all; i++)
        free(entries[i]);
    free(entries);
    free(m);
    return st;
}
