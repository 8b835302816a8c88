/* api.h - the functions of OpenCL 1.2 that the backend calls, loaded at run time. So the program
 * can be built without OpenCL headers or libraries, and starts on machines without them.
 *
 * The names, types and numbers are those of cl.h in Khronos' OpenCL specification 1.2. */
#ifndef SNAPMLA_KERNELS_OPENCL_API_H
#define SNAPMLA_KERNELS_OPENCL_API_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef void *cl_object; /* platform, device, context, queue, buffer, program or kernel */

enum {
    CL_DEVICE_TYPE_CPU = 2,
    CL_DEVICE_TYPE_GPU = 4,
    CL_DEVICE_TYPE_ACCELERATOR = 8,
    CL_MEM_READ_WRITE = 1,
    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    CL_DEVICE_GLOBAL_MEM_CACHE_SIZE = 0x101e,
    CL_DEVICE_GLOBAL_MEM_SIZE = 0x101f,
    CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
    CL_DEVICE_ENDIAN_LITTLE = 0x1026,
    CL_DEVICE_COMPILER_AVAILABLE = 0x1028,
    CL_DEVICE_NAME = 0x102b,
    CL_DEVICE_EXTENSIONS = 0x1030,
    CL_PROGRAM_BUILD_LOG = 0x1183,
};
#define CL_DEVICE_TYPE_ALL UINT64_C(0xffffffff)

#define OPENCL_FUNCTIONS(F)                                                                        \
    F(GetPlatformIDs, int32_t, (uint32_t, cl_object *, uint32_t *))                                \
    F(GetDeviceIDs, int32_t, (cl_object, uint64_t, uint32_t, cl_object *, uint32_t *))             \
    F(GetDeviceInfo, int32_t, (cl_object, uint32_t, size_t, void *, size_t *))                     \
    F(CreateContext, cl_object,                                                                    \
      (const intptr_t *, uint32_t, const cl_object *, void *, void *, int32_t *))                  \
    F(ReleaseContext, int32_t, (cl_object))                                                        \
    F(CreateCommandQueue, cl_object, (cl_object, cl_object, uint64_t, int32_t *))                  \
    F(ReleaseCommandQueue, int32_t, (cl_object))                                                   \
    F(CreateBuffer, cl_object, (cl_object, uint64_t, size_t, void *, int32_t *))                   \
    F(ReleaseMemObject, int32_t, (cl_object))                                                      \
    F(EnqueueWriteBuffer, int32_t,                                                                 \
      (cl_object, cl_object, uint32_t, size_t, size_t, const void *, uint32_t, const void *,       \
       void *))                                                                                    \
    F(EnqueueReadBuffer, int32_t,                                                                  \
      (cl_object, cl_object, uint32_t, size_t, size_t, void *, uint32_t, const void *, void *))    \
    F(Finish, int32_t, (cl_object))                                                                \
    F(CreateProgramWithSource, cl_object,                                                          \
      (cl_object, uint32_t, const char **, const size_t *, int32_t *))                             \
    F(BuildProgram, int32_t,                                                                       \
      (cl_object, uint32_t, const cl_object *, const char *, void *, void *))                      \
    F(GetProgramBuildInfo, int32_t, (cl_object, cl_object, uint32_t, size_t, void *, size_t *))    \
    F(ReleaseProgram, int32_t, (cl_object))                                                        \
    F(CreateKernel, cl_object, (cl_object, const char *, int32_t *))                               \
    F(ReleaseKernel, int32_t, (cl_object))                                                         \
    F(SetKernelArg, int32_t, (cl_object, uint32_t, size_t, const void *))                          \
    F(EnqueueNDRangeKernel, int32_t,                                                               \
      (cl_object, cl_object, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t,   \
       const void *, void *))

typedef struct {
#define MEMBER(name, type, args) type(*name) args;
    OPENCL_FUNCTIONS(MEMBER)
#undef MEMBER
} opencl_api;

/* Loads the functions from libOpenCL.so.1. NULL with SNAP_E_UNSUPPORTED if there is no such library
 * or it lacks one of the functions. */
const opencl_api *opencl_load(snap_err *err);

#endif
