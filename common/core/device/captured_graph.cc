#include "common/core/device/captured_graph.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"

namespace muster {

template <typename... Parameters, typename... Arguments>
absl::Status CapturedGraph::Call(absl::string_view function,
                                 driver::Result (*pointer)(Parameters...),
                                 Arguments... arguments) {
  const driver::Result result = context_.TryCall(pointer, arguments...);
  if (result == driver::kSuccess) return absl::OkStatus();
  return absl::FailedPreconditionError(context_.Describe(result, function));
}

absl::StatusOr<std::unique_ptr<CapturedGraph>> CapturedGraph::Capture(
    const WorkList& work, DeviceStream* stream) {
  auto captured = absl::WrapUnique(new CapturedGraph(stream));
  const driver::DriverApi& api = captured->context_.api();
  // With kThreadLocal, other threads may wait for events during the capture.
  RETURN_IF_ERROR(captured->Call("cuStreamBeginCapture",
                                 api.cuStreamBeginCapture_v2, stream->handle(),
                                 driver::CaptureMode::kThreadLocal));
  absl::Status status = captured->AddNodes(work);
  // Ends the capture after an error, too, so that the stream leaves it.
  status.Update(captured->Call("cuStreamEndCapture", api.cuStreamEndCapture,
                               stream->handle(), &captured->graph_));
  if (!status.ok()) return absl::FailedPreconditionError(status.message());
  RETURN_IF_ERROR(captured->ReadCopies(work));
  RETURN_IF_ERROR(captured->Call("cuGraphInstantiate",
                                 api.cuGraphInstantiateWithFlags,
                                 &captured->exec_, captured->graph_, 0ull));
  return captured;
}

CapturedGraph::~CapturedGraph() {
  const driver::DriverApi& api = context_.api();
  // No caller can act on an error.
  if (exec_ != nullptr) (void)context_.TryCall(api.cuGraphExecDestroy, exec_);
  if (graph_ != nullptr) (void)context_.TryCall(api.cuGraphDestroy, graph_);
}

absl::Status CapturedGraph::AddNodes(const WorkList& work) {
  nodes_.resize(work.size());
  for (size_t i = 0; i < work.size(); ++i) {
    RETURN_IF_ERROR(work.Enqueue(i, &stream_));
    RETURN_IF_ERROR(NoteNode(work, i));
  }
  return absl::OkStatus();
}

absl::Status CapturedGraph::NoteNode(const WorkList& work, size_t i) {
  if (work.kind(i) != WorkList::Kind::kLaunch &&
      work.kind(i) != WorkList::Kind::kCopy) {
    return absl::OkStatus();
  }
  driver::CaptureStatus status = driver::CaptureStatus::kNone;
  driver::GraphNodeHandle* const* last = nullptr;
  size_t count = 0;
  RETURN_IF_ERROR(Call(
      "cuStreamGetCaptureInfo", context_.api().cuStreamGetCaptureInfo_v3,
      stream_.handle(), &status, nullptr, nullptr, &last, nullptr, &count));
  if (status != driver::CaptureStatus::kActive || count != 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        context_.name(), ": captured work is not a single node of a graph"));
  }
  nodes_[i].handle = last[0];
  return absl::OkStatus();
}

absl::Status CapturedGraph::ReadCopies(const WorkList& work) {
  // Update() changes only the addresses in the driver's own description of a
  // copy.
  for (size_t i = 0; i < work.size(); ++i) {
    if (work.kind(i) != WorkList::Kind::kCopy) continue;
    RETURN_IF_ERROR(Call("cuGraphMemcpyNodeGetParams",
                         context_.api().cuGraphMemcpyNodeGetParams,
                         nodes_[i].handle, &nodes_[i].copy));
  }
  return absl::OkStatus();
}

absl::Status CapturedGraph::Update(size_t i, const WorkList& work) {
  Node& node = nodes_[i];
  MUSTER_CHECK(node.handle != nullptr);
  if (work.kind(i) == WorkList::Kind::kLaunch) {
    driver::KernelNodeParameters parameters =
        work.NodeParameters(i, &addresses_);
    parameters.context = context_.handle();
    return Call("cuGraphExecKernelNodeSetParams",
                context_.api().cuGraphExecKernelNodeSetParams_v2, exec_,
                node.handle, &parameters);
  }
  const auto set = [](driver::Address address, driver::CopyNodeSide* side) {
    side->device = address;
    side->host = reinterpret_cast<void*>(address);
  };
  set(work.CopyFrom(i), &node.copy.from);
  set(work.CopyTo(i), &node.copy.to);
  return Call("cuGraphExecMemcpyNodeSetParams",
              context_.api().cuGraphExecMemcpyNodeSetParams, exec_, node.handle,
              &node.copy, context_.handle());
}

absl::Status CapturedGraph::Launch() {
  return Call("cuGraphLaunch", context_.api().cuGraphLaunch, exec_,
              stream_.handle());
}

}  // namespace muster
