#ifndef COMMON_CORE_DEVICE_CAPTURED_GRAPH_H_
#define COMMON_CORE_DEVICE_CAPTURED_GRAPH_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/device/device_context.h"
#include "common/core/device/driver/driver_api.h"
#include "common/core/device/stream.h"
#include "common/core/device/work_list.h"

namespace muster {

// Work that the driver has captured: one call enqueues all of it.
//
// Errors are kFailedPrecondition, with the words of the driver: the work has
// not been enqueued, and can be, one item after the other. They never say that
// the device is lost; that enqueueing does.
//
// Not thread-safe.
// Equivalent to: CUgraphExec.
class CapturedGraph {
 public:
  // Captures all items of `work` on `stream`, which has nothing to do with
  // another capture. The driver must have graphs. What the work uses outlives
  // the result.
  static absl::StatusOr<std::unique_ptr<CapturedGraph>> Capture(
      const WorkList& work, DeviceStream* stream);

  // The work of earlier launches is done.
  ~CapturedGraph();
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  // Later launches do item i as `work` has it, which is like that of the
  // capture: WorkList::IsLike().
  absl::Status Update(size_t i, const WorkList& work);

  // Enqueues the work on the stream of the capture.
  absl::Status Launch();

 private:
  explicit CapturedGraph(DeviceStream* stream)
      : stream_(*stream), context_(stream->context()) {}

  template <typename... Parameters, typename... Arguments>
  absl::Status Call(absl::string_view function,
                    driver::Result (*pointer)(Parameters...),
                    Arguments... arguments);
  // Enqueues the work in the capture.
  absl::Status AddNodes(const WorkList& work);
  absl::Status NoteNode(const WorkList& work, size_t i);
  absl::Status ReadCopies(const WorkList& work);

  struct Node {
    driver::GraphNodeHandle* handle = nullptr;  // Null: cannot be changed.
    driver::CopyNodeParameters copy;
  };

  DeviceStream& stream_;
  DeviceContext& context_;
  driver::GraphHandle* graph_ = nullptr;
  driver::GraphExecHandle* exec_ = nullptr;
  std::vector<Node> nodes_;  // By item.
  std::vector<void*> addresses_;
};

}  // namespace muster

#endif  // COMMON_CORE_DEVICE_CAPTURED_GRAPH_H_
