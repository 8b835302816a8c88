#include "evals/code/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
enum { kArch = (int)AUDIT_ARCH_X86_64 };
#elif defined(__aarch64__)
enum { kArch = (int)AUDIT_ARCH_AARCH64 };
#else
enum { kArch = 0 };
#endif

/* Calls of the x32 interface have this bit, and the same architecture value as x86-64. */
enum { kX32 = 0x40000000 };
enum {
    kNewNamespaces = CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
                     CLONE_NEWUTS | CLONE_NEWCGROUP
};

/* Calls refused with EPERM. Calls that an architecture lacks need no entry. */
static const int refused[] = {
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_pidfd_getfd,
    SYS_process_madvise,
    SYS_perf_event_open,
    SYS_bpf,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_memfd_create,
    SYS_shmget,
    SYS_msgget,
    SYS_semget,
    SYS_mq_open,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_unshare,
    SYS_setns,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_fanotify_init,
    SYS_swapon,
    SYS_swapoff,
    SYS_reboot,
    SYS_kexec_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_acct,
    SYS_quotactl,
    SYS_syslog,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_personality,
    SYS_vhangup,
    SYS_lookup_dcookie,
    SYS_mknodat,
    SYS_setuid,
    SYS_setgid,
    SYS_setreuid,
    SYS_setregid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setgroups,
#ifdef SYS_memfd_secret
    SYS_memfd_secret,
#endif
#ifdef __x86_64__
    SYS_mknod,
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
    SYS_uselib,
    SYS_kexec_file_load,
#endif
};

static bool put(buf *out, struct sock_filter f) {
    return buf_append(out, &f, sizeof f);
}

static void load(buf *out, size_t offset) {
    (void)put(out, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

/* Returns @verdict if the loaded word equals @value. */
static void on_equal(buf *out, unsigned value, unsigned verdict) {
    (void)put(out, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    (void)put(out, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, verdict));
}

static void refuse(buf *out, int call, int error) {
    on_equal(out, (unsigned)call, SECCOMP_RET_ERRNO | (unsigned)error);
}

/* Checks the low half of the first argument of @call. Returns @error if no bit of @bits is set or,
 * with @when_set, if one is set. Then loads the call's number again for the next instructions. */
static void on_bits(buf *out, int call, unsigned bits, bool when_set, int error) {
    (void)put(out, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 4));
    load(out, offsetof(struct seccomp_data, args[0]));
    (void)put(out, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, when_set ? 0 : 1,
                                                when_set ? 1 : 0));
    (void)put(out,
              (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error));
    load(out, offsetof(struct seccomp_data, nr));
}

/* Allows only sockets of the family AF_UNIX. */
static void on_socket(buf *out, int call) {
    (void)put(out, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 4));
    load(out, offsetof(struct seccomp_data, args[0]));
    (void)put(out, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 1, 0));
    (void)put(out, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES));
    load(out, offsetof(struct seccomp_data, nr));
}

/* Refuses processes with the error for too many processes, and allows threads. clone3 keeps its
 * flags in memory, where a filter cannot read them. So it is reported as missing, and the C library
 * uses clone instead. */
static void on_processes(buf *out) {
    on_bits(out, SYS_clone, kNewNamespaces, true, EPERM);
    on_bits(out, SYS_clone, CLONE_THREAD, false, EAGAIN);
    refuse(out, SYS_clone3, ENOSYS);
#ifdef __x86_64__
    refuse(out, SYS_fork, EAGAIN);
    refuse(out, SYS_vfork, EAGAIN);
#endif
}

snap_status seccomp_filter(buf *out, snap_err *err) {
    if (!kArch)
        return err_set(err, SNAP_E_UNSUPPORTED, "no system call filter for this architecture");
    load(out, offsetof(struct seccomp_data, arch));
    (void)put(out, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)kArch, 1, 0));
    (void)put(out, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    load(out, offsetof(struct seccomp_data, nr));
    (void)put(out, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32, 0, 1));
    (void)put(out, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    on_processes(out);
    on_socket(out, SYS_socket);
    on_socket(out, SYS_socketpair);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        refuse(out, refused[i], EPERM);
    (void)put(out, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    return buf_check(out, "a system call filter", err);
}
