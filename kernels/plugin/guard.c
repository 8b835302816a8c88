#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kernels/plugin/attend.h"

/* ---- bytes around a result ---- */

void guard_range_note(guard_range *g, const void *at, size_t bytes) {
    g->at = at;
    g->bytes = bytes;
    if (!at)
        return;
    memcpy(g->before, g->at - GUARD_BYTES, GUARD_BYTES);
    memcpy(g->after, g->at + bytes, GUARD_BYTES);
}

bool guard_range_holds(const guard_range *g) {
    return !g->at || (memcmp(g->before, g->at - GUARD_BYTES, GUARD_BYTES) == 0 &&
                      memcmp(g->after, g->at + g->bytes, GUARD_BYTES) == 0);
}

/* ---- checksum: eight bytes at a time, multiplied by FNV-1a's prime and folded ---- */

uint64_t guard_sum(uint64_t sum, const void *at, size_t bytes) {
    const unsigned char *p = at;
    for (; bytes >= 8; p += 8, bytes -= 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        sum = (sum ^ word) * 0x100000001b3u;
        sum ^= sum >> 29;
    }
    for (; bytes; p++, bytes--)
        sum = (sum ^ *p) * 0x100000001b3u;
    return sum;
}

/* ---- time limit ----
 *
 * Each thread has one timer, which is not stopped after a call, so that most calls make no system
 * call. A call sets the timer only if it is not set or would fire after the call's limit. If it
 * fires during a call that has not used up its limit, it is set again, to the time that is left.
 * guard_rest() stops the timer, because its signal would interrupt system calls of the program that
 * have nothing to do with a plugin. */

typedef struct {
    sigjmp_buf back;
    timer_t timer;
    volatile sig_atomic_t created, armed;
    volatile sig_atomic_t crash; /* the signal that ended the call; 0 = none */
    volatile sig_atomic_t known; /* the kernel gave the address of the access */
    const void *volatile address;
    volatile int64_t ends_ns;  /* the limit of the call in progress */
    volatile int64_t fires_ns; /* when the timer fires; INT64_MAX = it is not set */
} limited;

static _Thread_local limited call;

static int64_t now_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool set_timer(int64_t ns) {
    ns = ns < 1000000 ? 1000000 : ns;
    struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)}};
    call.fires_ns = now_ns() + ns;
    return timer_settime(call.timer, 0, &when, NULL) == 0;
}

/* The signal goes to the thread that made the call, so `call` is its own. */
static void on_limit(int number) {
    int64_t left = call.ends_ns - now_ns();
    (void)number;
    call.fires_ns = INT64_MAX;
    if (!call.armed)
        return;
    if (left > 0 && set_timer(left))
        return;
    call.armed = 0;
    siglongjmp(call.back, 1);
}

static int limit_signal(void) {
    return SIGRTMIN + 5;
}

static bool create_timer(void) {
    struct sigaction act = {.sa_handler = on_limit, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = limit_signal()};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    (void)sigemptyset(&act.sa_mask);
    call.created = sigaction(limit_signal(), &act, NULL) == 0 &&
                   timer_create(CLOCK_MONOTONIC, &event, &call.timer) == 0;
    call.fires_ns = INT64_MAX;
    return call.created;
}

/* A child process does not inherit timers. If a plugin makes one and it crashes, it must end, and
 * not go on where the call of its parent ends. */
static void forget_call(void) {
    call.created = call.armed = 0;
}

void guard_rest(void) {
    struct itimerspec none = {0};
    if (!call.created || call.fires_ns == INT64_MAX)
        return;
    (void)timer_settime(call.timer, 0, &none, NULL);
    call.fires_ns = INT64_MAX;
}

/* ---- crashes ---- */

static const int kCrashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { CRASHES = sizeof kCrashes / sizeof *kCrashes };
static struct sigaction crash_actions[CRASHES]; /* the actions before on_crash() was installed */

/* A crash outside of a plugin's call gets the earlier action: when the handler returns, the
 * instruction crashes again. A signal that a process sent is raised again instead. With SI_KERNEL,
 * si_addr is always 0: x86 does not report an address that is not canonical. */
static void on_crash(int number, siginfo_t *info, void *context) {
    (void)context;
    if (call.armed && info->si_code > 0) {
        call.armed = 0;
        call.crash = number;
        call.known = (number == SIGSEGV || number == SIGBUS) && info->si_code != SI_KERNEL;
        call.address = info->si_addr;
        siglongjmp(call.back, 1);
    }
    for (int i = 0; i < CRASHES; i++)
        if (kCrashes[i] == number)
            (void)sigaction(number, &crash_actions[i], NULL);
    if (info->si_code <= 0)
        (void)raise(number);
}

static void catch_crashes(void) {
    struct sigaction act = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO};
    (void)sigemptyset(&act.sa_mask);
    for (int i = 0; i < CRASHES; i++)
        (void)sigaction(kCrashes[i], &act, &crash_actions[i]);
}

/* ---- guarded calls ---- */

static void set_up(void) {
    catch_crashes();
    (void)pthread_atfork(NULL, NULL, forget_call);
}

static snap_status prepare(double seconds, snap_err *err) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int64_t ns = (int64_t)(seconds * 1e9);
    (void)pthread_once(&once, set_up);
    call.ends_ns = now_ns() + ns;
    if ((call.created || create_timer()) && (call.fires_ns <= call.ends_ns || set_timer(ns)))
        return SNAP_OK;
    return err_set_errno(err, "no timer for the time limit");
}

/* siglongjmp() skipped the return of a handler, which unblocks its signal. The time limit may have
 * interrupted the handler of a crash, so two signals can be blocked. */
static void unblock(void) {
    sigset_t all;
    (void)sigemptyset(&all);
    (void)sigaddset(&all, limit_signal());
    for (int i = 0; i < CRASHES; i++)
        (void)sigaddset(&all, kCrashes[i]);
    (void)pthread_sigmask(SIG_UNBLOCK, &all, NULL);
}

snap_status guard_call(void (*fn)(void *ctx), void *ctx, double seconds, const void **address,
                       snap_err *err) {
    snap_status st = prepare(seconds, err);
    if (st != SNAP_OK)
        return st;
    call.crash = 0;
    if (sigsetjmp(call.back, 0) == 0) {
        call.armed = 1;
        fn(ctx);
        call.armed = 0;
        return SNAP_OK;
    }
    unblock();
    if (!call.crash)
        return err_set(err, SNAP_E_DEVICE, "took more than %g seconds and was ended", seconds);
    *address = call.known ? call.address : NULL;
    return err_set(err, SNAP_E_DEVICE, "crashed (%s)%s", strsignal(call.crash),
                   call.known && !*address ? " at address 0" : "");
}
