#include "generator/local/ranks/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

typedef struct {
    const char *rank, *size, *local_rank;
    const char *only_with; /* a variable that must be set as well; NULL = none */
} launcher_names;

static const launcher_names kLaunchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", NULL},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", NULL},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALRANKID"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", NULL},
};
enum { kLauncherCount = sizeof kLaunchers / sizeof *kLaunchers };

/* Reads the integer variable @name, which must be within @low..@high. */
static snap_status read_number(const char *name, int64_t low, int64_t high, int *out,
                               snap_err *err) {
    const char *text = getenv(name);
    int64_t v = 0;
    if (!text)
        return err_set(err, SNAP_E_USAGE, "the environment variable %s is not set", name);
    if (!text_to_int(text, &v) || v < low || v > high)
        return err_set(err, SNAP_E_USAGE,
                       "the environment variable %s must be an integer within %lld..%lld, got '%s'",
                       name, (long long)low, (long long)high, text);
    *out = (int)v;
    return SNAP_OK;
}

static snap_status read_port(int *port, snap_err *err) {
    const char *store = getenv("TORCHELASTIC_USE_AGENT_STORE");
    /* Whether torchrun listens at the port. If launch_ranks() has started this process, the port is
     * its own, and a torchrun has only started launch_ranks(). */
    bool taken = store && strcmp(store, "True") == 0 && !getenv(RANKS_REPORT);
    if (getenv("MASTER_PORT")) {
        snap_status st = read_number("MASTER_PORT", 1, taken ? 65534 : 65535, port, err);
        if (st != SNAP_OK)
            return st;
    }
    *port += taken;
    return SNAP_OK;
}

static const launcher_names *find_launcher(void) {
    for (int i = 0; i < kLauncherCount; i++) {
        const launcher_names *l = &kLaunchers[i];
        const char *size = getenv(l->size);
        bool alone = size && strcmp(size, "1") == 0;
        if ((getenv(l->rank) || size) && (!l->only_with || getenv(l->only_with)) && !alone)
            return l;
    }
    return NULL;
}

int rank_place_size(void) {
    int size = 0;
    const launcher_names *l = find_launcher();
    return l && read_number(l->size, 2, INT32_MAX, &size, NULL) == SNAP_OK ? size : 0;
}

snap_status rank_place_read(rank_place *out, snap_err *err) {
    snap_status st;
    const launcher_names *l = find_launcher();
    *out = (rank_place){.local_rank = -1, .port = RANKS_PORT, .listener = -1};
    if (!l)
        return SNAP_OK;
    TRY(read_number(l->size, 2, RANKS_MOST, &out->size, err));
    TRY(read_number(l->rank, 0, out->size - 1, &out->rank, err));
    if (getenv(l->local_rank))
        TRY(read_number(l->local_rank, 0, out->size - 1, &out->local_rank, err));
    TRY(read_port(&out->port, err));
    if (out->rank == 0 && getenv(RANKS_LISTENER))
        TRY(read_number(RANKS_LISTENER, 3, 1 << 20, &out->listener, err));
    out->address = getenv("MASTER_ADDR");
    if (!out->address || !*out->address)
        TRY(err_set(err, SNAP_E_USAGE,
                    "%s is set, but MASTER_ADDR is not: set it to the host name of rank 0, or to "
                    "127.0.0.1 if all ranks are on one machine",
                    l->rank));
    return SNAP_OK;
cleanup:
    out->size = 0;
    return st;
}

/* ---- the GPU of a rank ---- */

enum { kDevices = 64 /* GPUs of a machine, at most */ };
static const char kVisible[] = "CUDA_VISIBLE_DEVICES";

/* Entry @i of a comma-separated list, and its length. NULL: there is none. */
static const char *entry_of(const char *list, int i, size_t *n) {
    for (; i > 0 && *list; i--) {
        list += strcspn(list, ",");
        list += *list == ',';
    }
    *n = strcspn(list, ",");
    return *n ? list : NULL;
}

bool rank_visible_devices(char *out, const char *before, int device) {
    char all[4 * kDevices] = "";
    size_t n = 0, own_n = 0, used = 0;
    for (int i = 0; !before && i < kDevices; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%d", i ? "," : "", i);
    const char *list = before ? before : all;
    if (!entry_of(list, 1, &n))
        device = 0;
    const char *own = entry_of(list, device, &own_n);
    if (!own || strlen(list) >= RANKS_VISIBLE)
        return false;
    used = (size_t)snprintf(out, RANKS_VISIBLE, "%.*s", (int)own_n, own);
    for (int i = 0; (list = entry_of(before ? before : all, i, &n)); i++)
        if (i != device)
            used += (size_t)snprintf(out + used, RANKS_VISIBLE - used, ",%.*s", (int)n, list);
    return true;
}

snap_status rank_place_choose_device(const rank_place *p, const int *devices, int n,
                                     snap_err *err) {
    char list[RANKS_VISIBLE];
    int local = p->local_rank < 0 ? 0 : p->local_rank;
    if (n && local >= n)
        return err_set(err, SNAP_E_USAGE,
                       "--devices lists %d GPUs, and the number of this rank on its machine is %d",
                       n, local);
    int device = n ? devices[local] : local;
    if (!rank_visible_devices(list, getenv(kVisible), device))
        return err_set(err, SNAP_E_USAGE, "%s has no GPU %d for this rank", kVisible, device);
    return setenv(kVisible, list, 1) == 0 ? SNAP_OK : err_set_errno(err, "cannot set %s", kVisible);
}
