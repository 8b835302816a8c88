/* warm.c - the minimal plugin with a cache of unknown size, for tests that run `bench` many times:
 * one set of inputs is then enough. */
#include <unistd.h>
#define sysconf(name) (-1L)
#include "kernels/plugin/example/minimal.c"
