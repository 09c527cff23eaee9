#ifndef COMMON_CORE_DEVICE_SIMULATED_SIMULATED_GRAPHS_H_
#define COMMON_CORE_DEVICE_SIMULATED_SIMULATED_GRAPHS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/core/device/driver/driver_api.h"

namespace muster {
namespace simulated {

// The work of a node of a graph.
struct GraphWork {
  enum class Kind { kKernel, kCopy, kOther };

  Kind kind = Kind::kOther;
  // Runs the work; a graph may run it again.
  std::function<driver::Result()> run;
  // For copies.
  driver::Address to = 0;
  driver::Address from = 0;
  size_t size_bytes = 0;
  // The part of size_bytes that is from or to host memory.
  size_t host_bytes = 0;
};

// Nodes in an order in which each follows its dependencies.
struct SimulatedGraph {
  std::vector<std::unique_ptr<driver::GraphNodeHandle>> nodes;
};

}  // namespace simulated

namespace driver {
struct GraphNodeHandle {
  simulated::GraphWork work;
  std::vector<GraphNodeHandle*> dependencies;
};
}  // namespace driver

namespace simulated {

// An instance of a graph, whose work can be changed. The graph outlives the
// changes, as the driver requires.
class ExecutableGraph {
 public:
  ExecutableGraph(const SimulatedGraph& graph, uint64_t seed);

  // Returns the work of a node, or null if the graph did not have it.
  GraphWork* FindWork(const driver::GraphNodeHandle* node);

  // Returns all work as it is now, in one of the orders that dependencies
  // allow. Launches may use different orders.
  std::vector<GraphWork> WorkOfLaunch();

 private:
  std::vector<const driver::GraphNodeHandle*> nodes_;
  std::vector<GraphWork> work_;
  std::vector<std::vector<size_t>> dependencies_;
  uint64_t random_state_;
};

// Streams that capture their work as graphs. A stream joins a capture when it
// waits for an event of the capture. When the capture ends, its first stream
// must have waited for the work of all other streams. A call that the driver
// forbids during a capture makes the capture invalid. Thread-safe.
//
// Source: CUDA C++ Programming Guide, "Creating a Graph Using Stream Capture";
// CUDA Driver API Reference, cuStreamBeginCapture,
// cuThreadExchangeStreamCaptureMode.
class SimulatedCaptures {
 public:
  // `seed` selects the order of nodes in launches.
  explicit SimulatedCaptures(uint64_t seed) : seed_(seed) {}

  uint64_t seed() const { return seed_; }

  // The functions of the driver, with its results.
  driver::Result Begin(driver::StreamHandle* stream, driver::CaptureMode mode);
  driver::Result End(driver::StreamHandle* stream, SimulatedGraph* graph);
  // `tails` is valid until the next call for the stream.
  driver::CaptureStatus StatusOf(const driver::StreamHandle* stream,
                                 driver::GraphNodeHandle* const** tails,
                                 size_t* tail_count) const;

  // Capture work, events and waits of a stream. Return no value if the stream
  // does not capture.
  std::optional<driver::Result> Add(driver::StreamHandle* stream,
                                    GraphWork* work);
  std::optional<driver::Result> Record(driver::StreamHandle* stream,
                                       driver::EventHandle* event);
  std::optional<driver::Result> Wait(driver::StreamHandle* stream,
                                     driver::EventHandle* event);

  // Return whether a call is allowed: to wait for a stream, to query an event,
  // and to make any other call that is unsafe in a thread that captures. If it
  // is not allowed, the captures that forbid it become invalid.
  bool MayWait(driver::StreamHandle* stream);
  bool MayQuery(driver::EventHandle* event);
  bool MayCallUnsafe();

  // Call these when a stream or an event is destroyed.
  void Forget(driver::StreamHandle* stream);
  void Forget(driver::EventHandle* event);

 private:
  using Nodes = std::vector<driver::GraphNodeHandle*>;
  struct Capture {
    driver::StreamHandle* origin = nullptr;
    driver::CaptureMode mode = driver::CaptureMode::kGlobal;
    std::thread::id thread;
    bool is_valid = true;
    SimulatedGraph graph;
    // The nodes on which the next work of each stream in the capture depends.
    std::map<const driver::StreamHandle*, Nodes> tails;
    std::map<const driver::EventHandle*, Nodes> events;
  };

  Capture* FindCapture(const driver::StreamHandle* stream) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  Capture* FindCapture(const driver::EventHandle* event) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Remove(const Capture* capture) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t seed_;
  mutable absl::Mutex mutex_;
  std::vector<std::unique_ptr<Capture>> captures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace simulated
}  // namespace muster

#endif  // COMMON_CORE_DEVICE_SIMULATED_SIMULATED_GRAPHS_H_
