/* target.h - compiles the code between TARGET_BEGIN and TARGET_END for an instruction set, so that
 * no file needs its own compiler flags. A header whose functions use the set must be included after
 * TARGET_BEGIN. */
#ifndef SNAPMLA_KERNELS_CPU_TARGET_H
#define SNAPMLA_KERNELS_CPU_TARGET_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/formats.h"

#define TARGET_PRAGMA(x) _Pragma(#x)
#if defined __clang__
#define TARGET_BEGIN(isa)                                                                          \
    TARGET_PRAGMA(clang attribute push(__attribute__((target(isa))), apply_to = function))
#define TARGET_END _Pragma("clang attribute pop")
#else
#define TARGET_BEGIN(isa)                                                                          \
    _Pragma("GCC push_options") TARGET_PRAGMA(GCC target(isa)) _Pragma("GCC optimize(\"O3\")")
#define TARGET_END _Pragma("GCC pop_options")
#endif

#endif
