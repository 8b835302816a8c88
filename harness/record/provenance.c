#include "harness/record/provenance.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/text.h"
#include "build_info.h" /* written by the Makefile */
#include "harness/measure/code_hash.h"
#include "harness/measure/env.h"
#include "harness/record/origin.h"
#include "harness/record/results.h"

enum { kTextLimit = 1 << 22 }; /* bytes: more than the /proc/cpuinfo of 500 processors */

const char *results_program_version(void) {
    return BUILD_VERSION;
}

const char *results_program_commit(void) {
    return BUILD_DIRTY ? BUILD_COMMIT "-dirty" : BUILD_COMMIT;
}

/* ---- reading small text files ---- */

static buf read_text(const char *path) {
    buf text = {.limit = kTextLimit};
    if (fs_read(path, &text, NULL) != SNAP_OK)
        buf_clear(&text);
    return text;
}

static void trim(char *s) {
    size_t n = strlen(s);
    while (n && (isspace((unsigned char)s[n - 1]) || s[n - 1] == '"'))
        s[--n] = '\0';
    size_t skip = strspn(s, " \t\"");
    memmove(s, s + skip, n - skip + 1);
}

bool provenance_field(const char *text, const char *key, char separator, char *out, size_t size) {
    size_t n = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *end = line + n;
        if (strncmp(line, key, n) != 0 || *(end += strspn(end, " \t")) != separator)
            continue;
        (void)snprintf(out, size, "%.*s", (int)strcspn(end + 1, "\n"), end + 1);
        trim(out);
        return out[0] != '\0';
    }
    return false;
}

/* A copy of @text in @mem, or NULL if @text is empty. Sets *failed when out of memory. */
static const char *copy_of(arena *mem, const char *text, bool *failed) {
    const char *copy = text[0] ? arena_strdup(mem, text) : NULL;
    *failed |= text[0] && !copy;
    return copy;
}

/* The first line of a file without surrounding spaces and quotes; "" if it cannot be read. */
static void read_line(const char *path, char *line, size_t size) {
    buf text = read_text(path);
    (void)snprintf(line, size, "%.*s", (int)strcspn(buf_str(&text), "\n"), buf_str(&text));
    trim(line);
    buf_release(&text);
}

/* ---- leaving out what others must not see: folders and passwords ---- */

static bool follows(const char *text, size_t i, const char *word) {
    size_t n = strlen(word);
    return i >= n && memcmp(text + i - n, word, n) == 0;
}

/* Whether an absolute path begins at text[i]: at the start of the text, after the letter of a short
 * option, or after "=", ":" or ",". The "//" of an http address is not a path. */
static bool begins_path(const char *text, size_t i) {
    if (text[i] != '/')
        return false;
    if (text[i + 1] == '/' && (follows(text, i, "http:") || follows(text, i, "https:")))
        return false;
    return i == 0 || (i == 2 && text[0] == '-') || strchr("=:,", text[i - 1]);
}

/* The offset of the last name in a path of @n bytes; 0 if it has none. A slash at the end belongs
 * to the last name. */
static size_t last_name(const char *path, size_t n) {
    size_t from = 0;
    for (size_t i = 0; i + 1 < n; i++)
        if (path[i] == '/' && path[i + 1] != '/')
            from = i + 1;
    return from;
}

char *provenance_cut_folders(const char *text) {
    buf out = {0};
    for (size_t i = 0, n; text[i]; i += n) {
        bool path = begins_path(text, i);
        n = path ? strcspn(text + i, ",") : 1;
        size_t from = path ? last_name(text + i, n) : 0;
        (void)buf_append(&out, text + i + from, n - from);
    }
    char *s = out.failed ? NULL : buf_steal(&out);
    buf_release(&out);
    return s;
}

bool provenance_set_path(js *o, const char *key, const char *text) {
    char *name = text ? provenance_cut_folders(text) : NULL;
    bool ok = (name || !text) && js_set_str(o, key, name);
    free(name);
    return ok;
}

static js *cut_text(const char *text) {
    char *clean = provenance_cut_folders(text);
    js *v = clean ? js_new_str(clean) : NULL;
    free(clean);
    return v;
}

js *provenance_cut_copy(js *v) {
    if (js_is_str(v))
        return cut_text(js_str(v));
    if (!js_is_object(v) && !js_is_array(v))
        return js_copy(v);
    js *copy = js_is_object(v) ? js_new_object() : js_new_array();
    bool ok = copy != NULL;
    for (void *it = js_first(v); it && ok; it = js_next(v, it))
        ok = js_set_new(copy, js_key(it), provenance_cut_copy(js_value(it)));
    for (size_t i = 0; i < js_len(v) && ok; i++)
        ok = js_push_new(copy, provenance_cut_copy(js_at(v, i)));
    if (ok)
        return copy;
    js_free(copy);
    return NULL;
}

size_t provenance_public_part(const char *argument, bool *next) {
    const char *value = strchr(argument, '=');
    size_t n = strlen(argument), name = value ? (size_t)(value - argument) : n;
    if (*next) {
        *next = false;
        return 0;
    }
    if (strncmp(argument, "--", 2) != 0 || !memmem(argument, name, "password", strlen("password")))
        return n;
    *next = !value;
    return value ? name + 1 : n;
}

/* An argument of the command line in @mem, without folders; "***" replaces a password. NULL: out of
 * memory. */
static const char *public_argument(arena *mem, const char *argument, bool *next) {
    size_t n = provenance_public_part(argument, next);
    buf text = {0};
    (void)buf_append(&text, argument, n);
    (void)buf_puts(&text, argument[n] ? "***" : "");
    char *clean = text.failed ? NULL : provenance_cut_folders(buf_str(&text));
    const char *copy = clean ? arena_strdup(mem, clean) : NULL;
    free(clean);
    buf_release(&text);
    return copy;
}

static size_t count_arguments(const buf *line) {
    size_t n = 0;
    for (size_t i = 0; i < line->len; i += strlen(line->data + i) + 1)
        n++;
    return n;
}

static record_texts command_line(arena *mem, bool *failed) {
    buf line = read_text("/proc/self/cmdline"); /* a NUL ends each argument */
    const char **at = arena_alloc(mem, count_arguments(&line) + 1, sizeof *at);
    size_t n = 0;
    bool next = false;
    for (size_t i = 0; at && i < line.len; i += strlen(line.data + i) + 1) {
        at[n] = public_argument(mem, line.data + i, &next);
        *failed |= !at[n++];
    }
    *failed |= !at;
    buf_release(&line);
    return (record_texts){at, n};
}

/* ---- parts of the provenance ---- */

static origin_program this_program(void) {
    return (origin_program){.version = BUILD_VERSION, .commit = BUILD_COMMIT, .dirty = BUILD_DIRTY};
}

static origin_build this_build(void) {
#ifdef __clang__
    const char *compiler = __VERSION__;
#else
    const char *compiler = "gcc " __VERSION__;
#endif
    return (origin_build){.compiler = compiler, .flags = BUILD_FLAGS, .cuda = BUILD_CUDA};
}

/* Looks for files that docker, podman and systemd leave and for a variable of Kubernetes. The
 * result is only a hint. */
static bool in_container(void) {
    return fs_exists("/.dockerenv") || fs_exists("/run/.containerenv") ||
           fs_exists("/run/systemd/container") || getenv("KUBERNETES_SERVICE_HOST");
}

static origin_host this_host(arena *mem, bool *failed) {
    buf release = read_text("/etc/os-release");
    char os[512] = "", hex[HASH_HEX] = "";
    struct utsname u;
    if (uname(&u) != 0)
        memset(&u, 0, sizeof u);
    (void)provenance_field(buf_str(&release), "PRETTY_NAME", '=', os, sizeof os);
    if (!u.nodename[0] || hash_bytes(u.nodename, strlen(u.nodename), hex, NULL) != SNAP_OK)
        hex[0] = '\0';
    buf_release(&release);
    return (origin_host){.os = copy_of(mem, os, failed),
                         .kernel = copy_of(mem, u.release, failed),
                         .machine = copy_of(mem, u.machine, failed),
                         .container = in_container(),
                         .name_sha256 = copy_of(mem, hex, failed)};
}

/* The known instruction-set flag that equals the first @n bytes of @text; NULL if there is none. */
static const char *known_isa(const char *text, size_t n) {
    static const char *const known[] = {
        "sse4_2",      "avx",      "f16c",     "fma",         "avx2",        "avx512f",
        "avx512bw",    "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16",
        "avx512_vbmi", "avx_vnni", "amx_tile", "amx_bf16",    "amx_int8",    "asimd",
        "asimdhp",     "bf16",     "i8mm",     "sve",         "sve2"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i]) == n && strncmp(text, known[i], n) == 0)
            return known[i];
    return NULL;
}

bool provenance_isa(const char *flags, arena *mem, record_texts *out) {
    const char **at = arena_alloc(mem, strlen(flags) / 2 + 2, sizeof *at);
    size_t n = 0;
    for (const char *p = flags; at && *p;) {
        size_t len = strcspn(p, " ");
        const char *word = known_isa(p, len);
        if (word)
            at[n++] = word;
        p += len + strspn(p + len, " ");
    }
    *out = (record_texts){at, n};
    return at != NULL;
}

static bool read_isa(const char *cpuinfo, arena *mem, record_texts *out) {
    char *flags = malloc(kTextLimit);
    if (!flags)
        return false;
    bool found = provenance_field(cpuinfo, "flags", ':', flags, kTextLimit) ||
                 provenance_field(cpuinfo, "Features", ':', flags, kTextLimit);
    bool ok = provenance_isa(found ? flags : "", mem, out);
    free(flags);
    return ok;
}

static int64_t cache_bytes(void) {
    long level3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
    long bytes = level3 > 0 ? level3 : sysconf(_SC_LEVEL2_CACHE_SIZE);
    return bytes > 0 ? bytes : RECORD_NO_COUNT;
}

static int64_t memory_bytes(void) {
    long pages = sysconf(_SC_PHYS_PAGES);
    return pages > 0 ? (int64_t)pages * sysconf(_SC_PAGESIZE) : RECORD_NO_COUNT;
}

static origin_cpu this_cpu(arena *mem, bool *failed) {
    buf info = read_text("/proc/cpuinfo");
    double mhz = env_parse_mhz(buf_str(&info));
    char model[512] = "", governor[128];
    origin_cpu cpu = {.cores = parallel_cpus(),
                      .cache_bytes = cache_bytes(),
                      .memory_bytes = memory_bytes(),
                      .mhz_before = mhz > 0 ? mhz : (double)NAN};
    (void)provenance_field(buf_str(&info), "model name", ':', model, sizeof model);
    read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor, sizeof governor);
    cpu.model = copy_of(mem, model, failed);
    cpu.governor = copy_of(mem, governor, failed);
    *failed |= !read_isa(buf_str(&info), mem, &cpu.isa);
    buf_release(&info);
    return cpu;
}

snap_status provenance_plugin(const char *backend, arena *mem, plugin_record *out, snap_err *err) {
    char hex[HASH_HEX];
    bool failed = false;
    *out = (plugin_record){0};
    if (!backend || !code_is_file(backend))
        return SNAP_OK;
    const char *path = strchr(backend, ':') + 1, *slash = strrchr(path, '/');
    snap_status st = hash_file(path, hex, err);
    if (st != SNAP_OK)
        return st;
    out->exists = true;
    out->file = copy_of(mem, slash ? slash + 1 : path, &failed);
    out->sha256 = copy_of(mem, hex, &failed);
    return failed ? err_set(err, SNAP_E_NOMEM, "out of memory for a plugin's name") : SNAP_OK;
}

/* ---- the whole provenance ---- */

/* Sets the configuration and its hash. @config: borrowed by @o; NULL counts as out of memory. */
static snap_status set_config(origin_record *o, const js *config, arena *mem, snap_err *err) {
    buf text = {0};
    char hex[HASH_HEX];
    bool failed = false;
    snap_status st = SNAP_OK;
    TRY(config ? SNAP_OK : SNAP_E_NOMEM);
    TRY(js_write(config, JS_COMPACT, &text, err));
    TRY(hash_bytes(text.data, text.len, hex, err));
    o->config = config;
    o->config_sha256 = copy_of(mem, hex, &failed);
    st = failed ? SNAP_E_NOMEM : SNAP_OK;
cleanup:
    if (st == SNAP_E_NOMEM)
        (void)err_set(err, st, "out of memory for the configuration");
    buf_release(&text);
    return st;
}

/* A copy of the configuration in which absolute paths are shortened; an empty object for NULL. The
 * result is NULL when out of memory. */
static js *public_config(const js *config) {
    js *copy = config ? js_copy(config) : NULL;
    js *clean = config ? provenance_cut_copy(copy) : js_new_object();
    js_free(copy);
    return clean;
}

snap_status provenance_collect(js **out, const char *command, const js *config, int64_t seed,
                               snap_err *err) {
    char now[21];
    arena mem = {0};
    origin_record o;
    bool failed = false;
    js *clean = public_config(config);
    clock_utc(now);
    record_init(&origin_type, &o);
    o.program = this_program();
    o.build = this_build();
    o.argv = command_line(&mem, &failed);
    o.command = command;
    o.host = this_host(&mem, &failed);
    o.cpu = this_cpu(&mem, &failed);
    o.seed = seed;
    o.started = now;
    snap_status st = set_config(&o, clean, &mem, err);
    *out = st == SNAP_OK && !failed ? record_write(&origin_type, &o) : NULL;
    if (st == SNAP_OK && !*out)
        st = err_set(err, SNAP_E_NOMEM, "out of memory for the provenance");
    js_free(clean);
    arena_release(&mem);
    return st;
}
