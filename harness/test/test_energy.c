/* Tests the energy meter, on folders that look like sysfs. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test/temp_folder.h"
#include "harness/measure/energy.h"

static const int64_t kSecond = 1000000000;
static const char kPackage[] = "class/powercap/intel-rapl:0";
static const char kOther[] = "class/powercap/intel-rapl:1";
static const char kMemory[] = "class/powercap/intel-rapl:0:0";
static const char kCores[] = "class/powercap/intel-rapl:0:1";

static char sysfs[TEMP_FOLDER];

static void put(const char *sub, const char *name, const char *text) {
    temp_folder_put(sysfs, sub, name, text, strlen(text));
}

static void put_zone(const char *zone, const char *name, const char *microjoules) {
    put(zone, "name", name);
    put(zone, "max_energy_range_uj", "262143328850\n");
    put(zone, "energy_uj", microjoules);
}

static energy_meter *open_meter(const char *pci) {
    mla_backend_info info = {.host_memory = pci[0] == '\0'};
    energy_meter *m = NULL;
    (void)snprintf(info.pci, sizeof info.pci, "%s", pci);
    CU_ASSERT_EQUAL_FATAL(energy_open(&m, sysfs, &info, NULL, NULL), SNAP_OK);
    return m;
}

static void begin(void) {
    temp_folder_open(sysfs, "energy");
}

static void end(energy_meter *m) {
    energy_close(m);
    temp_folder_remove(sysfs);
}

static void expect_missing(energy_meter *m, double joules, const char *why) {
    CU_ASSERT(isnan(joules));
    CU_ASSERT_PTR_NOT_NULL_FATAL(energy_missing(m));
    CU_ASSERT_PTR_NOT_NULL(strstr(energy_missing(m), why));
}

/* The counters of two packages and of one memory are added up. That of the part "core" is left out,
 * because its package contains it. */
static void test_rapl(void) {
    begin();
    put_zone(kPackage, "package-0\n", "1000000\n");
    put_zone(kMemory, "dram\n", "0\n");
    put_zone(kCores, "core\n", "0\n");
    put_zone(kOther, "package-1\n", "262143000000\n");
    put("class/powercap/intel-rapl", "enabled", "1\n");
    energy_meter *m = open_meter("");
    CU_ASSERT_STRING_EQUAL(energy_source(m), "RAPL package-0, dram, package-1");
    energy_start(m, 5 * kSecond);
    put(kPackage, "energy_uj", "31000000\n"); /* 30 J */
    put(kMemory, "energy_uj", "4000000\n");   /* 4 J */
    put(kCores, "energy_uj", "20000000\n");
    put(kOther, "energy_uj", "10671150\n"); /* wrapped around: 0.32885 J to the end, 10.67115 J */
    CU_ASSERT_DOUBLE_EQUAL(energy_read(m, 6 * kSecond), 45.0, 1e-6);
    put(kPackage, "energy_uj", "33000000\n");
    CU_ASSERT_DOUBLE_EQUAL(energy_read(m, 7 * kSecond), 47.0, 1e-6);
    CU_ASSERT_PTR_NULL(energy_missing(m));
    end(m);
}

/* Counters of some virtual machines never move. Their energy is missing, not 0 J. */
static void test_stuck(void) {
    begin();
    put_zone(kPackage, "package-0\n", "1000000\n");
    energy_meter *m = open_meter("");
    energy_start(m, 0);
    energy_keep(m, kSecond);
    expect_missing(m, energy_read(m, 2 * kSecond), "the counter did not move");
    energy_start(m, 2 * kSecond);
    energy_keep(m, 3 * kSecond); /* not yet a failure */
    put(kPackage, "energy_uj", "3000000\n");
    CU_ASSERT_DOUBLE_EQUAL(energy_read(m, 4 * kSecond), 2.0, 1e-9);
    end(m);
}

static void test_hwmon(void) {
    begin();
    put("class/hwmon/hwmon0", "name", "k10temp\n");
    put("class/hwmon/hwmon1", "name", "amd_energy\n");
    put("class/hwmon/hwmon1", "energy1_label", "Ecore000\n");
    put("class/hwmon/hwmon1", "energy1_input", "5\n");
    put("class/hwmon/hwmon1", "energy2_label", "Esocket0\n");
    put("class/hwmon/hwmon1", "energy2_input", "7000000\n");
    energy_meter *m = open_meter("");
    CU_ASSERT_STRING_EQUAL(energy_source(m), "amd_energy Esocket0");
    energy_start(m, 0);
    put("class/hwmon/hwmon1", "energy2_input", "9500000\n");
    CU_ASSERT_DOUBLE_EQUAL(energy_read(m, kSecond), 2.5, 1e-9);
    end(m);
}

/* amdgpu shows power: 100 W, then 200 W after two seconds, then 300 W after another one. */
static void test_power(void) {
    static const char kDir[] = "bus/pci/devices/0000:03:00.0/hwmon/hwmon4";
    begin();
    put(kDir, "name", "amdgpu\n");
    put(kDir, "power1_average", "100000000\n");
    energy_meter *m = open_meter("0000:03:00.0");
    CU_ASSERT_STRING_EQUAL(energy_source(m), "amdgpu power1_average");
    energy_start(m, 0);
    put(kDir, "power1_average", "900000000\n");
    energy_keep(m, kSecond / 10); /* too early for another reading */
    put(kDir, "power1_average", "200000000\n");
    energy_keep(m, 2 * kSecond);
    put(kDir, "power1_average", "300000000\n");
    CU_ASSERT_DOUBLE_EQUAL(energy_read(m, 3 * kSecond), 550.0, 1e-9);
    end(m);
}

/* If a device has an energy counter and a power sensor, the counter is read. The sensors of another
 * device do not count. */
static void test_counter_of_device(void) {
    begin();
    put("bus/pci/devices/0000:03:00.0/hwmon/hwmon2", "name", "xe\n");
    put("bus/pci/devices/0000:03:00.0/hwmon/hwmon2", "energy1_input", "1\n");
    put("bus/pci/devices/0000:03:00.0/hwmon/hwmon2", "power1_input", "1\n");
    energy_meter *m = open_meter("0000:03:00.0");
    CU_ASSERT_STRING_EQUAL(energy_source(m), "xe energy1_input");
    energy_close(m);
    m = open_meter("0000:04:00.0");
    CU_ASSERT_PTR_NULL(energy_source(m));
    energy_start(m, 0);
    expect_missing(m, energy_read(m, kSecond), "no energy or power sensor");
    end(m);
}

/* An OpenCL driver may give no PCI domain. The device is then the only one with its address. */
static void test_domain(void) {
    begin();
    put("bus/pci/devices/0001:03:00.0/hwmon/hwmon2", "name", "amdgpu\n");
    put("bus/pci/devices/0001:03:00.0/hwmon/hwmon2", "power1_average", "5000000\n");
    put("bus/pci/devices/0001:13:00.0/hwmon/hwmon3", "name", "nvme\n");
    energy_meter *m = open_meter("03:00.0");
    CU_ASSERT_STRING_EQUAL(energy_source(m), "amdgpu power1_average");
    energy_start(m, 0);
    CU_ASSERT_DOUBLE_EQUAL(energy_read(m, 2 * kSecond), 10.0, 1e-9);
    energy_close(m);
    put("bus/pci/devices/0000:03:00.0/hwmon/hwmon4", "name", "other\n");
    m = open_meter("03:00.0");
    CU_ASSERT_PTR_NULL(energy_source(m));
    energy_start(m, 0);
    expect_missing(m, energy_read(m, kSecond), "no energy or power sensor");
    end(m);
}

/* OpenCL on the processors: its memory has no host addresses, but RAPL counts what it uses. */
static void test_opencl_on_processors(void) {
    begin();
    put_zone(kPackage, "package-0\n", "1000000\n");
    mla_backend_info info = {.processors = true};
    energy_meter *m = NULL;
    CU_ASSERT_EQUAL_FATAL(energy_open(&m, sysfs, &info, NULL, NULL), SNAP_OK);
    CU_ASSERT_STRING_EQUAL(energy_source(m), "RAPL package-0");
    end(m);
}

static void test_none(void) {
    begin();
    energy_meter *m = open_meter("");
    energy_start(m, 0);
    expect_missing(m, energy_read(m, kSecond), "no energy counter of the processors");
    energy_close(m);
    mla_backend_info nowhere = {.host_memory = false};
    CU_ASSERT_EQUAL_FATAL(energy_open(&m, sysfs, &nowhere, NULL, NULL), SNAP_OK);
    energy_start(m, 0);
    expect_missing(m, energy_read(m, kSecond), "no PCI address");
    energy_close(m);
    m = open_meter("../../../etc");
    CU_ASSERT_PTR_NULL(energy_source(m));
    end(m);
}

/* A sensor that vanishes makes the sum of all missing, until the next start finds it again. */
static void test_vanished(void) {
    char path[128];
    begin();
    put_zone(kPackage, "package-0\n", "1000000\n");
    put_zone(kOther, "package-1\n", "1000000\n");
    energy_meter *m = open_meter("");
    energy_start(m, 0);
    (void)snprintf(path, sizeof path, "%s/%s/energy_uj", sysfs, kOther);
    CU_ASSERT_EQUAL(unlink(path), 0);
    expect_missing(m, energy_read(m, kSecond), "the sensor vanished");
    put(kOther, "energy_uj", "2000000\n");
    CU_ASSERT(isnan(energy_read(m, 2 * kSecond)));
    energy_start(m, 3 * kSecond);
    put(kOther, "energy_uj", "3000000\n");
    CU_ASSERT_DOUBLE_EQUAL(energy_read(m, 4 * kSecond), 1.0, 1e-9);
    put(kOther, "energy_uj", "soon\n");
    expect_missing(m, energy_read(m, 5 * kSecond), "not a number");
    end(m);
}

/* A power sensor that vanishes while the loop runs: the energy of the rest is not estimated. */
static void test_vanished_in_the_middle(void) {
    static const char kDir[] = "bus/pci/devices/0000:03:00.0/hwmon/hwmon4";
    char path[128];
    begin();
    put(kDir, "name", "amdgpu\n");
    put(kDir, "power1_average", "100000000\n");
    energy_meter *m = open_meter("0000:03:00.0");
    energy_start(m, 0);
    energy_keep(m, kSecond);
    (void)snprintf(path, sizeof path, "%s/%s/power1_average", sysfs, kDir);
    CU_ASSERT_EQUAL(unlink(path), 0);
    energy_keep(m, 2 * kSecond);
    put(kDir, "power1_average", "100000000\n"); /* back again: two seconds are unknown */
    energy_keep(m, 3 * kSecond);
    expect_missing(m, energy_read(m, 4 * kSecond), "the sensor vanished");
    end(m);
}

enum { kNobody = 65534, kDenied = 0, kOtherReason = 1, kMeasured = 2, kNoUser = 3 };

/* Measures without the rights of root; returns one of the numbers above. */
static int measure_as_user(void) {
    energy_meter *m = NULL;
    const mla_backend_info info = {.host_memory = true};
    if (geteuid() == 0 && (setgid(kNobody) != 0 || setuid(kNobody) != 0))
        return kNoUser;
    if (energy_open(&m, sysfs, &info, NULL, NULL) != SNAP_OK)
        return kOtherReason;
    energy_start(m, 0);
    int code = !isnan(energy_read(m, kSecond)) ? kMeasured : kOtherReason;
    if (code == kOtherReason && energy_missing(m) && strstr(energy_missing(m), "permission denied"))
        code = kDenied;
    energy_close(m);
    return code;
}

/* Root may read everything, so a child process gives up root's rights. */
static void test_permission(void) {
    char path[128];
    int status = 0;
    begin();
    put_zone(kPackage, "package-0\n", "1000000\n");
    CU_ASSERT_EQUAL(chmod(sysfs, 0755), 0);
    (void)snprintf(path, sizeof path, "%s/%s/energy_uj", sysfs, kPackage);
    CU_ASSERT_EQUAL(chmod(path, 0), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(measure_as_user());
    CU_ASSERT_FATAL(child > 0 && waitpid(child, &status, 0) == child);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == kDenied);
    CU_ASSERT_EQUAL(chmod(path, 0600), 0);
    temp_folder_remove(sysfs);
}

/* Without a range a smaller value is an error. With one it is a wrap, unless the energy would be
 * impossible: 262 kJ in a second. */
static void test_backwards(void) {
    begin();
    put(kPackage, "name", "package-0\n");
    put(kPackage, "energy_uj", "1000000\n");
    energy_meter *m = open_meter("");
    energy_start(m, 0);
    put(kPackage, "energy_uj", "999999\n");
    expect_missing(m, energy_read(m, kSecond), "the counter ran backwards");
    energy_close(m);
    put_zone(kPackage, "package-0\n", "1000000\n");
    m = open_meter("");
    energy_start(m, 0);
    put(kPackage, "energy_uj", "999999\n");
    expect_missing(m, energy_read(m, kSecond), "the counter was reset");
    energy_start(m, 10 * kSecond);
    expect_missing(m, energy_read(m, 9 * kSecond), "the clock ran backwards");
    end(m);
}

CU_TestInfo tests_energy[] = {
    {"RAPL: packages, memory and a counter that wraps", test_rapl},
    {"a counter that never moves", test_stuck},
    {"sockets of amd_energy", test_hwmon},
    {"a power sensor is integrated", test_power},
    {"the counter of a device", test_counter_of_device},
    {"a device without a PCI domain", test_domain},
    {"OpenCL on the processors", test_opencl_on_processors},
    {"no sensor", test_none},
    {"a sensor that vanishes", test_vanished},
    {"a sensor that vanishes in the middle", test_vanished_in_the_middle},
    {"a sensor that may not be read", test_permission},
    {"clocks and counters that run backwards", test_backwards},
    CU_TEST_INFO_NULL,
};
