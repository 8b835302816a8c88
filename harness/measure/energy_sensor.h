/* energy_sensor.h - the files of sysfs that count energy or show power. */
#ifndef SNAPMLA_HARNESS_MEASURE_ENERGY_SENSOR_H
#define SNAPMLA_HARNESS_MEASURE_ENERGY_SENSOR_H

#include <stdbool.h>

enum { ENERGY_SENSORS = 64, ENERGY_PATH = 256, ENERGY_LABEL = 32 };

typedef struct {
    char path[ENERGY_PATH];   /* one decimal number: microjoules, or microwatts */
    char label[ENERGY_LABEL]; /* "package-0" */
    bool power;               /* the file shows power */
    double range;             /* a counter returns to 0 after this value; 0 = never, or unknown */
} energy_sensor;

typedef struct {
    energy_sensor at[ENERGY_SENSORS];
    int n;
    const char *kind; /* "RAPL", or the name of the driver as in its hwmon directory */
    char driver[ENERGY_LABEL];
    bool no_memory; /* out of memory: sensors may be absent from the list */
} energy_sensors;

/* Finds the sensors of the processors, or of the PCI device @pci ("0000:1b:00.0", or "1b:00.0" if
 * only one PCI domain has that address), below @sysfs. n is 0 if there are none, or too many to be
 * those of one machine. */
void energy_find_processors(energy_sensors *out, const char *sysfs);
void energy_find_pci(energy_sensors *out, const char *sysfs, const char *pci);

/* Reads the number in a file. Returns 0, or an errno; EINVAL if the file has no number. */
int energy_read_file(const char *path, double *out);

#endif
