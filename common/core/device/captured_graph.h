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

// Work that the driver has captured as a graph: one call enqueues all of it.
//
// Errors are kFailedPrecondition, with the driver's message. After an error the
// work has not been enqueued, and the caller can enqueue its items one by one.
// An error never says that the device is lost; enqueueing the items does.
//
// Not thread-safe.
// Equivalent to: CUgraphExec.
class CapturedGraph {
 public:
  // Captures all items of `work` on `stream`, which takes part in no other
  // capture. The driver must have graphs. All objects that the work uses
  // outlive the result.
  static absl::StatusOr<std::unique_ptr<CapturedGraph>> Capture(
      const WorkList& work, DeviceStream* stream);

  // Requires that the work of earlier launches is done.
  ~CapturedGraph();
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  // Makes later launches execute item i of `work` in place of the captured one.
  // The two items are alike: WorkList::IsLike().
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
  // Enqueues the work on the capturing stream.
  absl::Status AddNodes(const WorkList& work);
  absl::Status NoteNode(const WorkList& work, size_t i);
  absl::Status ReadCopies(const WorkList& work);

  struct Node {
    // Null if the node cannot be changed.
    driver::GraphNodeHandle* handle = nullptr;
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
