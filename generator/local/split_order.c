#include "generator/local/split_order.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/text.h"
#include "generator/local/cuda/sums.h"
#include "generator/local/ranks/host_sums.h"

const char split_address[] = "127.0.0.1";
const double split_start_s = 20, split_weights_s = 3600;

static void add_file(buf *out, const char *name, const struct stat *s) {
    (void)buf_printf(out, "%s %lld:%lld %lld %lld.%09ld\n", name, (long long)s->st_dev,
                     (long long)s->st_ino, (long long)s->st_size, (long long)s->st_mtim.tv_sec,
                     s->st_mtim.tv_nsec);
}

/* Lists the files of a checkpoint that a model is made of. */
static snap_status list_files(buf *out, const char *dir, snap_err *err) {
    struct dirent **names = NULL;
    int n = scandir(dir, &names, NULL, alphasort);
    if (n < 0)
        return err_set_errno(err, "cannot read the folder %s", dir);
    for (int i = 0; i < n; i++) {
        char path[SPLIT_PATH + 300];
        struct stat s;
        const char *name = names[i]->d_name;
        (void)snprintf(path, sizeof path, "%s/%s", dir, name);
        if ((text_ends(name, ".safetensors") || text_ends(name, ".json")) && stat(path, &s) == 0)
            add_file(out, name, &s);
        free(names[i]);
    }
    free(names);
    return buf_check(out, "the list of the checkpoint's files", err);
}

snap_status split_facts(buf *out, const split_order *o, snap_err *err) {
    snap_status st = SNAP_OK;
    struct stat program;
    char hash[HASH_HEX] = "random";
    buf files = {0};
    if (stat("/proc/self/exe", &program) != 0)
        return err_set_errno(err, "cannot read /proc/self/exe");
    if (!o->random) {
        TRY(list_files(&files, o->dir, err));
        TRY(hash_bytes(files.data, files.len, hash, err));
    }
    (void)buf_puts(out, "program=");
    add_file(out, "file", &program);
    (void)buf_printf(out, "layout=TP%d\ncheckpoint=%.300s, files %.16s\n", o->parts, o->dir, hash);
    TRY(buf_check(out, "the facts to compare", err));
cleanup:
    buf_release(&files);
    return st;
}

snap_status split_open_comm(comm **out, const split_order *o, ranks *group, channel *to,
                            snap_err *err) {
    sums_options how = {.group = group,
                        .size = o->parts,
                        .device = o->device,
                        .most_bytes = (int64_t)o->max_rows * o->hidden_size * 4,
                        .one_shot_bytes = -1};
    return o->cuda ? sums_cuda_open(out, &how, err) : host_sums_open(out, group, to, err);
}

void split_close_comm(comm *c, const split_order *o) {
    if (o->cuda)
        sums_cuda_close(c);
    else
        host_sums_close(c);
}
