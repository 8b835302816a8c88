/* machine.h - what this computer is: read from the operating system, for descriptions and choices. */
#ifndef SNAPMLA_KERNELS_CPU_MACHINE_H
#define SNAPMLA_KERNELS_CPU_MACHINE_H

#include <stddef.h>

#include "kernels/cpu/isa.h"

/* The processor's name, e.g. "AMD EPYC 9575F"; the architecture's where the system gives none. */
void machine_name(char *out, size_t size);
size_t machine_memory_bytes(void);
size_t machine_cache_bytes(void); /* of the last level; 0 = unknown */

/* Every instruction set that this build knows, fastest first, NULL-terminated. */
const cpu_isa *const *machine_isas(void);

#endif
