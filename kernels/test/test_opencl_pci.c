/* Tests how the PCI address of an OpenCL device is read. The test takes the place of the driver. */
#include <CUnit/CUnit.h>
#include <string.h>

#include "kernels/opencl/opencl.h"

/* The answers of a device. */
typedef struct {
    const char *extensions;
    const uint32_t *khronos; /* [4], or NULL: the query fails */
    uint32_t bus, slot, domain;
    bool has_domain;
    const unsigned char *topology; /* [24], or NULL */
} fake;

static int32_t answer(const void *value, size_t bytes, size_t size, void *out, size_t *length) {
    enum { kInvalidValue = -30 };
    if (!value || (out && size < bytes))
        return kInvalidValue;
    if (out)
        memcpy(out, value, bytes);
    if (length)
        *length = bytes;
    return 0;
}

static int32_t device_info(cl_object device, uint32_t what, size_t size, void *out,
                           size_t *length) {
    const fake *f = device;
    switch (what) {
    case CL_DEVICE_EXTENSIONS:
        return answer(f->extensions, f->extensions ? strlen(f->extensions) + 1 : 0, size, out,
                      length);
    case 0x410f:
        return answer(f->khronos, 4 * sizeof *f->khronos, size, out, length);
    case 0x4008:
        return answer(&f->bus, sizeof f->bus, size, out, length);
    case 0x4009:
        return answer(&f->slot, sizeof f->slot, size, out, length);
    case 0x400a:
        return answer(f->has_domain ? &f->domain : NULL, sizeof f->domain, size, out, length);
    case 0x4037:
        return answer(f->topology, 24, size, out, length);
    default:
        return answer(NULL, 0, size, out, length);
    }
}

static void expect(fake f, const char *want) {
    const opencl_api cl = {.GetDeviceInfo = device_info};
    char pci[OPENCL_PCI] = "before";
    opencl_pci(pci, &cl, &f);
    CU_ASSERT_STRING_EQUAL(pci, want);
}

static void test_addresses(void) {
    static const uint32_t khronos[4] = {0x10001, 0xb8, 0x1f, 7}, far[4] = {0, 0x100, 0, 0};
    static const unsigned char amd[24] = {[0] = 1, [21] = 0xc3, [22] = 2, [23] = 1};
    static const unsigned char other[24] = {[0] = 2, [21] = 0xc3};
    expect((fake){.extensions = "cl_khr_fp64 cl_khr_pci_bus_info", .khronos = khronos},
           "10001:b8:1f.7");
    expect((fake){.extensions = "cl_nv_device_attribute_query cl_khr_fp64",
                  .bus = 0x1b,
                  .slot = 0x0a,
                  .has_domain = true},
           "0000:1b:01.2");
    expect((fake){.extensions = "cl_nv_device_attribute_query", .bus = 0x1b}, "1b:00.0");
    expect((fake){.extensions = "cl_amd_device_attribute_query", .topology = amd}, "c3:02.1");
    expect(
        (fake){.extensions = "cl_khr_pci_bus_info cl_amd_device_attribute_query", .topology = amd},
        "c3:02.1"); /* the first query fails */
    expect((fake){.extensions = "cl_amd_device_attribute_query", .topology = other}, "");
    expect((fake){.extensions = "cl_khr_pci_bus_info", .khronos = far}, "");
}

/* Without the extension, the numbers of the queries may mean something else. */
static void test_no_extension(void) {
    static const uint32_t khronos[4] = {0, 1, 2, 3};
    static const unsigned char amd[24] = {[0] = 1, [21] = 0xc3};
    fake f = {.khronos = khronos, .topology = amd, .bus = 1, .has_domain = true};
    expect(f, "");
    f.extensions = "";
    expect(f, "");
    f.extensions = "cl_khr_pci_bus_info_2 xcl_khr_pci_bus_info";
    expect(f, "");
}

CU_TestInfo tests_opencl_pci[] = {
    {"addresses of three vendors", test_addresses},
    {"without the extension no PCI address is read", test_no_extension},
    CU_TEST_INFO_NULL};
