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

// Helpers of the host code of device kernels: finding functions,
// launching them, and making a Kernel of launches.
namespace muster::internal {

using KernelOr = absl::StatusOr<std::unique_ptr<Kernel>>;

// Where kernels run.
struct KernelTarget {
  // Borrowed. Null: in the simulated grid, on memory of this process, and done
  // when Run() returns.
  Device* device = nullptr;
  uint64_t simulated_seed = 0;  // Without a device.
  // From how many elements threads take several: ElementsPerThread(). From
  // here on, a thread for each four leaves a block of threads for each of about
  // 128 multiprocessors.
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
  FaultRecord* fault;  // Memory of the host that devices reach.

  // Launches `function` with its one parameter, of the type that
  // kernel_parameters.h declares. Does nothing if the grid is empty.
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
  // True if DeviceRun::fault is needed; it is null otherwise.
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

// The shape of a launch of one thread for each of `count` elements.
LaunchShape ThreadForEach(int64_t count);

// Returns how many of `count` elements a thread of the function takes: `group`
// neighbours, or 1 if there are few elements, or 2^32: kernels divide the
// positions of groups in 32 bits.
int32_t ElementsPerThread(const DeviceFunction& function, int64_t count,
                          int32_t group);

// Collapses axes that are contiguous.
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
