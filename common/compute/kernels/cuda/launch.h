#ifndef COMMON_COMPUTE_KERNELS_CUDA_LAUNCH_H_
#define COMMON_COMPUTE_KERNELS_CUDA_LAUNCH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/kernels/cuda/device_code/device_elements.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/strided_index.h"
#include "common/core/device/device.h"
#include "common/core/device/driver/kernel_image.h"
#include "common/core/device/driver/launch_shape.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"

// Helpers of the host code of device kernels: finds functions, launches them,
// and makes a Kernel from launches.
namespace muster::internal {

using KernelOr = absl::StatusOr<std::unique_ptr<Kernel>>;

// Where kernels run.
struct KernelTarget {
  // Borrowed. Null: kernels run in the simulated grid on memory of this
  // process, and are done when Run() returns.
  Device* device = nullptr;
  uint64_t simulated_seed = 0;  // Without a device.
  // The smallest number of elements for which threads process several elements
  // each (ElementsPerThread()). At this number, one thread for every four
  // elements still yields a block for each of about 128 multiprocessors.
  int64_t grouped_count_min = 1 << 17;
};

// A kernel of an image, ready to be launched.
struct DeviceFunction {
  KernelFunction function;  // With a device.
  const SimulatedKernel* simulated = nullptr;
  uint64_t simulated_seed = 0;
  int64_t grouped_count_min = 0;
};

//   kNotFound  the image has no such kernel
//   others     as Device::FindKernel()
absl::StatusOr<DeviceFunction> FindFunction(const KernelTarget& target,
                                            const KernelImage& image,
                                            absl::string_view name);

// One run of a kernel.
struct DeviceRun {
  const KernelArguments& arguments;
  FaultRecord* fault;  // Host memory that the device can write.

  // Launches `function` with its only parameter, whose type kernel_parameters.h
  // declares. Does nothing if the grid is empty.
  template <typename Parameter>
  absl::Status Launch(const DeviceFunction& function, const LaunchShape& shape,
                      Parameter parameter) const {
    return LaunchAt(function, shape, &parameter);
  }

  DeviceElements input(size_t i) const;
  DeviceElements output(size_t i) const;

 private:
  absl::Status LaunchAt(const DeviceFunction& function,
                        const LaunchShape& shape,
                        const KernelArgument& parameter) const;
};

struct DeviceKernelOptions {
  // A bit for each input whose memory output 0 may share.
  uint32_t shared_inputs = 0;
  size_t scratch_bytes = 0;
  // True if the kernel needs DeviceRun::fault; otherwise it is null.
  bool has_data_errors = false;
  // The message of FaultCode::kConditionFalse.
  std::string condition_message = {};
};

// Makes a kernel from a function that launches device functions.
//   others  as PinnedMemory::Allocate(), for the fault record
KernelOr MakeDeviceKernel(const KernelTarget& target,
                          std::function<absl::Status(const DeviceRun& run)> run,
                          const DeviceKernelOptions& options = {});

// Returns a / b, rounded up.
inline int64_t CeilOfRatio(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Returns the shape of a launch with one thread for each of `count` elements.
LaunchShape ThreadForEach(int64_t count);

// Returns how many adjacent elements a thread of the function processes:
// `group`, or 1 if `count` is small or above 2^32, because kernels divide the
// positions of groups in 32 bits.
int32_t ElementsPerThread(const DeviceFunction& function, int64_t count,
                          int32_t group);

// Returns the layout with contiguous axes merged.
DeviceLayout DeviceLayoutOf(const StridedIndex& index);

ElementType ElementTypeOf(DType dtype);

// The type in which elements are computed: float, double, or int64_t for
// all integers and bool.
enum class ComputeType { kFloat, kDouble, kInt64 };
ComputeType ComputeTypeOf(DType dtype);

// True for floating types and integers, but not for bool.
inline bool IsNumber(DType dtype) {
  return IsFloating(dtype) || IsInteger(dtype);
}

absl::Status Unsupported(const KernelSpec& spec);

// Registers `make`, a KernelOr(const KernelSpec&, const KernelTarget&).
template <typename Make>
void RegisterDevice(KernelRegistry* registry, const KernelTarget& target,
                    absl::string_view op, Make make) {
  registry->Register(op,
                     [target, make](const KernelSpec& spec, int) -> KernelOr {
                       return make(spec, target);
                     });
}

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_LAUNCH_H_
