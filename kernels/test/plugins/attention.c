/* attention.c - plugins with one function and one fault each, selected by -DFAULT=ATTEND_name. The
 * loader must refuse some of them; mla_plan_create() or mla_run() must report what others do. */
#include <signal.h>
#include <string.h>

#include "kernels/plugin/attention.h"

enum {
    ATTEND_RIGHT,      /* no fault that a call is checked for: it writes zeros everywhere */
    ATTEND_ABI,        /* another ABI number */
    ATTEND_BYTES,      /* other headers */
    ATTEND_NAME,       /* the name of a built-in backend */
    ATTEND_NULL,       /* no attend() */
    ATTEND_PRECISIONS, /* supports nothing */
    ATTEND_DEVICE,     /* an unknown device */
    ATTEND_LIMIT,      /* a negative limit */
    ATTEND_ERROR,      /* attend() fails with a message */
    ATTEND_CANCELS,    /* attend() fails as if the user had cancelled the run */
    ATTEND_PLAN,       /* plan() fails */
    ATTEND_AFTER,      /* writes one byte after out */
    ATTEND_BEFORE,     /* writes one byte before lse */
    ATTEND_INPUTS,     /* changes a query */
    ATTEND_TABLE,      /* changes a page number */
    ATTEND_HANGS,      /* never returns */
    ATTEND_SHORT,      /* no fault; its time limit is short */
    ATTEND_CACHE,      /* writes one byte after the cache */
    ATTEND_FAR,        /* writes some pages after out */
    ATTEND_READS,      /* reads some pages before the cache */
    ATTEND_CRASHES,    /* writes to address 0 */
    ATTEND_PLANS,      /* plan() writes to address 0 */
    ATTEND_INTERRUPTS, /* sends the signal SIGUSR1 to the program in steps of 3 heads */
};

static snap_status plan(void **state, const mla_capacity *cap, snap_err *err) {
    volatile char *volatile nowhere = NULL;
    (void)state, (void)cap;
    if (FAULT == ATTEND_PLANS)
        *nowhere = 1;
    return FAULT == ATTEND_PLAN
               ? plugin_fail(err, SNAP_E_UNSUPPORTED, "only 3 heads, got %d", cap->heads)
               : SNAP_OK;
}

static snap_status attend(void *state, const snapmla_step *s, const snapmla_queries *q,
                          const mla_cache *cache, void *out, float *lse, void *stream,
                          snap_err *err) {
    size_t rows = (size_t)s->batch * (size_t)s->s_q * (size_t)s->heads;
    size_t bytes = rows * (size_t)s->d_c * sizeof(uint16_t);
    volatile char *volatile nowhere = NULL;
    const char *content = cache->content;
    (void)state, (void)stream;
    memset(out, 0, bytes);
    memset(lse, 0, rows * sizeof *lse);
    if (FAULT == ATTEND_ERROR)
        return plugin_fail(err, SNAP_E_DEVICE, "the %s is out of paper", "printer");
    if (FAULT == ATTEND_CANCELS)
        return SNAP_E_CANCELLED;
    if (FAULT == ATTEND_AFTER)
        ((char *)out)[bytes] = 1;
    if (FAULT == ATTEND_BEFORE)
        ((char *)lse)[-1] = 1;
    if (FAULT == ATTEND_INPUTS)
        ((uint16_t *)(uintptr_t)q->q)[3] ^= 1;
    if (FAULT == ATTEND_TABLE)
        ((int32_t *)(uintptr_t)s->block_table)[0] ^= 1;
    if (FAULT == ATTEND_CACHE)
        ((char *)(uintptr_t)content)[cache->pages * 64 * (s->d_c + s->d_r) * 2] = 1;
    if (FAULT == ATTEND_FAR)
        ((char *)out)[bytes + 3 * 4096] = 1;
    if (FAULT == ATTEND_READS)
        ((float *)(void *)lse)[0] = (float)*(const volatile char *)(content - 3 * 4096);
    if (FAULT == ATTEND_CRASHES)
        *nowhere = 1;
    if (FAULT == ATTEND_INTERRUPTS && s->heads == 3)
        (void)raise(SIGUSR1);
    for (volatile int forever = FAULT == ATTEND_HANGS; forever;)
        ;
    return SNAP_OK;
}

const snapmla_attention snapmla_attention_v1 = {
    .abi = FAULT == ATTEND_ABI ? 99 : SNAPMLA_ATTENTION_ABI,
    .table_bytes = FAULT == ATTEND_BYTES ? 8 : sizeof(snapmla_attention),
    .err_bytes = sizeof(snap_err),
    .name = FAULT == ATTEND_NAME ? "opencl" : "faulty",
    .device = FAULT == ATTEND_DEVICE ? "abacus" : "host",
    .precisions = FAULT == ATTEND_PRECISIONS ? 0 : SNAPMLA_HAS_BF16 | SNAPMLA_HAS_FP8,
    .limit_s = FAULT == ATTEND_HANGS   ? 0.2
               : FAULT == ATTEND_SHORT ? 4
               : FAULT == ATTEND_LIMIT ? -1
                                       : 0,
    .plan = plan,
    .attend = FAULT == ATTEND_NULL ? (void *)0 : attend,
};
