#include "harness/view/paper_pen.h"

#include <math.h>
#include <string.h>

size_t paper_count_quotes(const report_model *m, const char *about) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_quotes; i++)
        n += strcmp(m->quotes[i].about, about) == 0;
    return n;
}

void paper_blank(pen *p, int n) {
    for (int i = 0; i < n; i++)
        pen_text(p, "");
}

char *paper_name(arena *mem, const char *path) {
    static const char kEnd[] = ".json";
    const char *slash = strrchr(path, '/');
    char *name = arena_strdup(mem, slash ? slash + 1 : path);
    size_t n = name ? strlen(name) : 0, end = sizeof kEnd - 1;
    if (n > end && strcmp(name + n - end, kEnd) == 0)
        name[n - end] = '\0';
    return name;
}

void paper_put_name(pen *p, const char *path) {
    const char *name = paper_name(p->mem, path);
    p->failed |= !name;
    pen_put(p, name ? name : "");
}

void paper_put_speed(pen *p, double tokens_s, double lo, double hi) {
    if (isfinite(lo) && isfinite(hi))
        pen_printf(p, "%.0f (%.0f–%.0f)", tokens_s, lo, hi);
    else
        pen_fixed(p, tokens_s, 0);
}

void paper_put_ratio(pen *p, double ratio, double lo, double hi) {
    if (isfinite(lo) && isfinite(hi))
        pen_printf(p, "%.2f× (%.2f–%.2f)", ratio, lo, hi);
    else
        pen_times(p, ratio);
}

void paper_put_run(pen *p, const report_model *m, int file) {
    if (m->n_files > 1)
        paper_put_name(p, m->files[file]);
    else
        pen_put(p, "this run");
}
