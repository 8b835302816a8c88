#include "harness/view/info_text.h"

#include "base/text.h"

static const char *yes(const js *o, const char *key) {
    return js_get_bool(o, key, false) ? "yes" : "no";
}

snap_status backend_info_text(const js *o, buf *out, snap_err *err) {
    const js *plugin = js_get_object(o, "plugin");
    text_append_shown_printf(out, "%s on %s, kernel %s", js_get_str(o, "name"),
                             js_get_str(o, "device"), js_get_str(o, "kernel"));
    (void)buf_puts(out, "\n");
    if (js_get_num(o, "memory_bytes", 0) > 0)
        (void)buf_printf(out, "memory %.1f GiB, last-level cache %.0f MiB\n",
                         js_get_num(o, "memory_bytes", 0) / 0x1p30,
                         js_get_num(o, "cache_bytes", 0) / 0x1p20);
    (void)buf_printf(
        out,
        "works in host memory: %s; flushes caches for cold steps: %s; records steps: %s; computes "
        "FP64 references: %s\n",
        yes(o, "host_memory"), yes(o, "cold_by_flush"), yes(o, "records_steps"),
        yes(o, "judges_in_fp64"));
    if (plugin) {
        text_append_shown_printf(out, "plugin %s, sha256 %s", js_get_str(plugin, "file"),
                                 js_get_str(plugin, "sha256"));
        (void)buf_puts(out, "\n");
    }
    return buf_check(out, "the text", err);
}

/* ---- writing the machine's description ---- */

static const char *or_unknown(const char *s) {
    return s ? s : "unknown";
}

static void heading(buf *out, bool color, const char *title) {
    (void)buf_printf(out, "%s%s%s\n", color ? "\033[1m" : "", title, color ? "\033[0m" : "");
}

static void show_program(const js *doc, bool color, buf *out) {
    const js *program = js_get_object(doc, "program"), *build = js_get_object(doc, "build");
    heading(out, color, "program");
    (void)buf_printf(out, "  snapmla %s, commit %s%s\n", or_unknown(js_get_str(program, "version")),
                     or_unknown(js_get_str(program, "commit")),
                     js_get_bool(program, "dirty", false) ? ", with uncommitted changes" : "");
    (void)buf_printf(out, "  %s, %s, glibc %s\n", or_unknown(js_get_str(build, "compiler")),
                     or_unknown(js_get_str(build, "flags")), or_unknown(js_get_str(doc, "libc")));
}

static void show_machine(const js *doc, bool color, buf *out) {
    const js *host = js_get_object(doc, "host"), *cpu = js_get_object(doc, "cpu");
    const js *isa = js_get_array(cpu, "isa");
    heading(out, color, "machine");
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
        text_append_shown_printf(out, "%s%-9s yes  %s, kernel %s", indent, name,
                                 js_get_str(b, "device"), js_get_str(b, "kernel"));
    else
        text_append_shown_printf(out, "%s%-9s no   %s", indent, name,
                                 or_unknown(js_get_str(b, "reason")));
    (void)buf_puts(out, "\n");
    const js *isa = js_get_array(b, "isa");
    for (size_t i = 0; i < js_len(isa); i++)
        show_backend(js_at(isa, i), "    ", out);
}

snap_status machine_info_text(const js *doc, bool color, buf *out, snap_err *err) {
    const js *list = js_get_array(doc, "backends"), *files = js_get_array(doc, "configs");
    show_program(doc, color, out);
    show_machine(doc, color, out);
    heading(out, color, "backends");
    for (size_t i = 0; i < js_len(list); i++)
        show_backend(js_at(list, i), "  ", out);
    const js *judge = js_get_object(doc, "code_judge");
    const char *missing = js_get_str(judge, "missing");
    heading(out, color, "code judge");
    text_append_shown_printf(out, "  %s",
                             js_get_bool(judge, "present", false)
                                 ? "yes, python3 in bubblewrap"
                                 : or_unknown(js_get_str(judge, "reason")));
    if (missing)
        text_append_shown_printf(out, "; not installed for programs: %s", missing);
    (void)buf_puts(out, "\n");
    heading(out, color, "configurations");
    for (size_t i = 0; i < js_len(files); i++) {
        const js *file = js_at(files, i);
        text_append_shown_printf(out, "  %-13s %s", or_unknown(js_get_str(file, "name")),
                                 or_unknown(js_get_str(file, "why")));
        (void)buf_puts(out, "\n");
    }
    if (!js_len(files))
        (void)buf_puts(out,
                       "  none found: set SNAPMLA_SHARE to the folder that contains configs/\n");
    return buf_check(out, "the text", err);
}
