#include <dirent.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/parallel.h"
#include "base/term.h"
#include "base/text.h"
#include "evals/code/sandbox.h"
#include "harness/cmd/cmd.h"
#include "harness/cmd/device_table.h"
#include "harness/record/provenance.h"
#include "harness/record/results.h"
#include "harness/share.h"
#include "kernels/lab.h"

enum { kConfigLimit = 1 << 20 };

static device_options device = {.isa = "auto"}; /* backend NULL: all of them, and all else */

static const opt options[] = {DEVICE_OPTIONS(device), {.type = OPT_END}};

/* ---- backends ---- */

/* Whether a backend opens so, as {"name", "present", "reason", "device", "kernel"}. */
static js *try_backend(const char *name, const char *isa, const char *shown) {
    mla_backend_options wanted = {.isa = isa};
    mla_backend *be = NULL;
    snap_err why = {0};
    js *o = js_new_object();
    (void)js_set_str(o, "name", shown);
    if (mla_backend_open(&be, name, &wanted, &why) == SNAP_OK) {
        mla_backend_info info;
        mla_backend_describe(be, &info);
        (void)js_set_str(o, "device", info.device);
        (void)js_set_str(o, "kernel", info.kernel);
        (void)js_set_int(o, "memory_bytes", (int64_t)info.memory_bytes);
        (void)js_set_int(o, "cache_bytes", (int64_t)info.cache_bytes);
    }
    (void)js_set_bool(o, "present", be != NULL);
    (void)js_set_new(o, "reason", js_new_str(be ? NULL : why.text));
    mla_backend_close(be);
    return o;
}

static js *cpu_paths(void) {
    static const char *const isas[] = {"avx512", "avx512f", "avx2", "portable"};
    js *paths = js_new_array();
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
        (void)js_push_new(paths, try_backend("cpu", isas[i], isas[i]));
    return paths;
}

static bool in_build(const char *name) {
    for (const char *const *n = mla_backend_list(); *n; n++)
        if (strcmp(*n, name) == 0)
            return true;
    return false;
}

static js *left_out(const char *name, const char *reason) {
    js *o = js_new_object();
    (void)js_set_str(o, "name", name);
    (void)js_set_bool(o, "present", false);
    (void)js_set_str(o, "reason", reason);
    return o;
}

static js *backends(void) {
    js *all = js_new_array();
    for (const char *const *name = mla_backend_list(); *name; name++) {
        js *o = try_backend(*name, "auto", *name);
        if (strcmp(*name, "cpu") == 0)
            (void)js_set_new(o, "isa", cpu_paths());
        (void)js_push_new(all, o);
    }
    if (!in_build("cuda"))
        (void)js_push_new(all, left_out("cuda", "this build has no CUDA backend"));
    return all;
}

/* ---- configurations ---- */

static int is_json(const struct dirent *entry) {
    return text_ends(entry->d_name, ".json");
}

static js *config_row(const char *dir, const char *name) {
    js *o = js_new_object();
    char *path = fs_join(dir, name);
    snap_err err = {0};
    js *file = path ? js_parse_file(path, kConfigLimit, &err) : NULL;
    (void)js_set_new(o, "name", js_new_strn(name, strlen(name) - strlen(".json")));
    (void)js_set_new(o, "path", js_new_str(path));
    (void)js_set_new(o, "why", js_new_str(file ? js_get_str(file, "why") : err.text));
    js_free(file);
    free(path);
    return o;
}

static js *configs(void) {
    char *dir = share_find("configs");
    struct dirent **entries = NULL;
    js *rows = js_new_array();
    int n = dir ? scandir(dir, &entries, is_json, alphasort) : 0;
    for (int i = 0; i < n; i++) {
        (void)js_push_new(rows, config_row(dir, entries[i]->d_name));
        free(entries[i]);
    }
    free(entries);
    free(dir);
    return rows;
}

/* Whether programs can be judged here. */
static js *code_judge_state(void) {
    js *o = js_new_object();
    sandbox *s = NULL;
    snap_err why = {0};
    bool can = sandbox_open(&s, NULL, &why) == SNAP_OK;
    sandbox_close(s);
    if (o && js_set_bool(o, "present", can) && js_set_str(o, "reason", can ? NULL : why.text))
        return o;
    js_free(o);
    return NULL;
}

/* ---- the document ---- */

static snap_status document(js **out, snap_err *err) {
    static const char *const parts[] = {"program", "build", "host", "cpu"};
    results *r = NULL;
    snap_status st = results_new(&r, "info", NULL, 0, err);
    if (st != SNAP_OK)
        return st;
    const js *provenance = js_get_object(results_document(r), "provenance");
    js *doc = js_new_object();
    bool ok = doc != NULL;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        ok = ok && js_set_new(doc, parts[i], js_copy(js_get(provenance, parts[i])));
    ok = ok && js_set_str(doc, "libc", gnu_get_libc_version()) &&
         js_set_int(doc, "threads", parallel_cpus()) && js_set_new(doc, "backends", backends()) &&
         js_set_new(doc, "code_judge", code_judge_state()) && js_set_new(doc, "configs", configs());
    results_free(r);
    *out = doc;
    return ok ? SNAP_OK : err_set(err, SNAP_E_NOMEM, "out of memory");
}

/* ---- one backend ---- */

/* What a backend says of itself, once it has opened. */
static snap_status describe_one(js **out, snap_err *err) {
    mla_backend *be = NULL;
    mla_backend_info info;
    snap_status st = device_open(&be, &device, err);
    if (st != SNAP_OK)
        return st;
    mla_backend_describe(be, &info);
    js *o = js_new_object(), *plugin = js_new_null();
    st = provenance_plugin(device.backend, &plugin, err);
    bool ok = o && js_set_str(o, "name", info.name) && js_set_str(o, "device", info.device) &&
              js_set_str(o, "kernel", info.kernel) &&
              js_set_int(o, "memory_bytes", (int64_t)info.memory_bytes) &&
              js_set_int(o, "cache_bytes", (int64_t)info.cache_bytes) &&
              js_set_bool(o, "host_memory", info.host_memory) &&
              js_set_bool(o, "cold_by_flush", lab_can_flush(be)) &&
              js_set_bool(o, "records_steps", lab_can_record(be)) &&
              js_set_bool(o, "judges_in_fp64", lab_can_attend(be)) &&
              js_set_new(o, "pci", js_new_str(info.pci[0] ? info.pci : NULL)) &&
              js_set_new(o, "plugin", plugin);
    mla_backend_close(be);
    if (st == SNAP_OK && !ok)
        st = err_set(err, SNAP_E_NOMEM, "out of memory");
    *out = o;
    return st;
}

static const char *yes(const js *o, const char *key) {
    return js_get_bool(o, key, false) ? "yes" : "no";
}

static snap_status show_one(const js *o, buf *out, snap_err *err) {
    const js *plugin = js_get_object(o, "plugin");
    (void)buf_printf(out, "%s on %s, kernel %s\n", js_get_str(o, "name"), js_get_str(o, "device"),
                     js_get_str(o, "kernel"));
    if (js_get_num(o, "memory_bytes", 0) > 0)
        (void)buf_printf(out, "memory %.1f GiB, last-level cache %.0f MiB\n",
                         js_get_num(o, "memory_bytes", 0) / 0x1p30,
                         js_get_num(o, "cache_bytes", 0) / 0x1p20);
    (void)buf_printf(out,
                     "memory of the host %s, cold caches by a flush %s, steps recorded %s, judged "
                     "in FP64 there %s\n",
                     yes(o, "host_memory"), yes(o, "cold_by_flush"), yes(o, "records_steps"),
                     yes(o, "judges_in_fp64"));
    if (plugin)
        (void)buf_printf(out, "plugin %s, sha256 %s\n", js_get_str(plugin, "file"),
                         js_get_str(plugin, "sha256"));
    return buf_check(out, "the text", err);
}

/* ---- as text ---- */

static const char *or_unknown(const char *s) {
    return s ? s : "unknown";
}

static void heading(buf *out, const char *title) {
    bool color = term_use_color(STDOUT_FILENO);
    (void)buf_printf(out, "%s%s%s\n", color ? "\033[1m" : "", title, color ? "\033[0m" : "");
}

static void show_program(const js *doc, buf *out) {
    const js *program = js_get_object(doc, "program"), *build = js_get_object(doc, "build");
    heading(out, "program");
    (void)buf_printf(out, "  snapmla %s, commit %s%s\n", or_unknown(js_get_str(program, "version")),
                     or_unknown(js_get_str(program, "commit")),
                     js_get_bool(program, "dirty", false) ? ", with local changes" : "");
    (void)buf_printf(out, "  %s, %s, glibc %s\n", or_unknown(js_get_str(build, "compiler")),
                     or_unknown(js_get_str(build, "flags")), or_unknown(js_get_str(doc, "libc")));
}

static void show_machine(const js *doc, buf *out) {
    const js *host = js_get_object(doc, "host"), *cpu = js_get_object(doc, "cpu");
    const js *isa = js_get_array(cpu, "isa");
    heading(out, "machine");
    (void)buf_printf(out, "  %s, kernel %s%s\n", or_unknown(js_get_str(host, "os")),
                     or_unknown(js_get_str(host, "kernel")),
                     js_get_bool(host, "container", false) ? ", in a container" : "");
    (void)buf_printf(out, "  %s, %lld cores (%lld for this process)\n",
                     or_unknown(js_get_str(cpu, "model")), (long long)js_get_int(cpu, "cores", 0),
                     (long long)js_get_int(doc, "threads", 0));
    (void)buf_printf(out, "  last-level cache %.0f MiB, memory %.1f GiB\n",
                     js_get_num(cpu, "cache_bytes", 0) / 0x1p20,
                     js_get_num(cpu, "memory_bytes", 0) / 0x1p30);
    (void)buf_puts(out, "  instruction sets:");
    for (size_t i = 0; i < js_len(isa); i++)
        (void)buf_printf(out, " %s", js_str(js_at(isa, i)));
    (void)buf_puts(out, "\n");
}

static void show_backend(const js *b, const char *indent, buf *out) {
    const char *name = or_unknown(js_get_str(b, "name"));
    if (js_get_bool(b, "present", false))
        (void)buf_printf(out, "%s%-9s yes  %s, kernel %s\n", indent, name, js_get_str(b, "device"),
                         js_get_str(b, "kernel"));
    else
        (void)buf_printf(out, "%s%-9s no   %s\n", indent, name,
                         or_unknown(js_get_str(b, "reason")));
    const js *isa = js_get_array(b, "isa");
    for (size_t i = 0; i < js_len(isa); i++)
        show_backend(js_at(isa, i), "    ", out);
}

static snap_status show(const js *doc, buf *out, snap_err *err) {
    const js *list = js_get_array(doc, "backends"), *files = js_get_array(doc, "configs");
    show_program(doc, out);
    show_machine(doc, out);
    heading(out, "backends");
    for (size_t i = 0; i < js_len(list); i++)
        show_backend(js_at(list, i), "  ", out);
    const js *judge = js_get_object(doc, "code_judge");
    heading(out, "code judge");
    (void)buf_printf(out, "  %s\n",
                     js_get_bool(judge, "present", false)
                         ? "yes, python3 in bubblewrap"
                         : or_unknown(js_get_str(judge, "reason")));
    heading(out, "configurations");
    for (size_t i = 0; i < js_len(files); i++)
        (void)buf_printf(out, "  %-13s %s\n", or_unknown(js_get_str(js_at(files, i), "name")),
                         or_unknown(js_get_str(js_at(files, i), "why")));
    if (!js_len(files))
        (void)buf_puts(out, "  none found: set SNAPMLA_SHARE to the folder that holds configs/\n");
    return buf_check(out, "the text", err);
}

static snap_status run(opt_shared *shared, snap_err *err) {
    js *doc = NULL;
    buf out = {0};
    snap_status st = SNAP_OK;
    TRY(device.backend ? describe_one(&doc, err) : document(&doc, err));
    if (shared->json) {
        TRY(js_write(doc, JS_PRETTY, &out, err));
        (void)buf_puts(&out, "\n");
    } else {
        TRY(device.backend ? show_one(doc, &out, err) : show(doc, &out, err));
    }
    (void)fputs(buf_str(&out), stdout);
cleanup:
    js_free(doc);
    buf_release(&out);
    return st;
}

const opt_command cmd_info = {
    .name = "info",
    .summary = "what this build and this machine can do, and why not",
    .synopsis = "[options]",
    .about =
        "What this build and this machine can do, and why not: program, processor, backends and\n"
        "their instruction sets, configurations. With --backend that one alone, opened: the exit\n"
        "code is 0 only where it can be used.",
    .examples = "  snapmla info\n"
                "  snapmla info --json\n"
                "  snapmla info --backend plugin:./vendor.so",
    .options = options,
    .run = run,
};
