#include "common/net/collectives/peers/group_communicator.h"

#include <utility>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"

namespace muster {

GroupCommunicator::GroupCommunicator(std::unique_ptr<Communicator> communicator,
                                     Explain explain)
    : explain_(std::move(explain)), communicator_(std::move(communicator)) {}

absl::StatusOr<std::shared_ptr<Buffer>> GroupCommunicator::Allocate(
    size_t size_bytes, const CollectiveCall& call) {
  auto buffer = communicator_->Allocate(size_bytes, call);
  if (!buffer.ok()) return Explained("allocation", call, buffer.status());
  return buffer;
}

absl::Status GroupCommunicator::AllReduce(ReduceOp op, TensorSpan buffer,
                                          const CollectiveCall& call) {
  return Explained("all-reduce", call,
                   communicator_->AllReduce(op, buffer, call));
}

absl::Status GroupCommunicator::ReduceScatter(ReduceOp op, TensorSpan buffer,
                                              const CollectiveCall& call) {
  return Explained("reduce-scatter", call,
                   communicator_->ReduceScatter(op, buffer, call));
}

absl::Status GroupCommunicator::AllGather(
    TensorSpan input, absl::Span<const int64_t> element_counts,
    TensorSpan output, const CollectiveCall& call) {
  return Explained(
      "all-gather", call,
      communicator_->AllGather(input, element_counts, output, call));
}

absl::Status GroupCommunicator::Broadcast(TensorSpan buffer, int root,
                                          const CollectiveCall& call) {
  return Explained("broadcast", call,
                   communicator_->Broadcast(buffer, root, call));
}

absl::Status GroupCommunicator::Barrier(const CollectiveCall& call) {
  return Explained("barrier", call, communicator_->Barrier(call));
}

void GroupCommunicator::Abort(absl::Status status) {
  communicator_->Abort(std::move(status));
}

CollectiveProgress GroupCommunicator::Progress() const {
  return communicator_->Progress();
}

absl::Status GroupCommunicator::Explained(absl::string_view operation,
                                          const CollectiveCall& call,
                                          const absl::Status& status) const {
  if (ABSL_PREDICT_TRUE(status.ok())) return status;
  return explain_(call.name.empty()
                      ? std::string(operation)
                      : absl::StrCat(operation, " of ", call.name),
                  communicator_->Progress(), status);
}

}  // namespace muster
