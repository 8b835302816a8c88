/* pci.c - the PCI address of an OpenCL device, from the extensions that give it.
 *
 * Names and numbers: Khronos, cl_khr_pci_bus_info; NVIDIA, cl_nv_device_attribute_query; AMD,
 * cl_amd_device_attribute_query. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/opencl/opencl.h"

enum {
    kBusInfo = 0x410f, /* Khronos: four words */
    kBusNv = 0x4008,
    kSlotNv = 0x4009,
    kDomainNv = 0x400a,    /* NVIDIA: one word each */
    kTopologyAmd = 0x4037, /* AMD: 24 bytes */
    kTypePcie = 1,         /* first word of AMD's */
    kBusAmd = 21,          /* byte of the bus; device, function follow */
    kMostExtensions = 1 << 16,
};

typedef struct {
    uint32_t domain, bus, device, function;
    bool has_domain;
} pci_address;

/* Whether the list of words @list, separated by spaces, contains @word. */
static bool has_word(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

static bool word_of(const opencl_api *cl, cl_object device, uint32_t what, uint32_t *out) {
    size_t size = 0;
    return cl->GetDeviceInfo(device, what, sizeof *out, out, &size) == 0 && size == sizeof *out;
}

static bool from_khronos(const opencl_api *cl, cl_object device, pci_address *out) {
    uint32_t words[4];
    size_t size = 0;
    if (cl->GetDeviceInfo(device, kBusInfo, sizeof words, words, &size) != 0 ||
        size != sizeof words)
        return false;
    *out = (pci_address){words[0], words[1], words[2], words[3], true};
    return true;
}

/* The slot's number holds the device (upper bits) and the function (lower three bits), as in PCI's
 * configuration space. Older drivers give no domain. */
static bool from_nvidia(const opencl_api *cl, cl_object device, pci_address *out) {
    uint32_t bus, slot;
    if (!word_of(cl, device, kBusNv, &bus) || !word_of(cl, device, kSlotNv, &slot))
        return false;
    *out = (pci_address){0, bus, slot >> 3, slot & 7, false};
    out->has_domain = word_of(cl, device, kDomainNv, &out->domain);
    return true;
}

/* AMD's query has no domain. */
static bool from_amd(const opencl_api *cl, cl_object device, pci_address *out) {
    unsigned char bytes[24];
    uint32_t type;
    size_t size = 0;
    if (cl->GetDeviceInfo(device, kTopologyAmd, sizeof bytes, bytes, &size) != 0 ||
        size != sizeof bytes)
        return false;
    memcpy(&type, bytes, sizeof type);
    *out = (pci_address){0, bytes[kBusAmd], bytes[kBusAmd + 1], bytes[kBusAmd + 2], false};
    return type == kTypePcie;
}

static char *extensions_of(const opencl_api *cl, cl_object device) {
    size_t size = 0;
    if (cl->GetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 0, NULL, &size) != 0 || size == 0 ||
        size > kMostExtensions)
        return NULL;
    char *list = calloc(1, size + 1);
    if (list && cl->GetDeviceInfo(device, CL_DEVICE_EXTENSIONS, size, list, NULL) != 0) {
        free(list);
        return NULL;
    }
    return list;
}

void opencl_pci(char out[OPENCL_PCI], const opencl_api *cl, cl_object device) {
    static const struct {
        const char *extension;
        bool (*read)(const opencl_api *cl, cl_object device, pci_address *out);
    } kSources[] = {{"cl_khr_pci_bus_info", from_khronos},
                    {"cl_nv_device_attribute_query", from_nvidia},
                    {"cl_amd_device_attribute_query", from_amd}};
    pci_address a = {0};
    char *extensions = extensions_of(cl, device);
    bool found = false;
    for (size_t i = 0; extensions && !found && i < sizeof kSources / sizeof *kSources; i++)
        found = has_word(extensions, kSources[i].extension) && kSources[i].read(cl, device, &a) &&
                a.bus <= 0xff && a.device <= 0x1f && a.function <= 7;
    free(extensions);
    out[0] = '\0';
    if (found && a.has_domain)
        (void)snprintf(out, OPENCL_PCI, "%04x:", a.domain);
    if (found)
        (void)snprintf(out + strlen(out), OPENCL_PCI - strlen(out), "%02x:%02x.%x", a.bus, a.device,
                       a.function);
}
