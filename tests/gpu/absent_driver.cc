// A fake CUDA driver for a machine without a GPU. It implements the functions
// that cuDNN calls while it compiles engines for an absent GPU: it accepts code
// and runs none.

namespace {

constexpr int kSuccess = 0;
constexpr int kNoDevice = 100;
constexpr int kNotSupported = 801;
constexpr int kDriverVersion = 13000;

// Stands for the handle of a code library and for that of a kernel.
char handle;

}  // namespace

extern "C" {

int cuInit(unsigned) { return kNoDevice; }
int cuDriverGetVersion(int* version) {
  *version = kDriverVersion;
  return kSuccess;
}
int cuDeviceGetCount(int* count) {
  *count = 0;
  return kNoDevice;
}

int cuLibraryLoadData(void** library) {
  *library = &handle;
  return kSuccess;
}
int cuLibraryGetKernel(void** kernel) {
  *kernel = &handle;
  return kSuccess;
}
int cuLibraryUnload(void*) { return kSuccess; }
int cuKernelSetAttribute() { return kSuccess; }

#define MUSTER_NOT_SUPPORTED(name) \
  int name() { return kNotSupported; }
MUSTER_NOT_SUPPORTED(cuCtxGetCurrent)
MUSTER_NOT_SUPPORTED(cuCtxGetLimit)
MUSTER_NOT_SUPPORTED(cuCtxPopCurrent)
MUSTER_NOT_SUPPORTED(cuCtxPushCurrent)
MUSTER_NOT_SUPPORTED(cuDeviceGet)
MUSTER_NOT_SUPPORTED(cuGetErrorName)
MUSTER_NOT_SUPPORTED(cuGetErrorString)
MUSTER_NOT_SUPPORTED(cuKernelGetAttribute)
MUSTER_NOT_SUPPORTED(cuLaunchCooperativeKernel)
MUSTER_NOT_SUPPORTED(cuLaunchKernel)
MUSTER_NOT_SUPPORTED(cuLaunchKernelEx)
MUSTER_NOT_SUPPORTED(cuLibraryLoadFromFile)
MUSTER_NOT_SUPPORTED(cuLinkAddData)
MUSTER_NOT_SUPPORTED(cuLinkComplete)
MUSTER_NOT_SUPPORTED(cuLinkCreate)
MUSTER_NOT_SUPPORTED(cuLinkDestroy)
MUSTER_NOT_SUPPORTED(cuOccupancyMaxPotentialClusterSize)
MUSTER_NOT_SUPPORTED(cuStreamGetCtx)
#undef MUSTER_NOT_SUPPORTED

}  // extern "C"
