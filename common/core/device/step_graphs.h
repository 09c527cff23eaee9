#ifndef COMMON_CORE_DEVICE_STEP_GRAPHS_H_
#define COMMON_CORE_DEVICE_STEP_GRAPHS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/device/captured_graph.h"
#include "common/core/device/device.h"
#include "common/core/device/driver/launch_shape.h"
#include "common/core/device/stream.h"
#include "common/core/device/work_list.h"

namespace muster {

// Enqueues the work of steps by few calls of the driver: work that steps repeat
// is captured as a graph, and one call launches it.
//
// The host computes what a step enqueues as it always does; between BeginStep()
// and EndStep() the stream passes its work on to this class in place of the
// driver. A step is divided into segments: events, waits of the host, and
// copies of pageable memory are calls of the driver at once, and end a segment.
//
// * A segment whose work is new is enqueued at once, and noted.
// * Work that a segment had in kStepsBeforeCapture steps is expected again: it
//   is held back until the segment ends, then captured, and launched.
// * Later steps compare their work with it. What differs - arguments of
//   kernels, addresses of copies - is changed in the graph before its launch.
// * Work that is not as expected is enqueued at once, with all that was held
//   back. So no step depends on a graph, and the device does the same work in
//   the same order with and without graphs.
// * A capture, a change or a launch that fails is logged once, and its work is
//   never captured again.
//
// Segments that steps do in several ways, such as adding up gradients and
// applying them, have a graph for each of them.
//
// Not thread-safe; one thread makes all calls of a step. Errors are those of
// DeviceStream, of work that was held back, too.
// Equivalent to: torch.cuda.CUDAGraph; the command buffers of XLA.
class StepGraphs final : public WorkRecorder {
 public:
  // How many steps do the same before it is captured.
  static constexpr int kStepsBeforeCapture = 2;
  // In how many ways a segment may be done.
  static constexpr size_t kVariantsMax = 4;

  // Both are borrowed. device->captures_steps().
  StepGraphs(Device* device, DeviceStream* stream)
      : device_(*device), stream_(*stream) {}
  // The work of steps is done if has_launched().
  ~StepGraphs() override = default;
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  // The stream takes work of this thread only, until EndStep().
  void BeginStep();
  // Enqueues what is held back. Also after an error.
  absl::Status EndStep();

  // True if a graph has ever been launched.
  bool has_launched() const { return has_launched_; }

  // --- For the stream.
  absl::Status AddLaunch(const KernelFunction& kernel, const LaunchShape& shape,
                         absl::Span<const KernelArgument> arguments) override;
  absl::Status AddCopy(const void* from, void* to, size_t size_bytes) override;
  absl::Status AddFill(void* to, uint8_t byte, size_t size_bytes) override;
  absl::Status AddLibraryCall(LibraryCall call) override;
  absl::Status Flush() override;

 private:
  // One way in which a segment is done.
  struct Variant {
    WorkList work;  // That of the graph if there is one.
    int step_count = 0;
    bool is_refused = false;
    std::unique_ptr<CapturedGraph> graph;
  };
  using Segment = std::vector<std::unique_ptr<Variant>>;

  static constexpr int kNone = -1;

  Segment& segment();
  bool IsExpected(const Variant& variant) const;
  // Returns a variant that is expected and begins with `current_`, or kNone.
  int FindExpected() const;
  bool BeginsLike(const Variant& variant) const;
  // Called behind each addition to `current_`.
  absl::Status TakeLast();
  // Enqueues `current_` from the item `first` on.
  absl::Status Enqueue(size_t first);
  // Notes that the segment was done in the way of `current_`.
  void Note();
  absl::Status LaunchGraph(Variant* variant);
  absl::Status UpdateAndLaunch(Variant* variant);
  void Refuse(const absl::Status& why, Variant* variant);

  Device& device_;
  DeviceStream& stream_;
  std::vector<Segment> segments_;
  size_t segment_ = 0;
  WorkList current_;  // Of the segment so far.
  // The variant with which it is compared, while it is held back.
  int expected_ = kNone;
  bool has_launched_ = false;
  bool has_refused_ = false;
};

}  // namespace muster

#endif  // COMMON_CORE_DEVICE_STEP_GRAPHS_H_
