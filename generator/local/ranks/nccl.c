#include "generator/local/ranks/nccl.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fault.h"

enum { kSuccess = 0, kInProgress = 7, kSum = 0, kOldest = 21300, kTooNew = 30000 };
static const char kLibrary[] = "libnccl.so.2", kVariable[] = "SNAPMLA_NCCL";

/* Results, types and operators are enums in NCCL's interface, so they have the type int here. */
struct nccl {
    int version;
    int (*get_version)(int *);
    int (*get_id)(nccl_id *);
    int (*init_rank)(nccl_comm **, int, nccl_id, int);
    int (*destroy)(nccl_comm *);
    int (*abort)(nccl_comm *);
    int (*async_error)(nccl_comm *, int *);
    const char *(*error_string)(int);
    const char *(*last_error)(nccl_comm *);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*all_reduce)(const void *, void *, size_t, int, int, nccl_comm *, void *);
    int (*all_gather)(const void *, void *, size_t, int, nccl_comm *, void *);
    int (*reduce_scatter)(const void *, void *, size_t, int, int, nccl_comm *, void *);
    int (*send)(const void *, size_t, int, int, nccl_comm *, void *);
    int (*recv)(void *, size_t, int, int, nccl_comm *, void *);
};

/* ---- loading ---- */

static const struct {
    const char *name;
    size_t offset;
} kFunctions[] = {
    {"ncclGetVersion", offsetof(nccl, get_version)},
    {"ncclGetUniqueId", offsetof(nccl, get_id)},
    {"ncclCommInitRank", offsetof(nccl, init_rank)},
    {"ncclCommDestroy", offsetof(nccl, destroy)},
    {"ncclCommAbort", offsetof(nccl, abort)},
    {"ncclCommGetAsyncError", offsetof(nccl, async_error)},
    {"ncclGetErrorString", offsetof(nccl, error_string)},
    {"ncclGetLastError", offsetof(nccl, last_error)},
    {"ncclGroupStart", offsetof(nccl, group_start)},
    {"ncclGroupEnd", offsetof(nccl, group_end)},
    {"ncclAllReduce", offsetof(nccl, all_reduce)},
    {"ncclAllGather", offsetof(nccl, all_gather)},
    {"ncclReduceScatter", offsetof(nccl, reduce_scatter)},
    {"ncclSend", offsetof(nccl, send)},
    {"ncclRecv", offsetof(nccl, recv)},
};

static snap_status find_functions(nccl *n, void *library, const char *path, snap_err *err) {
    for (size_t i = 0; i < sizeof kFunctions / sizeof *kFunctions; i++) {
        void *found = dlsym(library, kFunctions[i].name);
        if (!found)
            return err_set(err, SNAP_E_UNSUPPORTED, "%s has no function %s", path,
                           kFunctions[i].name);
        memcpy((char *)n + kFunctions[i].offset, &found, sizeof found);
    }
    return SNAP_OK;
}

static snap_status check_version(nccl *n, const char *path, snap_err *err) {
    if (!n->get_version || n->get_version(&n->version) != kSuccess)
        return err_set(err, SNAP_E_UNSUPPORTED, "%s does not report its version", path);
    if (n->version < kOldest || n->version >= kTooNew)
        return err_set(err, SNAP_E_UNSUPPORTED,
                       "%s has version %d; versions from %d (2.13) to below %d are supported", path,
                       n->version, kOldest, kTooNew);
    return SNAP_OK;
}

/* Accepts regular files only: dlopen() of a named pipe would wait for a writer. */
static snap_status check_file(const char *path, snap_err *err) {
    struct stat s;
    if (stat(path, &s) != 0)
        return err_set_errno(err, "%s: cannot read '%s'", kVariable, path);
    if (!S_ISREG(s.st_mode))
        return err_set(err, SNAP_E_UNSUPPORTED, "%s: '%s' is no regular file", kVariable, path);
    return SNAP_OK;
}

snap_status nccl_open(nccl **out, snap_err *err) {
    /* By default, NCCL writes its messages to standard output, where our results are. */
    (void)setenv("NCCL_DEBUG_FILE", "/dev/stderr", 0);
    const char *named = getenv(kVariable), *path = named ? named : kLibrary;
    snap_status st = named ? check_file(path, err) : SNAP_OK;
    char file[PATH_MAX];
    *out = NULL;
    if (st != SNAP_OK)
        return st;
    /* dlopen() searches the system's folders for a name without a slash. A file that the user has
     * named must not be searched for. */
    (void)snprintf(file, sizeof file, "%s%s", named && !strchr(named, '/') ? "./" : "", path);
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        return err_set(err, fault_of_dlopen(why),
                       "NCCL cannot be loaded: %s; install it, or name its file in %s", why,
                       kVariable);
    }
    nccl *n = calloc(1, sizeof *n);
    if (!n)
        return err_set(err, SNAP_E_NOMEM, "out of memory for NCCL");
    st = find_functions(n, library, path, err);
    if (st == SNAP_OK)
        st = check_version(n, path, err);
    if (st == SNAP_OK)
        *out = n;
    else
        free(n);
    return st;
}

void nccl_close(nccl *n) {
    free(n);
}

int nccl_version(const nccl *n) {
    return n->version;
}

/* ---- calls ---- */

static snap_status result_of(const nccl *n, nccl_comm *c, int result, const char *what,
                             snap_err *err) {
    if (result == kSuccess || result == kInProgress)
        return SNAP_OK;
    const char *kind = n->error_string(result), *more = n->last_error(c);
    bool has_more = more && *more;
    return err_set(err, SNAP_E_DEVICE, "NCCL: %s: %s%s%.300s", what, kind ? kind : "unknown error",
                   has_more ? ": " : "", has_more ? more : "");
}

snap_status nccl_new_id(const nccl *n, nccl_id *out, snap_err *err) {
    return result_of(n, NULL, n->get_id(out), "making an identifier", err);
}

snap_status nccl_join(const nccl *n, nccl_comm **out, const nccl_id *id, int rank, int size,
                      snap_err *err) {
    *out = NULL;
    snap_status st =
        result_of(n, NULL, n->init_rank(out, size, *id, rank), "joining the communicator", err);
    if (st != SNAP_OK)
        *out = NULL;
    return st;
}

void nccl_leave(const nccl *n, nccl_comm *c) {
    if (c)
        (void)n->destroy(c);
}

void nccl_abort(const nccl *n, nccl_comm *c) {
    if (c)
        (void)n->abort(c);
}

snap_status nccl_check(const nccl *n, nccl_comm *c, snap_err *err) {
    int later = kSuccess;
    snap_status st = result_of(n, c, n->async_error(c, &later), "its state", err);
    return st == SNAP_OK ? result_of(n, c, later, "enqueued work", err) : st;
}

snap_status nccl_all_reduce(const nccl *n, nccl_comm *c, nccl_type type, const void *send,
                            void *recv, size_t count, void *stream, snap_err *err) {
    return result_of(n, c, n->all_reduce(send, recv, count, type, kSum, c, stream), "all-reduce",
                     err);
}

snap_status nccl_all_gather(const nccl *n, nccl_comm *c, nccl_type type, const void *send,
                            void *recv, size_t count, void *stream, snap_err *err) {
    return result_of(n, c, n->all_gather(send, recv, count, type, c, stream), "all-gather", err);
}

snap_status nccl_reduce_scatter(const nccl *n, nccl_comm *c, nccl_type type, const void *send,
                                void *recv, size_t count, void *stream, snap_err *err) {
    return result_of(n, c, n->reduce_scatter(send, recv, count, type, kSum, c, stream),
                     "reduce-scatter", err);
}

static size_t bytes_of(nccl_type type) {
    return type == NCCL_BF16 ? 2 : 4;
}

snap_status nccl_all_to_all(const nccl *n, nccl_comm *c, nccl_type type, const void *send,
                            void *recv, size_t count, int size, void *stream, snap_err *err) {
    size_t part = count * bytes_of(type);
    int result = n->group_start();
    if (result != kSuccess)
        return result_of(n, c, result, "all-to-all", err);
    for (int r = 0; r < size && result == kSuccess; r++) {
        result = n->send((const char *)send + (size_t)r * part, count, type, r, c, stream);
        if (result == kSuccess)
            result = n->recv((char *)recv + (size_t)r * part, count, type, r, c, stream);
    }
    int ended = n->group_end(); /* also after an error: NCCL delays all calls in an open group */
    return result_of(n, c, result == kSuccess ? ended : result, "all-to-all", err);
}
