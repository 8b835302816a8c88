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
#include "build_info.h" /* made by the Makefile */
#include "harness/measure/env.h"
#include "harness/record/results.h"

enum { kTextLimit = 1 << 22 }; /* bytes of /proc/cpuinfo at most: 500 processors and room */

const char *results_program_version(void) {
    return BUILD_VERSION;
}

const char *results_program_commit(void) {
    return BUILD_DIRTY ? BUILD_COMMIT "-dirty" : BUILD_COMMIT;
}

/* ---- small texts of the kernel ---- */

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

/* A field of a file as a JSON string, null where it is not told. */
static js *field_of(const char *text, const char *key, char separator) {
    char value[512];
    return js_new_str(provenance_field(text, key, separator, value, sizeof value) ? value : NULL);
}

static js *line_of(const char *path) {
    buf text = read_text(path);
    char line[128];
    (void)snprintf(line, sizeof line, "%.*s", (int)strcspn(buf_str(&text), "\n"), buf_str(&text));
    trim(line);
    buf_release(&text);
    return js_new_str(line[0] ? line : NULL);
}

/* ---- a machine's folders are nobody's business ---- */

static bool follows(const char *text, size_t i, const char *word) {
    size_t n = strlen(word);
    return i >= n && memcmp(text + i - n, word, n) == 0;
}

/* At the start, behind an option's letter, "=", ":" or ","; the "//" of an address is no path. */
static bool begins_path(const char *text, size_t i) {
    if (text[i] != '/')
        return false;
    if (text[i + 1] == '/' && (follows(text, i, "http:") || follows(text, i, "https:")))
        return false;
    return i == 0 || (i == 2 && text[0] == '-') || strchr("=:,", text[i - 1]);
}

/* Of a path of @n bytes: its last name begins there, a slash at its end included; 0 where it has none. */
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

static js *hidden(const char *text) {
    char *clean = provenance_cut_folders(text);
    js *v = clean ? js_new_str(clean) : NULL;
    free(clean);
    return v;
}

js *provenance_cut_copy(js *v) {
    if (js_is_str(v))
        return hidden(js_str(v));
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

static js *argument_json(const char *argument, bool *next) {
    size_t n = provenance_public_part(argument, next);
    buf text = {0};
    (void)buf_append(&text, argument, n);
    (void)buf_puts(&text, argument[n] ? "***" : "");
    js *v = text.failed ? NULL : hidden(buf_str(&text));
    buf_release(&text);
    return v;
}

static js *argv_json(void) {
    buf line = read_text("/proc/self/cmdline"); /* NUL after every argument */
    js *argv = js_new_array();
    bool ok = argv != NULL, next = false;
    for (size_t i = 0; i < line.len && ok; i += strlen(line.data + i) + 1)
        ok = js_push_new(argv, argument_json(line.data + i, &next));
    buf_release(&line);
    if (ok)
        return argv;
    js_free(argv);
    return NULL;
}

/* ---- parts ---- */

static js *or_null(js *object, bool ok) {
    if (ok)
        return object;
    js_free(object);
    return NULL;
}

static js *program_json(void) {
    js *o = js_new_object();
    return or_null(o, o && js_set_str(o, "version", BUILD_VERSION) &&
                          js_set_str(o, "commit", BUILD_COMMIT) &&
                          js_set_bool(o, "dirty", BUILD_DIRTY));
}

static js *build_json(void) {
#ifdef __clang__
    const char *compiler = __VERSION__;
#else
    const char *compiler = "gcc " __VERSION__;
#endif
    js *o = js_new_object();
    return or_null(o, o && js_set_str(o, "compiler", compiler) &&
                          js_set_str(o, "flags", BUILD_FLAGS) &&
                          js_set_new(o, "cuda", js_new_str(BUILD_CUDA[0] ? BUILD_CUDA : NULL)));
}

/* A hint only: the files that docker and podman leave, and what systemd notes. */
static bool in_container(void) {
    return fs_exists("/.dockerenv") || fs_exists("/run/.containerenv") ||
           fs_exists("/run/systemd/container") || getenv("KUBERNETES_SERVICE_HOST");
}

static js *name_hash(const char *name) {
    char hex[HASH_HEX];
    bool ok = name[0] && hash_bytes(name, strlen(name), hex, NULL) == SNAP_OK;
    return js_new_str(ok ? hex : NULL);
}

static js *host_json(void) {
    buf release = read_text("/etc/os-release");
    struct utsname u;
    if (uname(&u) != 0)
        memset(&u, 0, sizeof u);
    js *o = js_new_object();
    bool ok = o && js_set_new(o, "os", field_of(buf_str(&release), "PRETTY_NAME", '=')) &&
              js_set_str(o, "kernel", u.release[0] ? u.release : NULL) &&
              js_set_str(o, "machine", u.machine[0] ? u.machine : NULL) &&
              js_set_new(o, "name_sha256", name_hash(u.nodename)) &&
              js_set_bool(o, "container", in_container());
    buf_release(&release);
    return or_null(o, ok);
}

js *provenance_isa(const char *flags) {
    static const char *const known[] = {
        "sse4_2",      "avx",      "f16c",     "fma",         "avx2",        "avx512f",
        "avx512bw",    "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16",
        "avx512_vbmi", "avx_vnni", "amx_tile", "amx_bf16",    "amx_int8",    "asimd",
        "asimdhp",     "bf16",     "i8mm",     "sve",         "sve2"};
    js *isa = js_new_array();
    bool ok = isa != NULL;
    for (const char *p = flags; *p && ok;) {
        size_t n = strcspn(p, " ");
        for (size_t i = 0; i < sizeof known / sizeof *known && ok; i++)
            if (strlen(known[i]) == n && strncmp(p, known[i], n) == 0)
                ok = js_push_new(isa, js_new_str(known[i]));
        p += n + strspn(p + n, " ");
    }
    return or_null(isa, ok);
}

static js *isa_json(const char *cpuinfo) {
    char *flags = malloc(kTextLimit);
    if (!flags)
        return NULL;
    bool told = provenance_field(cpuinfo, "flags", ':', flags, kTextLimit) ||
                provenance_field(cpuinfo, "Features", ':', flags, kTextLimit);
    js *isa = provenance_isa(told ? flags : "");
    free(flags);
    return isa;
}

static js *positive_or_null(long value, long unit) {
    return value > 0 ? js_new_int((int64_t)value * unit) : js_new_null();
}

static js *cpu_json(void) {
    buf info = read_text("/proc/cpuinfo");
    double mhz = env_parse_mhz(buf_str(&info));
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    js *o = js_new_object();
    bool ok =
        o && js_set_new(o, "model", field_of(buf_str(&info), "model name", ':')) &&
        js_set_int(o, "cores", parallel_cpus()) && js_set_new(o, "isa", isa_json(buf_str(&info))) &&
        js_set_new(o, "cache_bytes",
                   positive_or_null(cache > 0 ? cache : sysconf(_SC_LEVEL2_CACHE_SIZE), 1)) &&
        js_set_new(o, "memory_bytes",
                   positive_or_null(sysconf(_SC_PHYS_PAGES), sysconf(_SC_PAGESIZE))) &&
        js_set_num(o, "mhz_before", mhz > 0 ? mhz : (double)NAN) &&
        js_set_new(o, "governor", line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    buf_release(&info);
    return or_null(o, ok);
}

snap_status provenance_plugin(const char *backend, js **out, snap_err *err) {
    static const char kPlugin[] = "plugin:";
    char hex[HASH_HEX];
    bool is_plugin = backend && text_starts(backend, kPlugin);
    const char *path = is_plugin ? backend + sizeof kPlugin - 1 : "";
    const char *slash = strrchr(path, '/');
    *out = js_new_null();
    if (!is_plugin)
        return SNAP_OK;
    snap_status st = hash_file(path, hex, err);
    if (st != SNAP_OK)
        return st;
    js *o = js_new_object();
    *out = or_null(o, o && js_set_str(o, "file", slash ? slash + 1 : path) &&
                          js_set_str(o, "sha256", hex));
    return *out ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory for a plugin's name");
}

/* ---- all of it ---- */

static snap_status set_config(js *p, const js *config, snap_err *err) {
    js *copy = js_copy(config);
    js *clean = config ? provenance_cut_copy(copy) : js_new_object();
    buf text = {0};
    char hex[HASH_HEX];
    snap_status st = SNAP_OK;
    TRY(clean ? js_write(clean, JS_COMPACT, &text, err) : SNAP_E_NOMEM);
    TRY(hash_bytes(text.data, text.len, hex, err));
    bool ok = js_set_new(p, "config", clean) && js_set_str(p, "config_sha256", hex);
    clean = NULL; /* p has it */
    TRY(ok ? SNAP_OK : SNAP_E_NOMEM);
cleanup:
    if (st == SNAP_E_NOMEM)
        (void)err_set(err, st, "out of memory for the configuration");
    js_free(clean);
    js_free(copy);
    buf_release(&text);
    return st;
}

snap_status provenance_collect(js **out, const char *command, const js *config, int64_t seed,
                               snap_err *err) {
    char now[21];
    clock_utc(now);
    js *p = js_new_object();
    bool ok = p && js_set_new(p, "program", program_json()) &&
              js_set_new(p, "build", build_json()) && js_set_new(p, "argv", argv_json()) &&
              js_set_str(p, "command", command) && js_set_new(p, "host", host_json()) &&
              js_set_new(p, "cpu", cpu_json()) && js_set_new(p, "gpu", js_new_null()) &&
              js_set_new(p, "backend", js_new_null()) && js_set_int(p, "seed", seed) &&
              js_set_str(p, "started", now) && js_set_new(p, "ended", js_new_null());
    snap_status st = ok ? set_config(p, config, err)
                        : err_set(err, SNAP_E_NOMEM, "out of memory for the provenance");
    if (st != SNAP_OK) {
        js_free(p);
        p = NULL;
    }
    *out = p;
    return st;
}
