#include "kernels/cpu/amx_detect.h"

#if defined __x86_64__
#include <cpuid.h>
#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    kRequestPermission = 0x1023, /* ARCH_REQ_XCOMP_PERM of asm/prctl.h */
    kTileConfig = 17,            /* bits of XCR0 */
    kTileData = 18,
};

/* CPUID leaf 7: bit 22 is AMX-BF16, bit 24 is AMX-TILE. */
static const char *processor_lacks(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & 1u << 24))
        return "the processor has no AMX tiles";
    return d & 1u << 22 ? NULL : "the processor's AMX has no BF16 products";
}

/* CPUID leaf 1: bit 27 says that the system uses XSAVE, so XGETBV may be executed. */
static const char *system_lacks(void) {
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 27))
        return "the operating system does not use XSAVE";
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    (void)high;
    return (low >> kTileConfig & 1u) && (low >> kTileData & 1u)
               ? NULL
               : "the operating system has not enabled the tile registers (XCR0 bits 17 and 18)";
}

static const char *permission_lacks(void) {
    if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0)
        return NULL;
    switch (errno) {
    case EINVAL:
        return "Linux is older than 5.16, which first supports tile registers";
    case ENOSPC:
        return "a signal stack of this process is too small for the tile registers";
    default:
        return "Linux refuses the permission to use tile registers";
    }
}

const char *amx_lacks(void) {
    const char *lacks = processor_lacks();
    lacks = lacks ? lacks : system_lacks();
    return lacks ? lacks : permission_lacks();
}
#else
const char *amx_lacks(void) {
    return "the processor is not an x86-64";
}
#endif
