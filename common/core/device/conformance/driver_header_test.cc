// Compares driver_api.h with the header of the CUDA toolkit. The comparison is
// done by the compiler: the test passes if it compiles.
#include <cuda.h>

#include <cstddef>
#include <type_traits>

#include "common/core/device/driver/driver_api.h"
#include "common/core/device/testing/same_shape.h"
#include "gtest/gtest.h"

namespace muster::driver {
namespace {

#define MUSTER_COMPARE(name, type)                      \
  static_assert(kHaveSameShape<type, decltype(::name)>, \
                "driver_api.h declares " #name " otherwise than cuda.h");
MUSTER_DRIVER_FUNCTIONS(MUSTER_COMPARE)
#if CUDA_VERSION >= 12030
MUSTER_DRIVER_GRAPH_FUNCTIONS(MUSTER_COMPARE)
#endif
#undef MUSTER_COMPARE

// The comparison detects a pointer where the driver takes a number.
static_assert(!kHaveSameShape<Result(void*), decltype(::cuInit)>);
static_assert(!kHaveSameShape<Result(unsigned, int), decltype(::cuInit)>);
static_assert(!kHaveSameShape<Result(int64_t*), decltype(::cuDeviceGetCount)>);

static_assert(kSuccess == CUDA_SUCCESS);
static_assert(kInvalidValue == CUDA_ERROR_INVALID_VALUE);
static_assert(kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(kNotInitialized == CUDA_ERROR_NOT_INITIALIZED);
static_assert(kDeviceUnavailable == CUDA_ERROR_DEVICE_UNAVAILABLE);
static_assert(kNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(kInvalidDevice == CUDA_ERROR_INVALID_DEVICE);
static_assert(kInvalidImage == CUDA_ERROR_INVALID_IMAGE);
static_assert(kInvalidContext == CUDA_ERROR_INVALID_CONTEXT);
static_assert(kNoBinaryForGpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(kEccUncorrectable == CUDA_ERROR_ECC_UNCORRECTABLE);
static_assert(kInvalidHandle == CUDA_ERROR_INVALID_HANDLE);
static_assert(kNotFound == CUDA_ERROR_NOT_FOUND);
static_assert(kNotReady == CUDA_ERROR_NOT_READY);
static_assert(kIllegalAddress == CUDA_ERROR_ILLEGAL_ADDRESS);
static_assert(kLaunchOutOfResources == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
static_assert(kLaunchTimeout == CUDA_ERROR_LAUNCH_TIMEOUT);
static_assert(kAssert == CUDA_ERROR_ASSERT);
static_assert(kHardwareStackError == CUDA_ERROR_HARDWARE_STACK_ERROR);
static_assert(kMisalignedAddress == CUDA_ERROR_MISALIGNED_ADDRESS);
static_assert(kLaunchFailed == CUDA_ERROR_LAUNCH_FAILED);
static_assert(kUnknown == CUDA_ERROR_UNKNOWN);
static_assert(kIllegalState == CUDA_ERROR_ILLEGAL_STATE);
static_assert(kNotSupported == CUDA_ERROR_NOT_SUPPORTED);
static_assert(kStreamCaptureUnsupported ==
              CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
static_assert(kStreamCaptureInvalidated ==
              CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
static_assert(kStreamCaptureMerge == CUDA_ERROR_STREAM_CAPTURE_MERGE);
static_assert(kStreamCaptureUnmatched == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
static_assert(kStreamCaptureUnjoined == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
static_assert(kStreamCaptureIsolation == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
static_assert(kCapturedEvent == CUDA_ERROR_CAPTURED_EVENT);
static_assert(kStreamCaptureWrongThread ==
              CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);

static_assert(static_cast<int>(CaptureMode::kThreadLocal) ==
              CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(static_cast<int>(CaptureMode::kRelaxed) ==
              CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(static_cast<int>(CaptureStatus::kActive) ==
              CU_STREAM_CAPTURE_STATUS_ACTIVE);
static_assert(static_cast<int>(CaptureStatus::kInvalidated) ==
              CU_STREAM_CAPTURE_STATUS_INVALIDATED);
static_assert(kMemoryTypeUnified == CU_MEMORYTYPE_UNIFIED);

static_assert(sizeof(KernelNodeParameters) == sizeof(CUDA_KERNEL_NODE_PARAMS));
static_assert(offsetof(KernelNodeParameters, block) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS, blockDimX));
static_assert(offsetof(KernelNodeParameters, shared_bytes) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS, sharedMemBytes));
static_assert(offsetof(KernelNodeParameters, arguments) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS, kernelParams));
static_assert(offsetof(KernelNodeParameters, kernel) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS, kern));
static_assert(offsetof(KernelNodeParameters, context) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS, ctx));
static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(LaunchAttribute, is_allowed) ==
              offsetof(CUlaunchAttribute, value));
static_assert(sizeof(LaunchConfiguration) == sizeof(CUlaunchConfig));
static_assert(offsetof(LaunchConfiguration, block) ==
              offsetof(CUlaunchConfig, blockDimX));
static_assert(offsetof(LaunchConfiguration, shared_bytes) ==
              offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(LaunchConfiguration, stream) ==
              offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(LaunchConfiguration, attributes) ==
              offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(LaunchConfiguration, attribute_count) ==
              offsetof(CUlaunchConfig, numAttrs));
static_assert(sizeof(CopyNodeParameters) == sizeof(CUDA_MEMCPY3D));
static_assert(offsetof(CopyNodeSide, memory_type) ==
              offsetof(CUDA_MEMCPY3D, srcMemoryType));
static_assert(offsetof(CopyNodeSide, host) == offsetof(CUDA_MEMCPY3D, srcHost));
static_assert(offsetof(CopyNodeSide, device) ==
              offsetof(CUDA_MEMCPY3D, srcDevice));
static_assert(offsetof(CopyNodeParameters, to.memory_type) ==
              offsetof(CUDA_MEMCPY3D, dstMemoryType));
static_assert(offsetof(CopyNodeParameters, to.device) ==
              offsetof(CUDA_MEMCPY3D, dstDevice));
static_assert(offsetof(CopyNodeParameters, width_bytes) ==
              offsetof(CUDA_MEMCPY3D, WidthInBytes));

static_assert(static_cast<int>(DeviceAttribute::kMultiprocessorCount) ==
              CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(static_cast<int>(DeviceAttribute::kL2CacheBytes) ==
              CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
static_assert(static_cast<int>(DeviceAttribute::kComputeCapabilityMajor) ==
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(static_cast<int>(DeviceAttribute::kComputeCapabilityMinor) ==
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);

static_assert(kGranularityMinimum == CU_MEM_ALLOC_GRANULARITY_MINIMUM);
static_assert(kHostAllocPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(kEventDisableTiming == CU_EVENT_DISABLE_TIMING);

static_assert(offsetof(AllocationProperties, location) ==
              offsetof(CUmemAllocationProp, location));
static_assert(offsetof(AllocationProperties, win32_handle_meta_data) ==
              offsetof(CUmemAllocationProp, win32HandleMetaData));
static_assert(offsetof(AllocationProperties, flags) ==
              offsetof(CUmemAllocationProp, allocFlags));
static_assert(offsetof(AccessDescription, flags) ==
              offsetof(CUmemAccessDesc, flags));

TEST(DriverHeaderTest, TheHeadersValuesAreTheDefaults) {
  EXPECT_EQ(MemoryLocation().type, CU_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(AllocationProperties().type, CU_MEM_ALLOCATION_TYPE_PINNED);
  EXPECT_EQ(AccessDescription().flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  EXPECT_EQ(LaunchAttribute().id,
            CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
}

}  // namespace
}  // namespace muster::driver
