/* nccl_stub.c - a shared object with the functions of NCCL that nccl.h uses, for one rank, on host
 * memory. FAULT selects what is wrong with it: nothing (RIGHT), a missing function (MISSING), a
 * version that is too old (OLD) or of another major number (NEXT), or calls that fail (FAILS). */
#include <stddef.h>
#include <string.h>

enum { RIGHT, MISSING, OLD, NEXT, FAILS };

typedef struct {
    char bytes[128];
} stub_id;
typedef struct {
    int groups; /* open groups */
    const void *sent;
} stub_comm;

int ncclGetVersion(int *version);
int ncclGetUniqueId(stub_id *id);
int ncclCommInitRank(stub_comm **c, int size, stub_id id, int rank);
int ncclCommDestroy(stub_comm *c);
int ncclCommAbort(stub_comm *c);
int ncclCommGetAsyncError(stub_comm *c, int *error);
const char *ncclGetErrorString(int error);
const char *ncclGetLastError(stub_comm *c);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclAllReduce(const void *s, void *r, size_t n, int type, int op, stub_comm *c, void *stream);
int ncclAllGather(const void *s, void *r, size_t n, int type, stub_comm *c, void *stream);
int ncclReduceScatter(const void *s, void *r, size_t n, int type, int op, stub_comm *c,
                      void *stream);
int ncclSend(const void *s, size_t n, int type, int peer, stub_comm *c, void *stream);
int ncclRecv(void *r, size_t n, int type, int peer, stub_comm *c, void *stream);

static stub_comm only;
static int groups;
enum { kSystemError = FAULT == FAILS ? 2 : 0, kMisused = 5 };

int ncclGetVersion(int *version) {
    *version = FAULT == OLD ? 2804 : FAULT == NEXT ? 30000 : 22803;
    return 0;
}

int ncclGetUniqueId(stub_id *id) {
    memset(id, 'i', sizeof *id);
    return kSystemError;
}

int ncclCommInitRank(stub_comm **c, int size, stub_id id, int rank) {
    *c = &only;
    return size == 1 && rank == 0 && id.bytes[127] == 'i' ? kSystemError : kMisused;
}

int ncclCommDestroy(stub_comm *c) {
    return c == &only ? 0 : kMisused;
}

int ncclCommAbort(stub_comm *c) {
    return c == &only ? 0 : kMisused;
}

int ncclCommGetAsyncError(stub_comm *c, int *error) {
    *error = c == &only ? kSystemError : kMisused;
    return 0;
}

const char *ncclGetErrorString(int error) {
    return error == 2 ? "unhandled system error" : error == kMisused ? "invalid usage" : "no error";
}

const char *ncclGetLastError(stub_comm *c) {
    (void)c;
    return FAULT == FAILS ? "the network is down" : "";
}

int ncclGroupStart(void) {
    groups++;
    return 0;
}

int ncclGroupEnd(void) {
    groups--;
    return 0;
}

static int copy(const void *s, void *r, size_t n, int type, const stub_comm *c,
                const void *stream) {
    if (c != &only || stream != &only || (type != 7 && type != 9))
        return kMisused;
    memcpy(r, s, n * (type == 7 ? 4 : 2));
    return kSystemError;
}

int ncclAllReduce(const void *s, void *r, size_t n, int type, int op, stub_comm *c, void *stream) {
    return op == 0 ? copy(s, r, n, type, c, stream) : kMisused;
}

int ncclAllGather(const void *s, void *r, size_t n, int type, stub_comm *c, void *stream) {
    return copy(s, r, n, type, c, stream);
}

int ncclReduceScatter(const void *s, void *r, size_t n, int type, int op, stub_comm *c,
                      void *stream) {
    return op == 0 ? copy(s, r, n, type, c, stream) : kMisused;
}

#ifndef FAULT_MISSING
int ncclSend(const void *s, size_t n, int type, int peer, stub_comm *c, void *stream) {
    (void)n;
    (void)type;
    c->sent = s;
    return groups == 1 && peer == 0 && stream == &only ? kSystemError : kMisused;
}
#endif

int ncclRecv(void *r, size_t n, int type, int peer, stub_comm *c, void *stream) {
    return groups == 1 && peer == 0 ? copy(c->sent, r, n, type, c, stream) : kMisused;
}
