#include "harness/measure/gpu.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* NVML's interface according to the "NVML API Reference Guide". Every call returns 0 for
 * success. */
enum { kClockSm = 1, kClockMemory = 2, kText = 96 };
typedef struct nvml_device *nvml_device;
enum { kPowerCap = 0x4, kHwSlowdown = 0x8, kSwThermal = 0x20, kHwThermal = 0x40, kBrake = 0x80 };

typedef struct {
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_pci)(const char *pci, nvml_device *out);
    int (*clock)(nvml_device d, int kind, unsigned *mhz);
    int (*max_clock)(nvml_device d, int kind, unsigned *mhz);
    int (*power)(nvml_device d, unsigned *mw);
    int (*limit)(nvml_device d, unsigned *mw);
    int (*energy)(nvml_device d, unsigned long long *mj);
    int (*reasons)(nvml_device d, unsigned long long *bits);
    int (*name)(nvml_device d, char *out, unsigned size);
    int (*uuid)(nvml_device d, char *out, unsigned size);
    int (*driver)(char *out, unsigned size);
    int (*ecc)(nvml_device d, int *current, int *pending);
} nvml;

struct gpu {
    void *library;
    nvml f;
    nvml_device device;
};

/* Stores the address of a library function in a function pointer of any type. ISO C has no cast for
 * this. */
static bool find(void *library, const char *name, void *pointer) {
    void *symbol = dlsym(library, name);
    memcpy(pointer, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool load(nvml *f, void *lib) {
    return find(lib, "nvmlInit_v2", &f->init) && find(lib, "nvmlShutdown", &f->shutdown) &&
           find(lib, "nvmlDeviceGetHandleByPciBusId_v2", &f->by_pci) &&
           find(lib, "nvmlDeviceGetClockInfo", &f->clock) &&
           find(lib, "nvmlDeviceGetMaxClockInfo", &f->max_clock) &&
           find(lib, "nvmlDeviceGetPowerUsage", &f->power) &&
           find(lib, "nvmlDeviceGetPowerManagementLimit", &f->limit) &&
           find(lib, "nvmlDeviceGetTotalEnergyConsumption", &f->energy) &&
           find(lib, "nvmlDeviceGetCurrentClocksThrottleReasons", &f->reasons) &&
           find(lib, "nvmlDeviceGetName", &f->name) && find(lib, "nvmlDeviceGetUUID", &f->uuid) &&
           find(lib, "nvmlSystemGetDriverVersion", &f->driver) &&
           find(lib, "nvmlDeviceGetEccMode", &f->ecc);
}

gpu *gpu_open(const char *pci) {
    gpu *g = pci[0] ? calloc(1, sizeof *g) : NULL;
    if (!g)
        return NULL;
    g->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    bool ready = g->library && load(&g->f, g->library) && g->f.init() == 0;
    if (ready && g->f.by_pci(pci, &g->device) == 0)
        return g;
    if (ready)
        (void)g->f.shutdown();
    if (g->library)
        (void)dlclose(g->library);
    free(g);
    return NULL;
}

void gpu_close(gpu *g) {
    if (!g)
        return;
    (void)g->f.shutdown();
    (void)dlclose(g->library);
    free(g);
}

gpu_state gpu_now(const gpu *g) {
    gpu_state s = {.sm_mhz = (double)NAN, .power_w = (double)NAN, .energy_j = (double)NAN};
    unsigned mhz, mw;
    unsigned long long mj, bits;
    if (!g)
        return s;
    if (g->f.clock(g->device, kClockSm, &mhz) == 0)
        s.sm_mhz = mhz;
    if (g->f.power(g->device, &mw) == 0)
        s.power_w = mw / 1e3;
    if (g->f.energy(g->device, &mj) == 0)
        s.energy_j = (double)mj / 1e3;
    if (g->f.reasons(g->device, &bits) == 0)
        s.reasons = bits;
    return s;
}

bool gpu_is_slowed(uint64_t reasons) {
    return (reasons & (kHwSlowdown | kSwThermal | kHwThermal | kBrake)) != 0;
}

bool gpu_is_capped(uint64_t reasons) {
    return (reasons & kPowerCap) != 0;
}

/* ---- what a result stores ---- */

static js *hash_of(const char *text) {
    char hex[HASH_HEX];
    return js_new_str(hash_bytes(text, strlen(text), hex, NULL) == SNAP_OK ? hex : NULL);
}

static js *highest(const gpu *g, int kind) {
    unsigned mhz;
    return js_new_num(g->f.max_clock(g->device, kind, &mhz) == 0 ? (double)mhz : (double)NAN);
}

js *gpu_json(const gpu *g) {
    if (!g)
        return js_new_null();
    char name[kText] = "", uuid[kText] = "", driver[kText] = "";
    unsigned mw;
    int ecc, pending;
    js *o = js_new_object();
    bool named = g->f.name(g->device, name, kText) == 0;
    bool unique = g->f.uuid(g->device, uuid, kText) == 0;
    bool driven = g->f.driver(driver, kText) == 0;
    bool limited = g->f.limit(g->device, &mw) == 0;
    bool has_ecc = g->f.ecc(g->device, &ecc, &pending) == 0;
    bool ok = o && js_set_new(o, "name", js_new_str(named ? name : NULL)) &&
              js_set_new(o, "uuid_sha256", unique ? hash_of(uuid) : js_new_null()) &&
              js_set_new(o, "driver", js_new_str(driven ? driver : NULL)) &&
              js_set_new(o, "sm_mhz_max", highest(g, kClockSm)) &&
              js_set_new(o, "memory_mhz_max", highest(g, kClockMemory)) &&
              js_set_new(o, "sm_mhz_before", js_new_num(gpu_now(g).sm_mhz)) &&
              js_set_new(o, "power_limit_w", js_new_num(limited ? mw / 1e3 : (double)NAN)) &&
              js_set_new(o, "ecc", has_ecc ? js_new_bool(ecc != 0) : js_new_null());
    if (ok)
        return o;
    js_free(o);
    return NULL;
}
