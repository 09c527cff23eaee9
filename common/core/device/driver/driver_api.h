#ifndef COMMON_CORE_DEVICE_DRIVER_DRIVER_API_H_
#define COMMON_CORE_DEVICE_DRIVER_DRIVER_API_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

// Declares the part of the CUDA driver that Muster calls, so that no CUDA
// header is needed to build, to test, or to run without a GPU. Names, types and
// meanings are the driver's; "_v2" is a part of some names.
//
// Source: CUDA Driver API Reference, 12.0 and later.
namespace muster::driver {

using Result = int;        // CUresult.
using Address = uint64_t;  // CUdeviceptr.

struct ContextHandle;
struct EventHandle;
struct GraphExecHandle;
struct GraphHandle;
struct GraphNodeHandle;
struct KernelHandle;
struct LibraryHandle;
struct StreamHandle;

// The results that Muster distinguishes. cuGetErrorName() has the names of all.
inline constexpr Result kSuccess = 0;
inline constexpr Result kInvalidValue = 1;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNotInitialized = 3;
inline constexpr Result kDeviceUnavailable = 46;
inline constexpr Result kNoDevice = 100;
inline constexpr Result kInvalidDevice = 101;
inline constexpr Result kInvalidImage = 200;
inline constexpr Result kInvalidContext = 201;
inline constexpr Result kNoBinaryForGpu = 209;
inline constexpr Result kEccUncorrectable = 214;
inline constexpr Result kInvalidHandle = 400;
inline constexpr Result kIllegalState = 401;
inline constexpr Result kNotFound = 500;
inline constexpr Result kNotReady = 600;
inline constexpr Result kIllegalAddress = 700;
inline constexpr Result kLaunchOutOfResources = 701;
inline constexpr Result kLaunchTimeout = 702;
inline constexpr Result kAssert = 710;
inline constexpr Result kHostMemoryAlreadyRegistered = 712;
inline constexpr Result kHostMemoryNotRegistered = 713;
inline constexpr Result kHardwareStackError = 714;
inline constexpr Result kMisalignedAddress = 716;
inline constexpr Result kLaunchFailed = 719;
inline constexpr Result kNotSupported = 801;
inline constexpr Result kStreamCaptureUnsupported = 900;
inline constexpr Result kStreamCaptureInvalidated = 901;
inline constexpr Result kStreamCaptureMerge = 902;
inline constexpr Result kStreamCaptureUnmatched = 903;
inline constexpr Result kStreamCaptureUnjoined = 904;
inline constexpr Result kStreamCaptureIsolation = 905;
inline constexpr Result kCapturedEvent = 907;
inline constexpr Result kStreamCaptureWrongThread = 908;
inline constexpr Result kUnknown = 999;

// CUdevice_attribute.
enum class DeviceAttribute : int {
  kMultiprocessorCount = 16,
  kL2CacheBytes = 38,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
};

struct Uuid {
  uint8_t bytes[16];
};

// CUmemLocation, CUmemAllocationProp and CUmemAccessDesc.
struct MemoryLocation {
  int type = 1;  // CU_MEM_LOCATION_TYPE_DEVICE.
  int id = 0;
};
struct AllocationProperties {
  int type = 1;  // CU_MEM_ALLOCATION_TYPE_PINNED.
  int requested_handle_types = 0;
  MemoryLocation location;
  void* win32_handle_meta_data = nullptr;
  uint8_t flags[8] = {};
};
struct AccessDescription {
  MemoryLocation location;
  int flags = 3;  // CU_MEM_ACCESS_FLAGS_PROT_READWRITE.
};

// CUstreamCaptureMode and CUstreamCaptureStatus.
enum class CaptureMode : int { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };
enum class CaptureStatus : int { kNone = 0, kActive = 1, kInvalidated = 2 };

// CUDA_KERNEL_NODE_PARAMS_v2.
struct KernelNodeParameters {
  void* function = nullptr;  // Null: use `kernel`.
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  void** arguments = nullptr;
  void** extra = nullptr;
  KernelHandle* kernel = nullptr;
  ContextHandle* context = nullptr;
};

// One side of a CUDA_MEMCPY3D_v2.
struct CopyNodeSide {
  size_t x_bytes = 0;
  size_t y = 0;
  size_t z = 0;
  size_t lod = 0;
  int memory_type = 0;  // CUmemorytype.
  void* host = nullptr;
  Address device = 0;
  void* array = nullptr;
  void* reserved = nullptr;
  size_t pitch_bytes = 0;
  size_t height = 0;
};
struct CopyNodeParameters {
  CopyNodeSide from;
  CopyNodeSide to;
  size_t width_bytes = 0;
  size_t height = 1;
  size_t depth = 1;
};

// CUlaunchAttribute of a kernel that may begin before the previous kernel in
// the stream is done.
struct LaunchAttribute {
  int id = 6;  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION.
  char padding[4] = {};
  int is_allowed = 1;  // The first bytes of a union.
  char rest_of_union[60] = {};
};
// CUlaunchConfig.
struct LaunchConfiguration {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  StreamHandle* stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

inline constexpr int kMemoryTypeUnified = 4;
inline constexpr int kGranularityMinimum = 0;
inline constexpr unsigned kHostAllocPortable = 1;
inline constexpr unsigned kHostRegisterPortable = 1;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;

// F(name, type) for each function.
#define MUSTER_DRIVER_FUNCTIONS(F)                                             \
  F(cuInit, Result(unsigned))                                                  \
  F(cuDriverGetVersion, Result(int*))                                          \
  F(cuGetErrorName, Result(Result, const char**))                              \
  F(cuGetErrorString, Result(Result, const char**))                            \
  F(cuDeviceGetCount, Result(int*))                                            \
  F(cuDeviceGet, Result(int*, int))                                            \
  F(cuDeviceGetName, Result(char*, int, int))                                  \
  F(cuDeviceGetUuid_v2, Result(Uuid*, int))                                    \
  F(cuDeviceGetAttribute, Result(int*, DeviceAttribute, int))                  \
  F(cuDeviceTotalMem_v2, Result(size_t*, int))                                 \
  F(cuDevicePrimaryCtxRetain, Result(ContextHandle**, int))                    \
  F(cuDevicePrimaryCtxRelease_v2, Result(int))                                 \
  F(cuCtxSetCurrent, Result(ContextHandle*))                                   \
  F(cuMemGetInfo_v2, Result(size_t*, size_t*))                                 \
  F(cuMemGetAllocationGranularity,                                             \
    Result(size_t*, const AllocationProperties*, int))                         \
  F(cuMemAddressReserve, Result(Address*, size_t, size_t, Address, uint64_t))  \
  F(cuMemAddressFree, Result(Address, size_t))                                 \
  F(cuMemCreate,                                                               \
    Result(uint64_t*, size_t, const AllocationProperties*, uint64_t))          \
  F(cuMemRelease, Result(uint64_t))                                            \
  F(cuMemMap, Result(Address, size_t, size_t, uint64_t, uint64_t))             \
  F(cuMemUnmap, Result(Address, size_t))                                       \
  F(cuMemSetAccess, Result(Address, size_t, const AccessDescription*, size_t)) \
  F(cuMemHostAlloc, Result(void**, size_t, unsigned))                          \
  F(cuMemFreeHost, Result(void*))                                              \
  F(cuMemHostRegister_v2, Result(void*, size_t, unsigned))                     \
  F(cuMemHostUnregister, Result(void*))                                        \
  F(cuMemcpyAsync, Result(Address, Address, size_t, StreamHandle*))            \
  F(cuMemcpyPeerAsync, Result(Address, ContextHandle*, Address,                \
                              ContextHandle*, size_t, StreamHandle*))          \
  F(cuMemsetD8Async, Result(Address, uint8_t, size_t, StreamHandle*))          \
  F(cuStreamCreateWithPriority, Result(StreamHandle**, unsigned, int))         \
  F(cuStreamDestroy_v2, Result(StreamHandle*))                                 \
  F(cuStreamSynchronize, Result(StreamHandle*))                                \
  F(cuStreamWaitEvent, Result(StreamHandle*, EventHandle*, unsigned))          \
  F(cuEventCreate, Result(EventHandle**, unsigned))                            \
  F(cuEventDestroy_v2, Result(EventHandle*))                                   \
  F(cuEventRecord, Result(EventHandle*, StreamHandle*))                        \
  F(cuEventQuery, Result(EventHandle*))                                        \
  F(cuEventElapsedTime, Result(float*, EventHandle*, EventHandle*))            \
  F(cuLibraryLoadData, Result(LibraryHandle**, const void*, int*, void**,      \
                              unsigned, int*, void**, unsigned))               \
  F(cuLibraryUnload, Result(LibraryHandle*))                                   \
  F(cuLibraryGetKernel, Result(KernelHandle**, LibraryHandle*, const char*))   \
  F(cuLaunchKernelEx,                                                          \
    Result(const LaunchConfiguration*, KernelHandle*, void**, void**))

// Functions of which drivers before CUDA 12.3 lack some.
#define MUSTER_DRIVER_GRAPH_FUNCTIONS(F)                                       \
  F(cuStreamBeginCapture_v2, Result(StreamHandle*, CaptureMode))               \
  F(cuStreamEndCapture, Result(StreamHandle*, GraphHandle**))                  \
  F(cuStreamGetCaptureInfo_v3,                                                 \
    Result(StreamHandle*, CaptureStatus*, uint64_t*, GraphHandle**,            \
           GraphNodeHandle* const**, const void**, size_t*))                   \
  F(cuGraphInstantiateWithFlags,                                               \
    Result(GraphExecHandle**, GraphHandle*, unsigned long long))               \
  F(cuGraphMemcpyNodeGetParams, Result(GraphNodeHandle*, CopyNodeParameters*)) \
  F(cuGraphExecMemcpyNodeSetParams,                                            \
    Result(GraphExecHandle*, GraphNodeHandle*, const CopyNodeParameters*,      \
           ContextHandle*))                                                    \
  F(cuGraphExecKernelNodeSetParams_v2,                                         \
    Result(GraphExecHandle*, GraphNodeHandle*, const KernelNodeParameters*))   \
  F(cuGraphLaunch, Result(GraphExecHandle*, StreamHandle*))                    \
  F(cuGraphExecDestroy, Result(GraphExecHandle*))                              \
  F(cuGraphDestroy, Result(GraphHandle*))

// A driver: the functions of libcuda.so.1 (RealDriver()), or of simulated GPUs
// (SimulatedMachine).
struct DriverApi {
#define MUSTER_DRIVER_MEMBER(name, type) \
  std::add_pointer_t<type> name = nullptr;
  MUSTER_DRIVER_FUNCTIONS(MUSTER_DRIVER_MEMBER)
  // Null if has_graphs is false.
  MUSTER_DRIVER_GRAPH_FUNCTIONS(MUSTER_DRIVER_MEMBER)
#undef MUSTER_DRIVER_MEMBER

  // True if kernels run on the host: cuLibraryLoadData() takes the address of a
  // KernelImage in place of the code for a GPU.
  bool is_simulated = false;
  bool has_graphs = false;
};

}  // namespace muster::driver

#endif  // COMMON_CORE_DEVICE_DRIVER_DRIVER_API_H_
