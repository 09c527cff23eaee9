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

// GPUs that exist only in this process, behind the functions of the driver.
// Code that uses a driver runs without a GPU, and errors that a GPU hides are
// detected.
//
// * Work runs as late as possible (Order::kAtWait) or on threads.
// * Fresh memory is NaN. With kAtWait, a program ends by SIGSEGV if the host
//   accesses device memory.
// * Kernels are the functions of KernelImage::simulated. A kernel whose threads
//   deadlock is logged and loses the device, as on a GPU.
// * Functions return the results of an H100's driver. Time is not simulated.
//
// At most one machine exists at a time, because the driver's functions have no
// argument that tells machines apart. Everything made with driver() must be
// destroyed before it. Thread-safe.
class SimulatedMachine {
 public:
  struct Options {
    int device_count = 1;
    size_t memory_bytes = 256 << 20;  // Memory of each device.
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

  // Appends host work to a stream of the machine that exists, for libraries
  // that enqueue work themselves. Returns the results of cuLaunchKernelEx().
  static driver::Result Enqueue(driver::StreamHandle* stream,
                                std::function<driver::Result()> work);

  // True if this is memory of the device whose context is current on this
  // thread, as work of the device may use it. For libraries that check their
  // arguments.
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
  // The number of copies from or to pageable memory of the host, for which the
  // driver of a GPU may block.
  int64_t pageable_copy_count() const;

 private:
  const std::unique_ptr<simulated::MachineState> state_;
};

}  // namespace muster

#endif  // COMMON_CORE_DEVICE_SIMULATED_SIMULATED_DRIVER_H_
