#include "harness/measure/energy_sensor.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* ---- files ---------------------------------------------------------------------------------- */

/* Reads the first line of a file, without its end. Returns 0 or an errno. */
static int read_line(const char *path, char *out, int size) {
    FILE *f = fopen(path, "re");
    if (!f)
        return errno;
    errno = 0;
    bool read = fgets(out, size, f) != NULL;
    int code = read ? 0 : errno ? errno : EINVAL;
    (void)fclose(f);
    if (read)
        out[strcspn(out, "\n")] = '\0';
    return code;
}

int energy_read_file(const char *path, double *out) {
    char line[64] = "", *end;
    int code = read_line(path, line, sizeof line);
    if (code)
        return code;
    errno = 0;
    unsigned long long value = strtoull(line, &end, 10);
    if (errno || end == line || *end || line[0] == '-')
        return EINVAL;
    *out = (double)value;
    return 0;
}

/* Writes @dir/@name to @out. Returns false if it is too long. */
static bool join(char out[ENERGY_PATH], const char *dir, const char *name) {
    int n = snprintf(out, ENERGY_PATH, "%s/%s", dir, name);
    return n > 0 && n < ENERGY_PATH;
}

static bool line_of(energy_sensors *s, const char *dir, const char *name, char *out, int size) {
    char path[ENERGY_PATH];
    int code = join(path, dir, name) ? read_line(path, out, size) : ENOENT;
    s->no_memory |= code == ENOMEM;
    return code == 0;
}

static bool has_file(energy_sensors *s, const char *dir, const char *name) {
    char path[ENERGY_PATH];
    errno = 0;
    FILE *f = join(path, dir, name) ? fopen(path, "re") : NULL;
    s->no_memory |= !f && errno == ENOMEM;
    bool has = f || errno == EACCES; /* a file that this user may not read is there, too */
    if (f)
        (void)fclose(f);
    return has;
}

/* Adds the file @dir/@name. Once there are too many, or the path is too long, n stays above
 * ENERGY_SENSORS. */
static energy_sensor *add(energy_sensors *s, const char *dir, const char *name, const char *label) {
    if (s->n >= ENERGY_SENSORS || !join(s->at[s->n].path, dir, name)) {
        s->n = ENERGY_SENSORS + 1;
        return NULL;
    }
    energy_sensor *new = &s->at[s->n++];
    (void)snprintf(new->label, sizeof new->label, "%s", label);
    return new;
}

/* Calls @fn for each entry of the folder @dir whose name begins with @prefix, in the order of their
 * names. */
static void each_entry(const char *dir, const char *prefix,
                       void (*fn)(energy_sensors *s, const char *path, const char *name),
                       energy_sensors *s) {
    struct dirent **entries = NULL;
    int n = scandir(dir, &entries, NULL, alphasort);
    s->no_memory |= n < 0 && errno == ENOMEM;
    for (int i = 0; i < n; i++) {
        char path[ENERGY_PATH];
        if (text_starts(entries[i]->d_name, prefix) && join(path, dir, entries[i]->d_name))
            fn(s, path, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}

/* ---- processors ----------------------------------------------------------------------------- */

/* A zone of powercap. "intel-rapl:0" is a package, "intel-rapl:0:1" a part of it. A package's
 * counter does not contain its memory, and contains its other parts. AMD's packages use the same
 * names. */
static void add_rapl(energy_sensors *s, const char *zone, const char *name) {
    char label[ENERGY_LABEL], range[ENERGY_PATH];
    const char *colon = strchr(name, ':');
    bool part = colon && strchr(colon + 1, ':');
    if (!line_of(s, zone, "name", label, sizeof label) ||
        !(part ? strcmp(label, "dram") == 0 : text_starts(label, "package")))
        return;
    energy_sensor *new = add(s, zone, "energy_uj", label);
    if (new &&
        (!join(range, zone, "max_energy_range_uj") || energy_read_file(range, &new->range) != 0))
        new->range = 0;
}

/* Label n of amd_energy is a core ("Ecore000") or a socket ("Esocket0"). */
static void add_sockets(energy_sensors *s, const char *dir, const char *name) {
    enum { kMostLabels = 1024 };
    char driver[ENERGY_LABEL], file[32], label[ENERGY_LABEL];
    (void)name;
    if (!line_of(s, dir, "name", driver, sizeof driver) || strcmp(driver, "amd_energy") != 0)
        return;
    for (int i = 1; i <= kMostLabels; i++) {
        (void)snprintf(file, sizeof file, "energy%d_label", i);
        if (!line_of(s, dir, file, label, sizeof label))
            break;
        (void)snprintf(file, sizeof file, "energy%d_input", i);
        if (text_starts(label, "Esocket"))
            (void)add(s, dir, file, label);
    }
}

static void none_if_too_many(energy_sensors *s) {
    if (s->n > ENERGY_SENSORS)
        s->n = 0;
}

void energy_find_processors(energy_sensors *out, const char *sysfs) {
    char dir[ENERGY_PATH];
    *out = (energy_sensors){.kind = "RAPL"};
    if (join(dir, sysfs, "class/powercap"))
        each_entry(dir, "intel-rapl:", add_rapl, out);
    if (out->n == 0 && join(dir, sysfs, "class/hwmon")) {
        out->kind = "amd_energy";
        each_entry(dir, "hwmon", add_sockets, out);
    }
    none_if_too_many(out);
}

/* ---- PCI devices ---------------------------------------------------------------------------- */

/* One sensor is enough: the first that shows the whole device. */
static void add_device(energy_sensors *s, const char *dir, const char *name) {
    static const char *const kFiles[] = {"energy1_input", "power1_average", "power1_input"};
    (void)name;
    for (size_t i = 0; i < sizeof kFiles / sizeof *kFiles && s->n == 0; i++)
        if (has_file(s, dir, kFiles[i])) {
            energy_sensor *new = add(s, dir, kFiles[i], kFiles[i]);
            if (new)
                new->power = text_starts(kFiles[i], "power");
            if (!line_of(s, dir, "name", s->driver, sizeof s->driver))
                (void)snprintf(s->driver, sizeof s->driver, "hwmon");
            s->kind = s->driver;
        }
}

/* Completes "1b:00.0" with the domain of the only device that has this address in its domain. Fails
 * if there is none, or several. */
static bool add_domain(energy_sensors *s, const char *devices, const char *pci,
                       char out[ENERGY_LABEL]) {
    struct dirent **entries = NULL;
    int n = scandir(devices, &entries, NULL, NULL), found = 0;
    s->no_memory |= n < 0 && errno == ENOMEM;
    for (int i = 0; i < n; i++) {
        const char *own = strchr(entries[i]->d_name, ':');
        if (own && strcmp(own + 1, pci) == 0 && ++found == 1)
            (void)snprintf(out, ENERGY_LABEL, "%.*s", ENERGY_LABEL - 1, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return found == 1;
}

void energy_find_pci(energy_sensors *out, const char *sysfs, const char *pci) {
    char devices[ENERGY_PATH], device[ENERGY_PATH], dir[ENERGY_PATH], whole[ENERGY_LABEL] = "";
    *out = (energy_sensors){0};
    if (strchr(pci, '/') || !join(devices, sysfs, "bus/pci/devices"))
        return;
    bool has_domain = strchr(pci, ':') != strrchr(pci, ':');
    if (!has_domain && !add_domain(out, devices, pci, whole))
        return;
    if (!join(device, devices, has_domain ? pci : whole) || !join(dir, device, "hwmon"))
        return;
    each_entry(dir, "hwmon", add_device, out);
    none_if_too_many(out);
}
