/* cublaslt_entry.h - opens NVIDIA's cuBLASLt at run time and finds its functions.
 *
 * It is for cublaslt.cu and for tests. Include it only if __has_include(<cublasLt.h>). */
#ifndef SNAPMLA_GENERATOR_LOCAL_CUDA_CUBLASLT_ENTRY_H
#define SNAPMLA_GENERATOR_LOCAL_CUDA_CUBLASLT_ENTRY_H

#include <cublasLt.h>
#include <dlfcn.h>

namespace device {

/* The library's functions that are used. */
struct cublaslt_entry {
    decltype(cublasLtCreate) *create;
    decltype(cublasLtDestroy) *destroy;
    decltype(cublasLtGetVersion) *version;
    decltype(cublasLtMatmulDescCreate) *product_create;
    decltype(cublasLtMatmulDescDestroy) *product_destroy;
    decltype(cublasLtMatmulDescSetAttribute) *product_set;
    decltype(cublasLtMatrixLayoutCreate) *layout_create;
    decltype(cublasLtMatrixLayoutDestroy) *layout_destroy;
    decltype(cublasLtMatrixLayoutSetAttribute) *layout_set;
    decltype(cublasLtMatmulPreferenceCreate) *preference_create;
    decltype(cublasLtMatmulPreferenceDestroy) *preference_destroy;
    decltype(cublasLtMatmulPreferenceSetAttribute) *preference_set;
    decltype(cublasLtMatmulAlgoGetHeuristic) *propose;
    decltype(cublasLtMatmul) *multiply;

    /* False if the library lacks one of them. */
    bool load(void *library) {
        bool ok = true;
        find(library, "cublasLtCreate", &create, &ok);
        find(library, "cublasLtDestroy", &destroy, &ok);
        find(library, "cublasLtGetVersion", &version, &ok);
        find(library, "cublasLtMatmulDescCreate", &product_create, &ok);
        find(library, "cublasLtMatmulDescDestroy", &product_destroy, &ok);
        find(library, "cublasLtMatmulDescSetAttribute", &product_set, &ok);
        find(library, "cublasLtMatrixLayoutCreate", &layout_create, &ok);
        find(library, "cublasLtMatrixLayoutDestroy", &layout_destroy, &ok);
        find(library, "cublasLtMatrixLayoutSetAttribute", &layout_set, &ok);
        find(library, "cublasLtMatmulPreferenceCreate", &preference_create, &ok);
        find(library, "cublasLtMatmulPreferenceDestroy", &preference_destroy, &ok);
        find(library, "cublasLtMatmulPreferenceSetAttribute", &preference_set, &ok);
        find(library, "cublasLtMatmulAlgoGetHeuristic", &propose, &ok);
        find(library, "cublasLtMatmul", &multiply, &ok);
        return ok;
    }

  private:
    template <typename F>
    static void find(void *library, const char *name, F **out, bool *ok) {
        *out = reinterpret_cast<F *>(dlsym(library, name));
        *ok = *ok && *out;
    }
};

/* NULL if the library is missing. It must stay loaded, because unloading does not undo what it
 * started in the driver. */
inline void *open_cublaslt() {
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                        "/usr/local/cuda/lib64/libcublasLt.so"};
    for (const char *name : names)
        if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL))
            return library;
    return nullptr;
}

} // namespace device

#endif
