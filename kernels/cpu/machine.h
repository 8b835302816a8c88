/* machine.h - properties of this computer, read from the operating system, and the list of
 * instruction sets. */
#ifndef SNAPMLA_KERNELS_CPU_MACHINE_H
#define SNAPMLA_KERNELS_CPU_MACHINE_H

#include <stddef.h>

#include "kernels/cpu/isa.h"

/* The name of the processor, such as "AMD EPYC 9575F". If the system gives none, the name of the
 * architecture, or "unknown". */
void machine_name(char *out, size_t size);
size_t machine_memory_bytes(void);
size_t machine_cache_bytes(void); /* last-level cache; 0 = unknown */

/* All instruction sets of this build, in order of preference, NULL-terminated. */
const cpu_isa *const *machine_isas(void);

#endif
