#include "kernels/cpu/machine.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

void machine_name(char *out, size_t size) {
    struct utsname u;
    (void)snprintf(out, size, "%s", uname(&u) == 0 ? u.machine : "unknown");
    FILE *f = fopen("/proc/cpuinfo", "re");
    char line[256];
    while (f && fgets(line, sizeof line, f)) {
        const char *name = strncmp(line, "model name", 10) == 0 ? strstr(line, ": ") : NULL;
        if (name) {
            (void)snprintf(out, size, "%.*s", (int)strcspn(name + 2, "\n"), name + 2);
            break;
        }
    }
    if (f)
        (void)fclose(f);
}

size_t machine_memory_bytes(void) {
    long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (size_t)pages * (size_t)bytes : 0;
}

/* Benchmarks use data of several times the size of the cache. Under a sanitizer, this takes too
 * much memory if the cache is large: one test took 15 GB on a processor with 260 MB. So the
 * address and thread sanitizers limit the size. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
static const size_t kMostCache = 8 << 20;
#else
static const size_t kMostCache = SIZE_MAX;
#endif

/* Reads the size of processor 0's last-level cache from sysfs. sysconf() may return the size for
 * the whole package. */
size_t machine_cache_bytes(void) {
    for (int level = 4; level >= 0; level--) {
        char path[64], unit = 'K';
        unsigned long size = 0;
        (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", level);
        FILE *f = fopen(path, "re");
        bool found = f && fscanf(f, "%lu%c", &size, &unit) >= 1;
        if (f)
            (void)fclose(f);
        size_t bytes = (size_t)size << (unit == 'M' ? 20 : 10);
        if (found)
            return bytes < kMostCache ? bytes : kMostCache;
    }
    return 0;
}

const cpu_isa *const *machine_isas(void) {
    static const cpu_isa *const kIsas[] = {
#if defined __x86_64__
        &cpu_amx,
        &cpu_avx512,
        &cpu_avx512f,
        &cpu_avx2,
#endif
        &cpu_portable,
#if defined __x86_64__
        &cpu_amx_emulated,
#endif
        NULL,
    };
    return kIsas;
}
