#ifndef COMMON_CORE_DEVICE_DEVICE_H_
#define COMMON_CORE_DEVICE_DEVICE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/core/device/device_context.h"
#include "common/core/device/device_memory.h"
#include "common/core/device/driver/driver_api.h"
#include "common/core/device/driver/kernel_image.h"
#include "common/core/device/pinned_memory.h"
#include "common/core/device/stream.h"

namespace muster {

// Counters of StepGraphs.
struct GraphCounters {
  std::atomic<int64_t> captures = 0;
  std::atomic<int64_t> launches = 0;  // Graph launches.
  std::atomic<int64_t> updates = 0;   // Node updates between launches.
  // Graphs that could not be captured, changed or launched.
  std::atomic<int64_t> refusals = 0;
  // Steps that include work of the host, so that nothing is captured.
  std::atomic<int64_t> host_steps = 0;
  // Segments with more than StepGraphs::kVariantsMax variants.
  std::atomic<int64_t> unsteady_segments = 0;
};

struct DeviceDescription {
  std::string name;            // "gpu:0", the logical device.
  int ordinal = 0;             // The driver's number of the physical GPU.
  std::string model;           // "NVIDIA H100 80GB HBM3".
  std::string uuid;            // "GPU-8f0c...".
  int compute_capability = 0;  // 90 for sm_90.
  int multiprocessor_count = 0;
  size_t l2_cache_bytes = 0;
  size_t memory_bytes = 0;  // Memory of the physical GPU.
  int driver_version = 0;   // 13000 for CUDA 13.0.
  bool is_simulated = false;

  // "gpu:0: NVIDIA H100 80GB HBM3, sm_90, 79.6 GiB, CUDA 13.0"
  std::string ToString() const;
};

// Returns the driver's description of a GPU. DeviceDescription::name is empty.
//   kInternal  an error of the driver
absl::StatusOr<DeviceDescription> DescribePhysicalDevice(
    const driver::DriverApi& api, int ordinal);

// One logical GPU of this process: a share of a physical one, with a separate
// memory limit. DeviceSet creates the devices of a program.
//
// Outlives everything that it creates. Thread-safe.
// Equivalent to: se::StreamExecutor, iree_hal_device_t,
// tf.config.LogicalDevice.
class Device {
 public:
  struct Options {
    std::string name = "gpu:0";
    int ordinal = 0;
    DeviceMemory::Options memory;
    bool tensor_float_32 = false;  // Device::tensor_float_32().
    bool captures_steps = false;   // Device::captures_steps().
  };

  // `api` is borrowed for the life of the result.
  //   kInvalidArgument  there is no such GPU, or the memory limit does not fit
  //   others            as DeviceContext::Call()
  static absl::StatusOr<std::unique_ptr<Device>> Create(
      const driver::DriverApi* api, const Options& options);

  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceDescription& description() const { return description_; }
  const std::string& name() const { return description_.name; }
  // True if products and convolutions of float32 may round their operands to
  // TF32, which has 10 bits of mantissa, to be computed by tensor cores.
  bool tensor_float_32() const { return tensor_float_32_; }
  // True if steps may be captured as graphs: the program enables it, and the
  // driver has the functions.
  bool captures_steps() const {
    return captures_steps_.load() && context_->api().has_graphs;
  }
  // Applies to steps that are prepared from now on.
  void CaptureSteps(bool enabled) { captures_steps_ = enabled; }
  GraphCounters& graph_counters() { return graph_counters_; }
  DeviceMemory& memory() { return *memory_; }
  PinnedMemory& pinned_memory() { return *pinned_memory_; }

  absl::StatusOr<std::unique_ptr<DeviceStream>> CreateStream();
  absl::StatusOr<std::unique_ptr<Event>> CreateEvent();
  // Creates an event that records when it is reached: Event::TimeSince().
  absl::StatusOr<std::unique_ptr<Event>> CreateTimedEvent();

  // Returns the kernel with this name, as `extern "C"` declares it. Loads the
  // image at its first use. `image` is borrowed for the life of the device.
  //   kNotFound            the image has no such kernel; names both
  //   kFailedPrecondition  the image has no code for this GPU; says what was
  //                        expected
  absl::StatusOr<KernelFunction> FindKernel(const KernelImage& image,
                                            absl::string_view name);

  // OK, or why the GPU is lost. A lost GPU cannot be used by this process
  // again: after a kernel's illegal access, or an error of the hardware.
  absl::Status health() const { return context_->health(); }
  // Asks the driver whether the GPU is lost. For errors of libraries, which do
  // not report that.
  //   as DeviceContext::Call()
  absl::Status CheckHealth();
  DeviceContext& context() { return *context_; }

 private:
  Device() = default;

  absl::StatusOr<std::unique_ptr<Event>> CreateEventWith(unsigned flags);
  absl::StatusOr<driver::LibraryHandle*> LoadImage(const KernelImage& image)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  DeviceDescription description_;
  bool tensor_float_32_ = false;
  std::atomic<bool> captures_steps_ = false;
  GraphCounters graph_counters_;
  std::unique_ptr<DeviceContext> context_;
  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<PinnedMemory> pinned_memory_;

  absl::Mutex mutex_;
  absl::flat_hash_map<const KernelImage*, driver::LibraryHandle*> libraries_
      ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<const KernelImage*, std::string>, KernelFunction> kernels_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_CORE_DEVICE_DEVICE_H_
