#include "harness/record/origin.h"

/* clang-format off */
enum { NUL = FIELD_NULLABLE, OPT = FIELD_OPTIONAL };

static const field program_fields[] = {
    {FIELD_OF(origin_program, version), FIELD_TEXT, FIELD_NAME},
    {FIELD_OF(origin_program, commit), FIELD_TEXT, FIELD_NAME},
    {FIELD_OF(origin_program, dirty), FIELD_BOOL, .about = "built with uncommitted changes"},
};
const record_type origin_program_type = {
    .name = "program", .size = sizeof(origin_program), RECORD_FIELDS(program_fields)};

static const field build_fields[] = {
    {FIELD_OF(origin_build, compiler), FIELD_TEXT, FIELD_NAME},
    {FIELD_OF(origin_build, flags), FIELD_TEXT},
    {FIELD_OF(origin_build, cuda), FIELD_TEXT, NUL},
};
static const record_type build_type = {
    .name = "build", .size = sizeof(origin_build), RECORD_FIELDS(build_fields)};

static const field host_fields[] = {
    {FIELD_OF(origin_host, os), FIELD_TEXT, NUL},
    {FIELD_OF(origin_host, kernel), FIELD_TEXT, NUL},
    {FIELD_OF(origin_host, machine), FIELD_TEXT, NUL | OPT},
    {FIELD_OF(origin_host, container), FIELD_BOOL},
    {FIELD_OF(origin_host, name_sha256), FIELD_TEXT, NUL | OPT | FIELD_SHA256,
     .about = "of the host's name: equal for runs on one machine"},
};
static const record_type host_type = {
    .name = "host", .size = sizeof(origin_host), RECORD_FIELDS(host_fields)};

static const field cpu_fields[] = {
    {FIELD_OF(origin_cpu, model), FIELD_TEXT, NUL},
    {FIELD_OF(origin_cpu, cores), FIELD_COUNT, .low = 1},
    {FIELD_OF(origin_cpu, isa), FIELD_TEXTS, FIELD_NAME},
    {FIELD_OF(origin_cpu, cache_bytes), FIELD_COUNT, NUL},
    {FIELD_OF(origin_cpu, memory_bytes), FIELD_COUNT, NUL},
    {FIELD_OF(origin_cpu, mhz_before), FIELD_NUMBER, NUL | FIELD_ABOVE_0},
    {FIELD_OF(origin_cpu, governor), FIELD_TEXT, NUL},
};
static const record_type cpu_type = {
    .name = "cpu", .size = sizeof(origin_cpu), RECORD_FIELDS(cpu_fields)};

static const field backend_fields[] = {
    {FIELD_OF(origin_backend, name), FIELD_TEXT, FIELD_NAME},
    {FIELD_OF(origin_backend, device), FIELD_TEXT},
    {FIELD_OF(origin_backend, kernel), FIELD_TEXT},
    {FIELD_OF(origin_backend, threads), FIELD_COUNT, NUL, .low = 1},
    {FIELD_OF(origin_backend, plugin), FIELD_RECORD, OPT, .of = &plugin_type},
};
const record_type origin_backend_type = {
    .name = "backend", .size = sizeof(origin_backend), RECORD_FIELDS(backend_fields),
    .exists = RECORD_MEMBER(origin_backend, exists)};

#define O(member) FIELD_OF(origin_record, member)
static const field fields[] = {
    {O(program), FIELD_RECORD, .of = &origin_program_type},
    {O(build), FIELD_RECORD, .of = &build_type},
    {O(argv), FIELD_TEXTS},
    {O(command), FIELD_TEXT, FIELD_NAME},
    {O(host), FIELD_RECORD, .of = &host_type},
    {O(cpu), FIELD_RECORD, .of = &cpu_type},
    {O(gpu), FIELD_OPEN, NUL},
    {O(backend), FIELD_RECORD, NUL, .of = &origin_backend_type},
    {O(config), FIELD_OPEN},
    {O(config_sha256), FIELD_TEXT, FIELD_SHA256},
    {O(seed), FIELD_INTEGER},
    {O(started), FIELD_TEXT, FIELD_UTC},
    {O(ended), FIELD_TEXT, NUL | FIELD_UTC},
    {O(interrupted), FIELD_TEXT, OPT | FIELD_NAME,
     .about = "what a run that was interrupted has: 15 of 64 shapes; ended is null then"},
};
#undef O
const record_type origin_type = {
    .name = "provenance", .size = sizeof(origin_record), RECORD_FIELDS(fields)};
/* clang-format on */
