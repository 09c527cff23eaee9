#ifndef COMMON_CORE_DEVICE_SIMULATED_SIMULATED_DRIVER_H_
#define COMMON_CORE_DEVICE_SIMULATED_SIMULATED_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/core/device/driver/driver_api.h"
#include "common/core/device/simulated/simulated_streams.h"

namespace muster {
namespace simulated {
class MachineState;
}  // namespace simulated

// GPUs that exist in this process only, behind the functions of the driver: all
// that uses a driver runs without a GPU, and errors that a GPU hides are found.
//
// * Work runs as late as possible (Order::kAtWait) or on threads.
// * Fresh memory is NaN. With kAtWait, device memory cannot be touched by the
//   host: a program that does ends by SIGSEGV.
// * Kernels are the functions of KernelImage::simulated. A kernel whose threads
//   deadlock is logged and loses the device, as on a GPU.
// * Results of functions are those of the driver of an H100; time is not.
//
// At most one machine exists at a time, because the driver's functions have no
// argument that tells machines apart. Everything made with driver() must be
// gone before it. Thread-safe.
class SimulatedMachine {
 public:
  struct Options {
    int device_count = 1;
    size_t memory_bytes = 256 << 20;  // Of each device.
    simulated::Order order = simulated::Order::kAtWait;
    // Selects the stream that continues next, and the order of a kernel's
    // threads. 0: streams in a fixed random order, threads ascending.
    uint64_t seed = 0;
  };

  explicit SimulatedMachine(const Options& options);
  ~SimulatedMachine();
  SimulatedMachine(const SimulatedMachine&) = delete;
  SimulatedMachine& operator=(const SimulatedMachine&) = delete;

  const driver::DriverApi& driver() const;

  // Appends work of the host to a stream of the machine that exists: for
  // libraries that enqueue work of their own. The results of
  // cuLaunchKernelEx().
  static driver::Result Enqueue(driver::StreamHandle* stream,
                                std::function<driver::Result()> work);

  // Returns whether this is memory of the device whose context is current on
  // this thread, as work of the device may use it. For libraries that check
  // their arguments.
  static bool IsDeviceMemory(const void* address, size_t size_bytes);

  // Makes a call of `function` ("cuLaunchKernelEx") return `result` and do
  // nothing: the `after`-th from now on, or with `is_sticky` that one and all
  // later ones. A sticky error of memory or of a kernel loses the device of the
  // call, as on a GPU.
  void Fail(absl::string_view function, driver::Result result, int after = 0,
            bool is_sticky = false);

  // The number of calls so far by function.
  std::map<std::string, int64_t> counts() const;

  // The bytes that copies have moved from or to memory of the host.
  int64_t host_copy_bytes() const;
  // The number of copies from or to pageable memory of the host: there the
  // driver of a GPU may block.
  int64_t pageable_copy_count() const;

 private:
  const std::unique_ptr<simulated::MachineState> state_;
};

}  // namespace muster

#endif  // COMMON_CORE_DEVICE_SIMULATED_SIMULATED_DRIVER_H_
