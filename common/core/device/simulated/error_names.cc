#include "common/core/device/simulated/error_names.h"

namespace muster::simulated {

const char* ErrorName(driver::Result result) {
  switch (result) {
    case driver::kSuccess:
      return "CUDA_SUCCESS";
    case driver::kInvalidValue:
      return "CUDA_ERROR_INVALID_VALUE";
    case driver::kOutOfMemory:
      return "CUDA_ERROR_OUT_OF_MEMORY";
    case driver::kNotInitialized:
      return "CUDA_ERROR_NOT_INITIALIZED";
    case driver::kNoDevice:
      return "CUDA_ERROR_NO_DEVICE";
    case driver::kInvalidDevice:
      return "CUDA_ERROR_INVALID_DEVICE";
    case driver::kInvalidImage:
      return "CUDA_ERROR_INVALID_IMAGE";
    case driver::kInvalidContext:
      return "CUDA_ERROR_INVALID_CONTEXT";
    case driver::kNoBinaryForGpu:
      return "CUDA_ERROR_NO_BINARY_FOR_GPU";
    case driver::kEccUncorrectable:
      return "CUDA_ERROR_ECC_UNCORRECTABLE";
    case driver::kInvalidHandle:
      return "CUDA_ERROR_INVALID_HANDLE";
    case driver::kIllegalState:
      return "CUDA_ERROR_ILLEGAL_STATE";
    case driver::kNotFound:
      return "CUDA_ERROR_NOT_FOUND";
    case driver::kNotReady:
      return "CUDA_ERROR_NOT_READY";
    case driver::kIllegalAddress:
      return "CUDA_ERROR_ILLEGAL_ADDRESS";
    case driver::kHostMemoryAlreadyRegistered:
      return "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED";
    case driver::kHostMemoryNotRegistered:
      return "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED";
    case driver::kLaunchFailed:
      return "CUDA_ERROR_LAUNCH_FAILED";
    case driver::kNotSupported:
      return "CUDA_ERROR_NOT_SUPPORTED";
    case driver::kStreamCaptureUnsupported:
      return "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
    case driver::kStreamCaptureInvalidated:
      return "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED";
    case driver::kStreamCaptureMerge:
      return "CUDA_ERROR_STREAM_CAPTURE_MERGE";
    case driver::kStreamCaptureUnmatched:
      return "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED";
    case driver::kStreamCaptureUnjoined:
      return "CUDA_ERROR_STREAM_CAPTURE_UNJOINED";
    case driver::kStreamCaptureIsolation:
      return "CUDA_ERROR_STREAM_CAPTURE_ISOLATION";
    case driver::kCapturedEvent:
      return "CUDA_ERROR_CAPTURED_EVENT";
    case driver::kStreamCaptureWrongThread:
      return "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD";
    default:
      return "CUDA_ERROR_UNKNOWN";
  }
}

}  // namespace muster::simulated
