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

// Enqueues the work of steps with few calls of the driver: work that steps
// repeat is captured as a graph, and one call launches it.
//
// The host computes what a step enqueues as it always does; between BeginStep()
// and EndStep() the stream passes its work on to this class in place of the
// driver. A step is divided into segments: an event, a wait of the host, or a
// copy of pageable memory calls the driver at once, and ends a segment.
//
// * A segment whose work is new is enqueued at once, and noted.
// * Work that a segment had in kStepsBeforeCapture steps is expected again: it
//   is held back until the segment ends, then captured, and launched.
// * Later steps compare their work with it. Differences - arguments of kernels,
//   addresses of copies - are applied to the graph before its launch.
// * Unexpected work is enqueued at once, after the work that was held back. So
//   no step depends on a graph, and the device does the same work in the same
//   order with and without graphs.
// * A capture, a change or a launch that fails is logged once, and its work is
//   never captured again.
//
// A segment with several variants, such as adding up gradients and applying
// them, has a graph for each of them.
//
// Not thread-safe; one thread makes all calls of a step. Errors are those of
// DeviceStream, including errors of work that was held back.
// Equivalent to: torch.cuda.CUDAGraph; the command buffers of XLA.
class StepGraphs final : public WorkRecorder {
 public:
  // How many steps must do the same work before it is captured.
  static constexpr int kStepsBeforeCapture = 2;
  // Maximum number of variants of a segment.
  static constexpr size_t kVariantsMax = 4;

  // Both are borrowed. Requires device->captures_steps().
  StepGraphs(Device* device, DeviceStream* stream)
      : device_(*device), stream_(*stream) {}
  // If has_launched(), the work of the steps must be done.
  ~StepGraphs() override = default;
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  // Until EndStep(), the stream takes work of this thread only.
  void BeginStep();
  // Enqueues the work that is held back. Call it after an error, too.
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
  // One way in which steps do a segment.
  struct Variant {
    WorkList work;  // The work of the graph if there is one.
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
  // Called after each addition to `current_`.
  absl::Status HandleLastItem();
  // Enqueues `current_` from the item `first` on.
  absl::Status Enqueue(size_t first);
  // Counts the work of `current_` as a variant of the segment.
  void Note();
  absl::Status LaunchGraph(Variant* variant);
  absl::Status UpdateAndLaunch(Variant* variant);
  void Refuse(const absl::Status& why, Variant* variant);

  Device& device_;
  DeviceStream& stream_;
  std::vector<Segment> segments_;
  size_t segment_ = 0;
  WorkList current_;  // The work of the segment so far.
  // Index of the variant with which `current_` is compared while it is held
  // back.
  int expected_ = kNone;
  bool has_launched_ = false;
  bool has_refused_ = false;
};

}  // namespace muster

#endif  // COMMON_CORE_DEVICE_STEP_GRAPHS_H_
