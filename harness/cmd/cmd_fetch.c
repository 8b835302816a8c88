/* cmd_fetch.c - `snapmla fetch` */
#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/term.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/print.h"
#include "harness/cmd/print_fetch.h"
#include "harness/fetch/fetch.h"

static fetch_options o = {.dir = "datasets", .wait_s = 1};
static fetch_wanted wanted;
static bool list, accepted;
static int64_t retries = 4;

static const opt options[] = {
    {OPT_STR, "dir", 'd', &o.dir, "DIR", "folder of the data sets", 0, 0},
    {OPT_STR, "mirror", 'm', &o.mirror, "URL",
     "download from this copy of a data folder instead of the official sources", 0, 0},
    {OPT_FLAG, "list", 'l', &list, NULL,
     "list the data sets and which of them DIR contains; download nothing", 0, 0},
    {OPT_FLAG, "accept-licences", 0, &accepted, NULL, "do not print the licences and notices", 0,
     0},
    {OPT_INT, "retries", 0, &retries, "N",
     "how many times in a row a failed download is tried again", 0, 100},
    {OPT_STR, "manifest", 0, &wanted.path, "FILE",
     "list of data sets; default: the shipped datasets/manifest.json", 0, 0},
    {.type = OPT_END},
};

typedef struct {
    js *rows; /* for --json; else NULL */
    size_t n, unverified;
} fetched;

/* The checksum of a file that cannot be compared: two machines can at least compare theirs. */
static void sum_of(const manifest_file *f, char sum[HASH_HEX]) {
    char *path = fs_join(o.dir, f->path);
    if (!path || hash_file(path, sum, NULL) != SNAP_OK)
        (void)snprintf(sum, HASH_HEX, "unknown");
    free(path);
}

static void on_file(void *ctx, const manifest_set *set, const manifest_file *f, fetch_state state) {
    fetched *all = ctx;
    const char *name = fetch_state_name(state);
    bool verified = fetch_is_verified(f, state, o.mirror);
    char sum[HASH_HEX] = "";
    all->n++;
    all->unverified += !verified;
    if (!verified)
        sum_of(f, sum);
    if (!all->rows) {
        (void)printf("%-9s %s/%s%s%s\n", name, o.dir, f->path,
                     verified ? "" : " UNVERIFIED, sha256 ", sum);
        (void)fflush(stdout);
        return;
    }
    js *row = js_new_object();
    (void)js_set_str(row, "set", set->name);
    (void)js_set_str(row, "path", f->path);
    (void)js_set_str(row, "state", name);
    (void)js_set_bool(row, "verified", verified);
    (void)js_set_str(row, "sha256", verified ? f->sha256 : sum);
    (void)js_push_new(all->rows, row);
}

static snap_status fetch(const fetch_choice *c, bool json, snap_err *err) {
    fetched all = {.rows = json ? js_new_array() : NULL};
    snap_status printed = SNAP_OK, st = fetch_sets(&c->all, c->chosen, &o, on_file, &all, err);
    if (json)
        printed = print_json(all.rows, st == SNAP_OK ? err : NULL);
    if (all.unverified)
        term_warn("%zu of %zu files are UNVERIFIED: the manifest has no sha256 for them, so "
                  "nothing shows that they are the published data; results say so, too",
                  all.unverified, all.n);
    js_free(all.rows);
    return st == SNAP_OK ? printed : st;
}

static snap_status run(opt_shared *shared, snap_err *err) {
    fetch_choice c;
    wanted.names = shared->args;
    wanted.n = shared->n_args;
    wanted.large = list;
    o.retries = (int)retries;
    o.cancel = &cmd_cancelled;
    snap_status st = fetch_choose(&c, &wanted, err);
    if (st == SNAP_OK && list) {
        st = print_fetch_list(&c, o.dir, shared->json, err);
    } else if (st == SNAP_OK) {
        if (!accepted && !shared->quiet)
            print_fetch_notices(&c);
        st = fetch(&c, shared->json, err);
    }
    fetch_choice_release(&c);
    return st;
}

const opt_command cmd_fetch = {
    .name = "fetch",
    .summary = "download the public data sets and check them",
    .synopsis = "[options] [NAME...]",
    .about = "Downloads the named data sets into the data folder. A data set has the name of its\n"
             "task. Without a name it downloads all data sets except the large ones. Every file\n"
             "is compared with the sha256 in the manifest and gets its final name only when it\n"
             "is complete. A file without a sha256 in the manifest is marked UNVERIFIED, and so\n"
             "are results that use it. An interrupted transfer continues where it stopped.\n"
             "datasets/fetch.sh does the same with curl or wget. The data sets belong to their\n"
             "authors, so their licences and notices are printed.",
    .examples = "  snapmla fetch --list\n"
                "  snapmla fetch aime24 aime25 math500\n"
                "  snapmla fetch --dir ../data --mirror http://mirror.example/datasets gsm8k",
    .options = options,
    .max_args = -1,
    .run = run,
};
