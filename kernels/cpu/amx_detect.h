/* amx_detect.h - whether this process may use Intel AMX with BF16. */
#ifndef SNAPMLA_KERNELS_CPU_AMX_DETECT_H
#define SNAPMLA_KERNELS_CPU_AMX_DETECT_H

/* Checks the processor (CPUID), the operating system (XCR0), and then requests the permission that
 * Linux requires before a process may use the tile registers. Returns NULL if all of them agree,
 * else a phrase that says which one does not. Repeated calls are allowed, and may come from any
 * thread. */
const char *amx_lacks(void);

#endif
