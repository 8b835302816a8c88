#include "kernels/opencl/api.h"

#include <dlfcn.h>
#include <string.h>

#include "base/fault.h"

/* Copies the pointer bytewise: POSIX allows dlsym() to return function pointers, but C has no cast
 * for it. */
static int find(void *library, const char *name, void *function, size_t size) {
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, size);
    return symbol != NULL;
}

const opencl_api *opencl_load(snap_err *err) {
    static opencl_api api;
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        (void)err_set(err, fault_of_dlopen(why), "OpenCL is not available: %s", why);
        return NULL;
    }
#define FIND(name, type, args)                                                                     \
    if (!find(library, "cl" #name, &api.name, sizeof api.name)) {                                  \
        (void)err_set(err, SNAP_E_UNSUPPORTED, "libOpenCL.so.1 has no cl" #name);                  \
        return NULL;                                                                               \
    }
    OPENCL_FUNCTIONS(FIND)
#undef FIND
    return &api;
}
