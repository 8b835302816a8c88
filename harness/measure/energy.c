#include "harness/measure/energy.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "harness/measure/energy_sensor.h"

enum { kText = 400, kKeepNs = 250000000 };

/* More than any processor package or accelerator card uses. A counter that was reset looks like one
 * that wrapped around, and then gives a larger value. */
static const double kMostWatts = 20e3;

struct energy_meter {
    const gpu *device; /* NULL = the sensors of sysfs */
    energy_sensors sensors;
    char source[kText], missing[kText];
    bool failed;      /* since energy_start() */
    uint64_t reasons; /* since energy_take_reasons() */
    int64_t at_ns;
    double joules;
    double
        last[ENERGY_SENSORS]; /* at at_ns: microjoules or microwatts of each sensor; NVML: joules in
                                    last[0] */
};

static void fail(energy_meter *m, const char *path, const char *why) {
    m->failed = true;
    (void)snprintf(m->missing, sizeof m->missing, "%s%s%s", path, path[0] ? ": " : "", why);
}

/* ---- opening -------------------------------------------------------------------------------- */

static void describe(energy_meter *m) {
    size_t at = (size_t)snprintf(m->source, sizeof m->source, "%s", m->sensors.kind);
    for (int i = 0; i < m->sensors.n && at < sizeof m->source; i++)
        at += (size_t)snprintf(m->source + at, sizeof m->source - at, "%s%s", i ? ", " : " ",
                               m->sensors.at[i].label);
}

snap_status energy_open(energy_meter **out, const char *sysfs, const mla_backend_info *backend,
                        const gpu *device, snap_err *err) {
    energy_meter *m = calloc(1, sizeof *m);
    if (!m)
        return err_set(err, SNAP_E_NOMEM, "out of memory for an energy meter");
    m->device = device;
    const char *none = "the backend gives no PCI address, and does not run on the processors";
    if (device) {
        (void)snprintf(m->source, sizeof m->source, "NVML");
    } else if (backend->pci[0]) {
        energy_find_pci(&m->sensors, sysfs, backend->pci);
        none = "sysfs has no energy or power sensor of this device";
    } else if (mla_on_processors(backend)) {
        energy_find_processors(&m->sensors, sysfs);
        none = "sysfs has no energy counter of the processors (RAPL or amd_energy)";
    }
    if (m->sensors.no_memory) {
        free(m);
        return err_set(err, SNAP_E_NOMEM, "out of memory for the energy sensors");
    }
    if (m->sensors.n)
        describe(m);
    else if (!device)
        (void)snprintf(m->missing, sizeof m->missing, "%s", none);
    *out = m;
    return SNAP_OK;
}

void energy_close(energy_meter *m) {
    free(m);
}

const char *energy_source(const energy_meter *m) {
    return m->source[0] ? m->source : NULL;
}

const char *energy_missing(const energy_meter *m) {
    return m->missing[0] ? m->missing : NULL;
}

uint64_t energy_take_reasons(energy_meter *m) {
    uint64_t reasons = m->reasons;
    m->reasons = 0;
    return reasons;
}

/* ---- reading the sensors -------------------------------------------------------------------- */

static void read_sensor(energy_meter *m, int i, double *now) {
    int code = energy_read_file(m->sensors.at[i].path, now);
    if (code == EINVAL)
        fail(m, m->sensors.at[i].path, "this is not a number");
    else if (code == ENOENT || code == ENODEV)
        fail(m, m->sensors.at[i].path, "the sensor vanished");
    else if (code == EACCES || code == EPERM)
        fail(m, m->sensors.at[i].path,
             "permission denied; the administrator can allow it (chmod a+r)");
    else if (code)
        fail(m, m->sensors.at[i].path, strerror(code));
}

/* Adds the energy of sensor @i in @seconds. */
static void add_sensor(energy_meter *m, int i, double now, double seconds) {
    const energy_sensor *s = &m->sensors.at[i];
    double used = now - m->last[i];
    if (s->power)
        used = (now + m->last[i]) / 2 * seconds;
    else if (used < 0 && m->last[i] <= s->range)
        used += s->range;
    m->last[i] = now;
    m->joules += used / 1e6;
    if (used < 0)
        fail(m, s->path, "the counter ran backwards");
    else if (used / 1e6 > kMostWatts * seconds)
        fail(m, s->path, "the counter was reset, or shows an impossible power");
}

static void read_nvml(energy_meter *m, bool start) {
    const gpu_state state = gpu_now(m->device);
    double now = state.energy_j;
    m->reasons |= state.reasons;
    if (isnan(now))
        fail(m, "", "NVML gives no energy of this device");
    else if (!start && now < m->last[0])
        fail(m, "", "NVML's energy counter ran backwards");
    else if (!start)
        m->joules += now - m->last[0];
    m->last[0] = now;
}

void energy_start(energy_meter *m, int64_t now_ns) {
    m->failed = !m->device && m->sensors.n == 0;
    m->joules = 0;
    m->at_ns = now_ns;
    if (m->device)
        read_nvml(m, true);
    for (int i = 0; i < m->sensors.n && !m->failed; i++)
        read_sensor(m, i, &m->last[i]);
}

/* Adds the energy used since the last reading. */
static void add_energy(energy_meter *m, int64_t now_ns) {
    double seconds = (double)(now_ns - m->at_ns) / 1e9;
    if (!m->failed && seconds < 0)
        fail(m, "", "the clock ran backwards");
    if (m->device && !m->failed)
        read_nvml(m, false);
    for (int i = 0; i < m->sensors.n && !m->failed; i++) {
        double now = 0;
        read_sensor(m, i, &now);
        if (!m->failed)
            add_sensor(m, i, now, seconds);
    }
    m->at_ns = now_ns;
}

/* Some virtual machines have counters that never move. So 0 J is not a measurement: the energy is
 * missing. */
double energy_read(energy_meter *m, int64_t now_ns) {
    add_energy(m, now_ns);
    if (!m->failed && !(m->joules > 0))
        fail(m, "", "the counter did not move");
    return m->failed ? (double)NAN : m->joules;
}

void energy_keep(energy_meter *m, int64_t now_ns) {
    if (!m->device && (now_ns - m->at_ns >= kKeepNs || now_ns < m->at_ns))
        add_energy(m, now_ns);
}
