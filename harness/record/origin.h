/* origin.h - where a result comes from, as a result file holds it: for example program, build,
 * machine, command line and configuration. provenance.h collects it. */
#ifndef SNAPMLA_HARNESS_RECORD_ORIGIN_H
#define SNAPMLA_HARNESS_RECORD_ORIGIN_H

#include "harness/record/plugin.h"

typedef struct {
    const char *version, *commit;
    bool dirty; /* built with uncommitted changes */
} origin_program;

typedef struct {
    const char *compiler, *flags;
    const char *cuda; /* version of the CUDA toolkit of the build */
} origin_build;

typedef struct {
    const char *os, *kernel, *machine;
    bool container;
    const char *name_sha256; /* SHA-256 of the host's name: equal for runs on one machine, as long
                                as its name stays */
} origin_host;

typedef struct {
    const char *model;
    int64_t cores;
    record_texts isa;
    int64_t cache_bytes, memory_bytes;
    double mhz_before;
    const char *governor;
} origin_cpu;

/* The backend that measured; does not exist if none did. */
typedef struct {
    bool exists;
    const char *name, *device, *kernel;
    int64_t threads;
    plugin_record plugin;
} origin_backend;

typedef struct {
    origin_program program;
    origin_build build;
    record_texts argv;
    const char *command; /* "bench" */
    origin_host host;
    origin_cpu cpu;
    const js *gpu; /* what gpu_json() reports of the device; NULL = no NVIDIA device was opened */
    origin_backend backend;
    const js *config; /* the resolved options */
    const char *config_sha256;
    int64_t seed;
    const char *started, *ended; /* UTC, "2026-01-31T12:00:00Z"; ended is "" if the run was
                                    interrupted */
    const char *interrupted;     /* what an interrupted run has: "15 of 64 shapes"; "" = it was not
                                    interrupted */
} origin_record;

extern const record_type origin_type, origin_program_type, origin_backend_type;

typedef struct {
    origin_record *at;
    size_t n;
} origin_list;

#endif
