/* device_names.c - names the devices of a comparison, so that no two have the same name. */
#include <string.h>

#include "harness/view/compare.h"

const origin_record *compare_origin(const report_model *m, int device) {
    const origin_record *first = NULL;
    for (size_t i = 0; i < m->n_sources; i++) {
        const origin_record *row = m->sources[i].row;
        if (m->device_of[m->sources[i].file] != device)
            continue;
        if (row->backend.exists)
            return row;
        first = first ? first : row;
    }
    return first;
}

/* Appends a name without "(R)" and "(TM)". */
static void put_plain(buf *out, const char *name) {
    static const char *const marks[] = {"(R)", "(TM)"};
    while (*name) {
        size_t skip = 0;
        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
            if (strncmp(name, marks[i], strlen(marks[i])) == 0)
                skip = strlen(marks[i]);
        if (!skip)
            (void)buf_printf(out, "%c", *name);
        name += skip ? skip : 1;
    }
}

/* Returns the name without a number. NULL: out of memory. */
static const char *name_of(report_model *m, int device) {
    const origin_record *from = compare_origin(m, device);
    buf text = {0};
    if (from && from->backend.exists) {
        put_plain(&text, from->backend.device[0] ? from->backend.device : "unknown device");
        (void)buf_printf(&text, " (%s%s%s)", from->backend.name,
                         from->backend.kernel[0] ? ", " : "", from->backend.kernel);
    } else if (from && from->cpu.model[0]) {
        put_plain(&text, from->cpu.model);
        (void)buf_printf(&text, ", %lld cores", (long long)from->cpu.cores);
    } else {
        (void)buf_puts(&text, "unknown device");
    }
    const char *name = text.failed ? NULL : arena_strdup(&m->mem, buf_str(&text));
    buf_release(&text);
    return name;
}

static const char *numbered(report_model *m, const char *name, int number) {
    buf text = {0};
    (void)buf_printf(&text, "%s #%d", name, number);
    const char *out = text.failed ? NULL : arena_strdup(&m->mem, buf_str(&text));
    buf_release(&text);
    return out;
}

bool compare_name_devices(report_model *m) {
    const char **plain = arena_alloc(&m->mem, (size_t)m->n_devices + 1, sizeof *plain);
    m->labels = arena_alloc(&m->mem, (size_t)m->n_devices + 1, sizeof *m->labels);
    for (int i = 0; plain && i < m->n_devices; i++)
        if (!(plain[i] = name_of(m, i)))
            return false;
    for (int i = 0; plain && m->labels && i < m->n_devices; i++) {
        bool shared = false;
        for (int k = 0; k < m->n_devices; k++)
            shared |= k != i && strcmp(plain[k], plain[i]) == 0;
        m->labels[i] = shared ? numbered(m, plain[i], i + 1) : plain[i];
        if (!m->labels[i])
            return false;
    }
    return plain && m->labels;
}
