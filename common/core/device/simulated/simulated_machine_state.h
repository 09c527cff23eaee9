#ifndef COMMON_CORE_DEVICE_SIMULATED_SIMULATED_MACHINE_STATE_H_
#define COMMON_CORE_DEVICE_SIMULATED_SIMULATED_MACHINE_STATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/core/device/driver/driver_api.h"
#include "common/core/device/driver/kernel_image.h"
#include "common/core/device/driver/launch_shape.h"
#include "common/core/device/simulated/handles.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/device/simulated/simulated_graphs.h"
#include "common/core/device/simulated/simulated_memory.h"
#include "common/core/device/simulated/simulated_streams.h"

namespace muster {

// The objects behind the handles of a simulated driver.
namespace driver {
struct ContextHandle {
  int device = 0;
};
struct StreamHandle {
  simulated::StreamState* stream;
};
struct EventHandle {
  std::shared_ptr<simulated::EventState> state;
};
struct LibraryHandle {
  const KernelImage* image;
};
struct KernelHandle {
  const SimulatedKernel* kernel;
};
struct GraphHandle {
  simulated::SimulatedGraph graph;
};
struct GraphExecHandle {
  simulated::ExecutableGraph graph;
};
}  // namespace driver

namespace simulated {

// State that the functions of the driver share. Thread-safe.
class MachineState {
 public:
  explicit MachineState(const SimulatedMachine::Options& options);

  // Counts the call. Returns the error that the function must return, or
  // kSuccess.
  driver::Result Enter(const char* function) ABSL_LOCKS_EXCLUDED(mutex_);

  void Fail(absl::string_view function, driver::Result result, int after,
            bool is_sticky) {
    const absl::MutexLock lock(&mutex_);
    faults_[std::string(function)] = {result, after, is_sticky};
  }

  std::map<std::string, int64_t> counts() const {
    const absl::MutexLock lock(&mutex_);
    return counts_;
  }

  // -1 if no context of this machine is current on this thread.
  int current_device() const;

  bool HasDevice(int device) const {
    return device >= 0 && device < options_.device_count;
  }

  driver::Result SetCurrent(driver::ContextHandle* context);
  driver::Result Attribute(driver::DeviceAttribute attribute, int* value) const;

  // Takes work for a stream: enqueues it, or captures it.
  driver::Result Submit(driver::StreamHandle* stream,
                        simulated::GraphWork work);
  // Create the work of a node. Return the driver's results.
  driver::Result MakeCopy(driver::Address to, driver::Address from,
                          size_t size_bytes, simulated::GraphWork* work) const;
  driver::Result MakeLaunch(const driver::KernelHandle* kernel,
                            const LaunchShape& shape, void** arguments,
                            simulated::GraphWork* work) const;

  driver::Result Copy(driver::Address to, driver::Address from,
                      size_t size_bytes, driver::StreamHandle* stream);
  driver::Result Fill(driver::Address to, uint8_t byte, size_t size_bytes,
                      driver::StreamHandle* stream);

  const SimulatedMachine::Options options_;
  const uint64_t id_;
  simulated::SimulatedMemory memory_;
  simulated::SimulatedStreams streams_;
  simulated::SimulatedCaptures captures_;
  std::vector<driver::ContextHandle> contexts_;  // By device.
  std::atomic<int64_t> host_copy_bytes_ = 0;
  std::atomic<int64_t> pageable_copy_count_ = 0;
  simulated::Handles<driver::StreamHandle> stream_handles_;
  simulated::Handles<driver::EventHandle> event_handles_;
  simulated::Handles<driver::LibraryHandle> library_handles_;
  simulated::Handles<driver::KernelHandle> kernel_handles_;
  simulated::Handles<driver::GraphHandle> graph_handles_;
  simulated::Handles<driver::GraphExecHandle> graph_exec_handles_;

 private:
  struct Fault {
    driver::Result result;
    int after;
    bool is_sticky;
  };

  bool IsUsable(driver::Address address, size_t size_bytes) const {
    return memory_.KindAt(address) !=
               simulated::SimulatedMemory::Kind::kDevice ||
           memory_.IsAccessible(address, size_bytes);
  }

  mutable absl::Mutex mutex_;
  std::map<std::string, int64_t> counts_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Fault> faults_ ABSL_GUARDED_BY(mutex_);
};

// The machine that exists, or null.
extern std::atomic<MachineState*> the_machine;

}  // namespace simulated
}  // namespace muster

#endif  // COMMON_CORE_DEVICE_SIMULATED_SIMULATED_MACHINE_STATE_H_
