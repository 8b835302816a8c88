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
const double split_start_s = 20, split_weights_s = 3600, split_spin_s = 1e-3;

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
    char hash[HASH_HEX] = "random", layout[RANK_LAYOUT_TEXT];
    buf files = {0};
    if (stat("/proc/self/exe", &program) != 0)
        return err_set_errno(err, "cannot read /proc/self/exe");
    if (!o->random) {
        TRY(list_files(&files, o->dir, err));
        TRY(hash_bytes(files.data, files.len, hash, err));
    }
    (void)buf_puts(out, "program=");
    add_file(out, "file", &program);
    rank_layout_text(&o->layout, layout);
    (void)buf_printf(out, "layout=%s\ncheckpoint=%.300s, files %.16s\n", layout, o->dir, hash);
    TRY(buf_check(out, "the facts to compare", err));
cleanup:
    buf_release(&files);
    return st;
}

weights_share split_share(const rank_layout *l, int rank) {
    return (weights_share){.rank = rank % l->parts,
                           .parts = l->parts,
                           .expert_rank = l->whole_experts ? rank : 0,
                           .expert_ranks = l->whole_experts ? rank_layout_size(l) : 1};
}

/* The ranks of a replica, which add up their sums. */
static sums_options sums_of_replica(const split_order *o, ranks *group) {
    int parts = o->layout.parts;
    return (sums_options){.group = group,
                          .first = ranks_rank(group) / parts * parts,
                          .step = 1,
                          .size = parts,
                          .device = o->device,
                          .most_bytes = (int64_t)o->max_rows * o->hidden_size * 4,
                          .one_shot_bytes = -1};
}

/* The ranks of different replicas, which exchange rows of experts and their outputs. */
static sums_options rows_of_experts(const split_order *o, ranks *group) {
    /* at most 16 bytes more than message_row() in cuda/rows.h */
    int64_t row = 2 * (int64_t)o->hidden_size + 8 * (int64_t)o->experts_per_token + 16;
    sums_options how = sums_of_replica(o, group);
    how.first = ranks_rank(group) % o->layout.parts;
    how.step = o->layout.parts;
    how.size = o->layout.replicas;
    how.gather_bytes = o->max_rows * row;
    return how;
}

static snap_status open_comm(comm **out, const split_order *o, const sums_options *how, channel *to,
                             snap_err *err) {
    host_sums_options on_cpu = {how->group, how->first, how->step, how->size};
    return o->cuda ? sums_cuda_open(out, how, err) : host_sums_open(out, &on_cpu, to, err);
}

snap_status split_open_comms(split_comms *out, const split_order *o, ranks *group, channel *to,
                             snap_err *err) {
    snap_status st = SNAP_OK;
    *out = (split_comms){0};
    sums_options sums = sums_of_replica(o, group), rows = rows_of_experts(o, group);
    if (o->layout.parts > 1)
        TRY(open_comm(&out->sums, o, &sums, to, err));
    if (o->layout.replicas > 1)
        TRY(open_comm(&out->experts, o, &rows, to, err));
cleanup:
    return st;
}

static void close_comm(comm *c, const split_order *o) {
    if (o->cuda)
        sums_cuda_close(c);
    else
        host_sums_close(c);
}

void split_close_comms(const split_comms *c, const split_order *o) {
    close_comm(c->experts, o);
    close_comm(c->sums, o);
}
