// The few entries of ONNX Runtime's C API that the Go binding does not reach:
// the list of execution providers, runs that can be ended from outside, outputs
// that the library allocates, fixed dimensions, plugin providers, and an allocator of
// our own.
//
// OrtApi is a struct of function pointers whose order is fixed for ever, so a slot
// number and a prototype are all that a call needs; no header has to be installed.
// slots_test.go checks every number against the header in the binding's module.
#ifndef EYAS_ORT_SHIM_H
#define EYAS_ORT_SHIM_H

#include <stddef.h>
#include <stdint.h>

#include "alloc.h"

enum {
  EYAS_API_VERSION = 24, // the version that the binding speaks
  EYAS_MAX_RANK = 8,

  // What a value is; ONNXType of the C API.
  EYAS_KIND_TENSOR = 1,

  // Slots of OrtApi.
  EYAS_SLOT_GetErrorMessage = 2,
  EYAS_SLOT_CreateEnv = 3,
  EYAS_SLOT_Run = 9,
  EYAS_SLOT_SessionGetInputCount = 30,
  EYAS_SLOT_SessionGetOutputCount = 31,
  EYAS_SLOT_SessionGetInputTypeInfo = 33,
  EYAS_SLOT_SessionGetOutputTypeInfo = 34,
  EYAS_SLOT_SessionGetInputName = 36,
  EYAS_SLOT_SessionGetOutputName = 37,
  EYAS_SLOT_CreateRunOptions = 39,
  EYAS_SLOT_RunOptionsSetTerminate = 46,
  EYAS_SLOT_CreateTensorWithDataAsOrtValue = 49,
  EYAS_SLOT_GetTensorMutableData = 51,
  EYAS_SLOT_CastTypeInfoToTensorInfo = 55,
  EYAS_SLOT_GetOnnxTypeFromTypeInfo = 56,
  EYAS_SLOT_GetTensorElementType = 60,
  EYAS_SLOT_GetDimensionsCount = 61,
  EYAS_SLOT_GetDimensions = 62,
  EYAS_SLOT_GetTensorTypeAndShape = 65,
  EYAS_SLOT_CreateCpuMemoryInfo = 69,
  EYAS_SLOT_AllocatorFree = 76,
  EYAS_SLOT_GetAllocatorWithDefaultOptions = 78,
  EYAS_SLOT_ReleaseStatus = 93,
  EYAS_SLOT_ReleaseMemoryInfo = 94,
  EYAS_SLOT_ReleaseValue = 96,
  EYAS_SLOT_ReleaseRunOptions = 97,
  EYAS_SLOT_ReleaseTypeInfo = 98,
  EYAS_SLOT_ReleaseTensorTypeAndShapeInfo = 99,
  EYAS_SLOT_AddFreeDimensionOverrideByName = 124,
  EYAS_SLOT_GetAvailableProviders = 125,
  EYAS_SLOT_ReleaseAvailableProviders = 126,
  EYAS_SLOT_RegisterAllocator = 176,
  EYAS_SLOT_GetEpDevices = 303,
  EYAS_SLOT_SessionOptionsAppendExecutionProvider_V2 = 304,
  EYAS_SLOT_EpDevice_EpName = 312,
};

// eyas_status is an OrtStatus: NULL is success, anything else is released by
// eyas_release_status.
typedef void *eyas_status;

// eyas_dlopen opens a library. On failure it returns NULL and a message in *err
// that the caller frees (dlerror belongs to a thread, and a Go call may move).
void *eyas_dlopen(const char *path, char **err);

// eyas_version returns the library's version, NULL if it is not ONNX Runtime.
const char *eyas_version(void *handle);

// eyas_attach makes handle's API the one that all calls below use. It returns 0
// if the library does not speak EYAS_API_VERSION.
int eyas_attach(void *handle);

const char *eyas_message(eyas_status st);
void eyas_release_status(eyas_status st);

// The names of the built-in providers; released with eyas_release_providers.
eyas_status eyas_providers(char ***names, int *count);
void eyas_release_providers(char **names, int count);

// eyas_fix_dimension makes every open dimension of the inputs that has this name size
// large, for sessions of these options.
eyas_status eyas_fix_dimension(void *options, const char *name, int64_t size);

// eyas_append_plugin adds the index-th device of the plugin provider called name to
// the session options. *found says whether there is such a device.
eyas_status eyas_append_plugin(void *options, const char *name, int index,
                               const char **keys, const char **values,
                               size_t count, int *found);

// eyas_use_allocator registers the allocator of alloc.h for the CPU's memory; it is
// called once. Only sessions with session.use_env_allocators=1 use it. Where
// memory cannot be had the allocator throws std::bad_alloc, as the library's own
// does: kernels do not look at what they get. *able is 0 if the library brings no C++
// runtime to throw it; nothing is registered then.
eyas_status eyas_use_allocator(int *able);

// eyas_trim gives free pages of the heap back to the system, where it can.
void eyas_trim(void);

// eyas_info describes one input or output. name is freed with free().
typedef struct {
  char *name;
  int kind, type;
  size_t rank;
  int64_t dims[EYAS_MAX_RANK];
} eyas_info;

eyas_status eyas_count(void *session, int output, size_t *count);
eyas_status eyas_describe(void *session, int output, size_t index, eyas_info *info);

// eyas_view is what the library put into an output that it allocated itself.
typedef struct {
  void *data;
  size_t rank;
  int64_t dims[EYAS_MAX_RANK];
} eyas_view;

// eyas_binding is everything a run needs, in C memory, so that a run is one call
// with one pointer. An output whose fixed[i] is 0 is allocated by the library in
// each run and released before the next one. lane is NULL where the session does not
// use our allocator.
typedef struct {
  void *session, *options;
  size_t nin, nout;
  const char **in_names, **out_names;
  void **in, **out;
  char *fixed;
  eyas_view *views;
  eyas_lane *lane;
} eyas_binding;

eyas_status eyas_bind(void *session, size_t nin, size_t nout, int own_allocator, eyas_binding **b);
eyas_status eyas_bind_tensor(eyas_binding *b, int output, size_t index,
                             const char *name, void *data, size_t bytes,
                             const int64_t *dims, size_t rank, int type);
void eyas_bind_later(eyas_binding *b, size_t index, const char *name);
eyas_status eyas_run(eyas_binding *b);
void eyas_release_outputs(eyas_binding *b); // those that the library allocated
eyas_status eyas_terminate(eyas_binding *b);
void eyas_unbind(eyas_binding *b);

#endif
