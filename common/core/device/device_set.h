#ifndef COMMON_CORE_DEVICE_DEVICE_SET_H_
#define COMMON_CORE_DEVICE_DEVICE_SET_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/core/device/device.h"
#include "common/core/device/device_memory.h"
#include "common/core/device/driver/driver_api.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/system/metrics.h"

namespace muster {

struct LogicalDeviceOptions {
  // 0: all memory of the physical device, which then has no other logical one.
  size_t memory_limit_bytes = 0;
};

// The GPUs of a process: which physical ones it uses, into which logical ones
// they are divided, and how their memory grows. The first FindDevice() fixes
// these settings.
//
// By default all physical devices are visible, each is one logical device, and
// memory grows as it is needed. (TensorFlow takes all memory at once;
// SetMemoryGrowth(index, false) does so here.)
//
// Thread-safe. Equivalent to: tf.config.
class DeviceSet {
 public:
  // Returns the driver, or the reason why there is none.
  using FindDriver = std::function<absl::StatusOr<const driver::DriverApi*>()>;

  // Returns the devices of this process: the machine's GPUs, unless
  // UseSimulatedDevices() is called first. Lives as long as the process.
  static DeviceSet& OfProcess();

  // `find_driver` is called when a driver is needed for the first time.
  explicit DeviceSet(FindDriver find_driver)
      : find_driver_(std::move(find_driver)) {}
  ~DeviceSet();
  DeviceSet(const DeviceSet&) = delete;
  DeviceSet& operator=(const DeviceSet&) = delete;

  // Uses `count` simulated GPUs in place of those of the machine.
  //   kInvalidArgument     count is less than 1
  //   kFailedPrecondition  the driver is in use
  absl::Status UseSimulatedDevices(int count);

  // Makes the `occurrence`-th call of a function of the driver
  // ("cuLaunchKernelEx"), and all later ones, fail with an uncorrectable memory
  // error, which loses the GPU. For tests.
  //   kFailedPrecondition  no GPUs are simulated
  absl::Status FailSimulatedDevices(absl::string_view function,
                                    int64_t occurrence);

  // Returns the GPUs that the driver has, visible or not.
  //   kUnavailable  there is none; says why
  absl::StatusOr<std::vector<DeviceDescription>> ListPhysicalDevices();

  // The setters name physical devices by their index in ListPhysicalDevices().
  // Errors of each:
  //   kInvalidArgument     no such physical device
  //   kFailedPrecondition  a device is in use already
  //   kUnavailable         as ListPhysicalDevices()

  // Sets the devices of which logical devices are made, in this order.
  //   kInvalidArgument  also: a device is named twice
  absl::Status SetVisibleDevices(absl::Span<const int> physical_indices);
  absl::Status SetMemoryGrowth(int physical_index, bool grows);
  // Divides a physical device.
  //   kInvalidArgument  also: no devices, one of several has no limit, or the
  //                     sum of the limits exceeds the memory of the device
  absl::Status SetLogicalDevices(
      int physical_index, absl::Span<const LogicalDeviceOptions> devices);

  // True if products and convolutions of float32 may round their operands to
  // TF32, which has 10 bits of mantissa, to be computed by tensor cores. False
  // by default; TensorFlow's default is true.
  //   kFailedPrecondition  a device is in use already
  //
  // Equivalent to: tf.config.experimental.enable_tensor_float_32_execution().
  absl::Status EnableTensorFloat32(bool enabled);

  // Sets whether steps that repeat their work are captured as CUDA graphs, if
  // that is possible: StepGraphs. True by default. May be called while devices
  // are in use, and applies to steps that are prepared from then on.
  void CaptureSteps(bool enabled);

  // Returns the number of logical devices.
  //   kUnavailable  as ListPhysicalDevices()
  absl::StatusOr<int> CountLogicalDevices();

  // Returns "gpu:<index>", which lives as long as the set.
  //   kInvalidArgument  no such logical device; says how many there are
  //   kUnavailable      as ListPhysicalDevices()
  //   others            as Device::Create()
  absl::StatusOr<Device*> FindDevice(int index);

  // Errors are those of FindDevice().
  absl::StatusOr<MemoryReport> GetMemoryInfo(int index);
  absl::Status ResetPeakMemory(int index);

 private:
  struct Physical {
    DeviceDescription description;
    bool grows = true;
    std::vector<LogicalDeviceOptions> logical = {{}};
  };
  struct Logical {
    int physical_index = 0;
    LogicalDeviceOptions options;
    std::unique_ptr<Device> device;         // Null before its first use.
    std::unique_ptr<MetricSource> metrics;  // Metrics of the device.
  };

  // Finds the driver and its devices, on the first call.
  absl::Status Discover() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Physical*> FindPhysical(int index)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckNotInUse() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  std::vector<Logical> MakeLogical() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const FindDriver find_driver_;
  absl::Mutex mutex_;
  std::unique_ptr<SimulatedMachine> machine_ ABSL_GUARDED_BY(mutex_);
  bool is_discovered_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status discovery_ ABSL_GUARDED_BY(mutex_);
  const driver::DriverApi* api_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::vector<Physical> physical_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> visible_ ABSL_GUARDED_BY(mutex_);  // Physical indices.
  bool tensor_float_32_ ABSL_GUARDED_BY(mutex_) = false;
  bool captures_steps_ ABSL_GUARDED_BY(mutex_) = true;
  bool is_in_use_ ABSL_GUARDED_BY(mutex_) = false;
  // Set once a device is in use.
  std::vector<Logical> logical_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_CORE_DEVICE_DEVICE_SET_H_
