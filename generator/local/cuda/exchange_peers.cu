/* The inboxes of the one-shot kernels: each rank maps the memory of the others (CUDA IPC). */
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

#include "generator/local/cuda/exchange_inside.h"

namespace device {
namespace {

/* What a rank gives to the others. */
struct offer {
    char machine[40]; /* the kernel's identifier of this boot; equal on one machine only */
    cudaIpcMemHandle_t inbox;
};

/* Whether one rank could map the inboxes of the others. */
struct outcome {
    char why_not[200]; /* "" = it has mapped all inboxes */
};

void read_machine(char out[40]) {
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, out, 36) : 0;
    out[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        ::close(fd);
}

/* Allocates the inbox, the state and the stop word of this rank. They are zero before the others
 * get the handle of the inbox. */
cudaError_t allocate(exchange_peers *p, cudaIpcMemHandle_t *handle, cudaStream_t stream) {
    one_shot_group &g = p->group;
    const size_t bytes = one_shot_inbox_bytes(g.size);
    void *inbox = nullptr, *stop = nullptr;
    int device = 0;
    cudaError_t e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = one_shot_most_blocks(device, &g.most_blocks);
    if (e == cudaSuccess)
        e = cudaMalloc(&inbox, bytes);
    g.inbox[g.rank] = inbox;
    if (e == cudaSuccess)
        e = cudaMalloc(&g.state, ONE_SHOT_STATE * sizeof *g.state);
    if (e == cudaSuccess)
        e = cudaHostAlloc(&p->host_stop, sizeof *p->host_stop, cudaHostAllocMapped);
    if (e == cudaSuccess) {
        *p->host_stop = 0;
        e = cudaHostGetDevicePointer(&stop, p->host_stop, 0);
        g.stop = static_cast<const uint32_t *>(stop);
    }
    if (e == cudaSuccess)
        e = cudaMemsetAsync(inbox, 0, bytes, stream);
    if (e == cudaSuccess)
        e = cudaMemsetAsync(g.state, 0, ONE_SHOT_STATE * sizeof *g.state, stream);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(stream);
    if (e == cudaSuccess)
        e = cudaIpcGetMemHandle(handle, inbox);
    return e;
}

/* Maps the inboxes of the other ranks of @part into this process. @offers: [ranks of the group],
 * the handles of the inboxes. */
void map_inboxes(exchange_peers *p, const std::vector<offer> &offers, const exchange_part &part,
                 outcome *out) {
    one_shot_group &g = p->group;
    const offer &own = offers[static_cast<size_t>(part.first + g.rank * part.step)];
    for (int r = 0; r < g.size && !*out->why_not; r++) {
        const int rank = part.first + r * part.step;
        const offer &of = offers[static_cast<size_t>(rank)];
        if (r == g.rank)
            continue;
        if (!*of.machine || strcmp(of.machine, own.machine) != 0) {
            snprintf(out->why_not, sizeof out->why_not, "rank %d is on another machine", rank);
            return;
        }
        const cudaError_t e =
            cudaIpcOpenMemHandle(&g.inbox[r], of.inbox, cudaIpcMemLazyEnablePeerAccess);
        if (e == cudaSuccess)
            continue;
        (void)cudaGetLastError();
        g.inbox[r] = nullptr;
        snprintf(out->why_not, sizeof out->why_not, "cannot map the memory of rank %d: %s", rank,
                 cudaGetErrorString(e));
    }
}

/* All ranks of the group use the inboxes, or none does. */
void agree(exchange_peers *p, const std::vector<outcome> &of) {
    p->usable = true;
    for (size_t r = 0; r < of.size() && p->usable; r++)
        if (*of[r].why_not) {
            p->usable = false;
            snprintf(p->why_not, sizeof p->why_not, "rank %d: %.199s", static_cast<int>(r),
                     of[r].why_not);
        }
}

} // namespace

snap_status exchange_peers_open(exchange_peers *p, ranks *group, exchange_part part,
                                cudaStream_t stream, snap_err *err) {
    one_shot_group &g = p->group;
    g.rank = (ranks_rank(group) - part.first) / part.step;
    g.size = part.size;
    if (g.size > ONE_SHOT_RANKS) {
        snprintf(p->why_not, sizeof p->why_not, "the group has more than %d ranks", ONE_SHOT_RANKS);
        return SNAP_OK;
    }
    offer mine = {};
    outcome own = {};
    std::vector<offer> offers(static_cast<size_t>(ranks_size(group)));
    std::vector<outcome> outcomes(static_cast<size_t>(ranks_size(group)));
    read_machine(mine.machine);
    snap_status st = cuda_check(allocate(p, &mine.inbox, stream), "inbox of an exchange", err);
    if (st == SNAP_OK)
        st = ranks_all_gather(group, "the inboxes", &mine, sizeof mine, offers.data(), err);
    if (st == SNAP_OK)
        map_inboxes(p, offers, part, &own);
    if (st == SNAP_OK)
        st = ranks_all_gather(group, "the mapped inboxes", &own, sizeof own, outcomes.data(), err);
    if (st == SNAP_OK)
        agree(p, outcomes);
    return st;
}

void exchange_peers_close(exchange_peers *p, ranks *group) {
    one_shot_group &g = p->group;
    for (int r = 0; r < g.size && r < ONE_SHOT_RANKS; r++)
        if (r != g.rank && g.inbox[r])
            cudaIpcCloseMemHandle(g.inbox[r]);
    /* An inbox must not be released while other ranks map it, so all ranks wait for each other
     * here. After a failure of the group, they do not wait. */
    if (p->usable)
        (void)!ranks_all_gather(group, "closing the inboxes", nullptr, 0, nullptr, nullptr);
    if (g.size <= ONE_SHOT_RANKS)
        cudaFree(g.inbox[g.rank]);
    cudaFree(g.state);
    if (p->host_stop)
        cudaFreeHost(p->host_stop);
}

} // namespace device
