#include "shim.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

// The API in use: a table of function pointers, one a slot.
typedef void (*entry)(void);
static const entry *api;

// std::__throw_bad_alloc of the C++ runtime that the library uses.
static void (*throw_bad_alloc)(void);

// CALL(slot, result, parameter types)(arguments)
#define CALL(name, result, ...) ((result(*)(__VA_ARGS__))api[EYAS_SLOT_##name])
#define STATUS(name, ...) CALL(name, eyas_status, __VA_ARGS__)

// OrtApiBase: the only symbol that the library exports leads here.
typedef struct {
  const void *(*get_api)(uint32_t version);
  const char *(*get_version)(void);
} api_base;

static const api_base *base_of(void *handle) {
  const api_base *(*get)(void);
  *(void **)&get = dlsym(handle, "OrtGetApiBase");
  return get ? get() : NULL;
}

void *eyas_dlopen(const char *path, char **err) {
  void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (!handle) {
    const char *why = dlerror();
    *err = strdup(why ? why : "unknown error");
  }
  return handle;
}

const char *eyas_version(void *handle) {
  const api_base *base = base_of(handle);
  return base ? base->get_version() : NULL;
}

int eyas_attach(void *handle) {
  const api_base *base = base_of(handle);
  const entry *table = base ? base->get_api(EYAS_API_VERSION) : NULL;
  if (!table) return 0;
  api = table;
  *(void **)&throw_bad_alloc = dlsym(handle, "_ZSt17__throw_bad_allocv");
  return 1;
}

const char *eyas_message(eyas_status st) {
  return CALL(GetErrorMessage, const char *, const void *)(st);
}

void eyas_release_status(eyas_status st) { CALL(ReleaseStatus, void, void *)(st); }

eyas_status eyas_providers(char ***names, int *count) {
  return STATUS(GetAvailableProviders, char ***, int *)(names, count);
}

void eyas_release_providers(char **names, int count) {
  eyas_status st = STATUS(ReleaseAvailableProviders, char **, int)(names, count);
  if (st) eyas_release_status(st);
}

eyas_status eyas_fix_dimension(void *options, const char *name, int64_t size) {
  return STATUS(AddFreeDimensionOverrideByName, void *, const char *, int64_t)(options, name, size);
}

// environment returns the library's one environment: creating it again returns the
// same one with one more reference, which lives as long as the process.
static eyas_status environment(void **env) {
  static void *the;
  eyas_status st = NULL;
  if (!the) st = STATUS(CreateEnv, int, const char *, void **)(4, "eyas", &the);
  *env = the;
  return st;
}

eyas_status eyas_append_plugin(void *options, const char *name, int index,
                               const char **keys, const char **values,
                               size_t count, int *found) {
  void *env;
  eyas_status st;
  const void *const *devices;
  size_t n;
  *found = 0;
  if ((st = environment(&env))) return st;
  if ((st = STATUS(GetEpDevices, const void *, const void *const **, size_t *)(env, &devices, &n))) return st;
  for (size_t i = 0; i < n; i++) {
    const char *ep = CALL(EpDevice_EpName, const char *, const void *)(devices[i]);
    if (strcmp(ep, name) != 0 || index-- != 0) continue;
    *found = 1;
    return STATUS(SessionOptionsAppendExecutionProvider_V2, void *, void *, const void *const *, size_t,
                  const char *const *, const char *const *, size_t)(
        options, env, &devices[i], 1, keys, values, count);
  }
  return NULL;
}

// OrtAllocator. The library looks at members behind these only if version says that
// they are there.
typedef struct allocator {
  uint32_t version;
  void *(*alloc)(struct allocator *, size_t);
  void (*free)(struct allocator *, void *);
  const void *(*info)(const struct allocator *);
  void *(*reserve)(struct allocator *, size_t); // for session creation
  eyas_status (*get_stats)(const struct allocator *, void **);
  void *(*alloc_on_stream)(struct allocator *, size_t, void *);
} allocator;

static void *memory_info;

static void *must_alloc(allocator *self, size_t size) {
  (void)self;
  void *p = eyas_alloc(size);
  if (!p && size > 0) throw_bad_alloc();
  return p;
}

static void give_back(allocator *self, void *p) {
  (void)self;
  eyas_free(p);
}

static const void *info_of(const allocator *self) {
  (void)self;
  return memory_info;
}

eyas_status eyas_use_allocator(int *able) {
  static allocator ours = {EYAS_API_VERSION, must_alloc, give_back, info_of, must_alloc, NULL, NULL};
  void *env;
  eyas_status st = environment(&env);
  if (st) return st;
  if (!(*able = throw_bad_alloc != NULL)) return NULL;
  // 0, 0: a device allocator's memory, of the default type. One that says that it is an
  // arena is refused.
  if ((st = STATUS(CreateCpuMemoryInfo, int, int, void **)(0, 0, &memory_info))) return st;
  return STATUS(RegisterAllocator, void *, void *)(env, &ours);
}

// Of glibc; others do without.
__attribute__((weak)) int malloc_trim(size_t pad);

void eyas_trim(void) {
  if (malloc_trim) malloc_trim(0);
}

eyas_status eyas_count(void *session, int output, size_t *count) {
  if (output) return STATUS(SessionGetOutputCount, const void *, size_t *)(session, count);
  return STATUS(SessionGetInputCount, const void *, size_t *)(session, count);
}

static eyas_status describe_name(void *session, int output, size_t index, eyas_info *info) {
  void *allocator;
  char *name;
  eyas_status st = STATUS(GetAllocatorWithDefaultOptions, void **)(&allocator);
  if (st) return st;
  if (output)
    st = STATUS(SessionGetOutputName, const void *, size_t, void *, char **)(session, index, allocator, &name);
  else
    st = STATUS(SessionGetInputName, const void *, size_t, void *, char **)(session, index, allocator, &name);
  if (st) return st;
  info->name = strdup(name);
  return STATUS(AllocatorFree, void *, void *)(allocator, name);
}

// shape_of reads type and dimensions. A rank over EYAS_MAX_RANK is reported with
// no dimensions; the caller refuses it.
static eyas_status shape_of(const void *shape, int *type, size_t *rank, int64_t *dims) {
  eyas_status st = STATUS(GetTensorElementType, const void *, int *)(shape, type);
  if (!st) st = STATUS(GetDimensionsCount, const void *, size_t *)(shape, rank);
  if (!st && *rank <= EYAS_MAX_RANK) st = STATUS(GetDimensions, const void *, int64_t *, size_t)(shape, dims, *rank);
  return st;
}

eyas_status eyas_describe(void *session, int output, size_t index, eyas_info *info) {
  void *what;
  const void *shape = NULL;
  eyas_status st;
  memset(info, 0, sizeof *info);
  if ((st = describe_name(session, output, index, info))) return st;
  if (output)
    st = STATUS(SessionGetOutputTypeInfo, const void *, size_t, void **)(session, index, &what);
  else
    st = STATUS(SessionGetInputTypeInfo, const void *, size_t, void **)(session, index, &what);
  if (st) return st;
  st = STATUS(GetOnnxTypeFromTypeInfo, const void *, int *)(what, &info->kind);
  if (!st && info->kind == EYAS_KIND_TENSOR) {
    st = STATUS(CastTypeInfoToTensorInfo, const void *, const void **)(what, &shape);
    if (!st && shape) st = shape_of(shape, &info->type, &info->rank, info->dims);
  }
  CALL(ReleaseTypeInfo, void, void *)(what);
  return st;
}

eyas_status eyas_bind(void *session, size_t nin, size_t nout, int own_allocator, eyas_binding **out) {
  eyas_binding *b = calloc(1, sizeof *b);
  b->session = session;
  b->nin = nin;
  b->nout = nout;
  if (own_allocator) b->lane = eyas_lane_new();
  b->in_names = calloc(nin + 1, sizeof *b->in_names);
  b->in = calloc(nin + 1, sizeof *b->in);
  b->out_names = calloc(nout + 1, sizeof *b->out_names);
  b->out = calloc(nout + 1, sizeof *b->out);
  b->fixed = calloc(nout + 1, sizeof *b->fixed);
  b->views = calloc(nout + 1, sizeof *b->views);
  *out = b;
  return STATUS(CreateRunOptions, void **)(&b->options);
}

eyas_status eyas_bind_tensor(eyas_binding *b, int output, size_t index,
                             const char *name, void *data, size_t bytes,
                             const int64_t *dims, size_t rank, int type) {
  void *memory;
  // 0, 0: the device allocator's memory, of the default type.
  eyas_status st = STATUS(CreateCpuMemoryInfo, int, int, void **)(0, 0, &memory);
  if (st) return st;
  void **value = output ? &b->out[index] : &b->in[index];
  (output ? b->out_names : b->in_names)[index] = strdup(name);
  if (output) b->fixed[index] = 1;
  st = STATUS(CreateTensorWithDataAsOrtValue, const void *, void *, size_t, const int64_t *, size_t, int, void **)(
      memory, data, bytes, dims, rank, type, value);
  CALL(ReleaseMemoryInfo, void, void *)(memory);
  return st;
}

void eyas_bind_later(eyas_binding *b, size_t index, const char *name) { b->out_names[index] = strdup(name); }

static void release_value(void **value) {
  if (*value) CALL(ReleaseValue, void, void *)(*value);
  *value = NULL;
}

void eyas_release_outputs(eyas_binding *b) {
  for (size_t i = 0; i < b->nout; i++)
    if (!b->fixed[i]) release_value(&b->out[i]);
}

static eyas_status view_output(eyas_binding *b, size_t i) {
  void *shape;
  int type;
  eyas_view *v = &b->views[i];
  eyas_status st = STATUS(GetTensorTypeAndShape, const void *, void **)(b->out[i], &shape);
  if (st) return st;
  st = shape_of(shape, &type, &v->rank, v->dims);
  CALL(ReleaseTensorTypeAndShapeInfo, void, void *)(shape);
  if (!st) st = STATUS(GetTensorMutableData, void *, void **)(b->out[i], &v->data);
  return st;
}

eyas_status eyas_run(eyas_binding *b) {
  eyas_release_outputs(b);
  if (b->lane) eyas_lane_begin(b->lane);
  eyas_status st = STATUS(Run, void *, const void *, const char *const *, const void *const *, size_t,
                          const char *const *, size_t, void **)(
      b->session, b->options, b->in_names, (const void *const *)b->in, b->nin, b->out_names, b->nout, b->out);
  if (b->lane) eyas_lane_end(b->lane);
  for (size_t i = 0; !st && i < b->nout; i++)
    if (!b->fixed[i]) st = view_output(b, i);
  return st;
}

eyas_status eyas_terminate(eyas_binding *b) { return STATUS(RunOptionsSetTerminate, void *)(b->options); }

void eyas_unbind(eyas_binding *b) {
  for (size_t i = 0; i < b->nin; i++) {
    release_value(&b->in[i]);
    free((void *)b->in_names[i]);
  }
  for (size_t i = 0; i < b->nout; i++) {
    release_value(&b->out[i]);
    free((void *)b->out_names[i]);
  }
  if (b->options) CALL(ReleaseRunOptions, void, void *)(b->options);
  free(b->in_names);
  free(b->out_names);
  free(b->in);
  free(b->out);
  free(b->fixed);
  free(b->views);
  eyas_lane_free(b->lane);
  free(b);
}
