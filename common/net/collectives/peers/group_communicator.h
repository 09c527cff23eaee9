#ifndef COMMON_NET_COLLECTIVES_PEERS_GROUP_COMMUNICATOR_H_
#define COMMON_NET_COLLECTIVES_PEERS_GROUP_COMMUNICATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/system/metrics.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/device_communicator.h"
#include "common/net/status/status_report.h"

namespace muster {

// A communicator whose errors are explained by its group. The group replaces a
// rank that is gone by the name and address of its task, and an error that
// follows from another task's failure by that failure.
//
// Supports memory of a GPU if `communicator` does.
class GroupCommunicator final : public DeviceCommunicator {
 public:
  // Called with each error, the attempted operation ("all-reduce of
  // dense/kernel") and its progress. Returns the error for the caller; never
  // OK.
  using Explain = std::function<absl::Status(absl::string_view attempted,
                                             const CollectiveProgress& progress,
                                             const absl::Status& status)>;

  GroupCommunicator(std::unique_ptr<Communicator> communicator,
                    Explain explain);

  int rank() const override { return communicator_->rank(); }
  int size() const override { return communicator_->size(); }
  uint64_t generation() const override { return communicator_->generation(); }
  std::string transport() const override { return communicator_->transport(); }
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(
      size_t size_bytes, const CollectiveCall& call) override;
  absl::Status AllReduce(ReduceOp op, TensorSpan buffer,
                         const CollectiveCall& call) override;
  absl::Status ReduceScatter(ReduceOp op, TensorSpan buffer,
                             const CollectiveCall& call) override;
  absl::Status AllGather(TensorSpan input,
                         absl::Span<const int64_t> element_counts,
                         TensorSpan output,
                         const CollectiveCall& call) override;
  absl::Status Broadcast(TensorSpan buffer, int root,
                         const CollectiveCall& call) override;
  absl::Status Barrier(const CollectiveCall& call) override;
  void Abort(absl::Status status) override;

  // The functions of DeviceCommunicator require that this is not null.
  DeviceCommunicator* on_device() override {
    return on_device_ == nullptr ? nullptr : this;
  }
  Device& device() const override { return on_device_->device(); }
  absl::StatusOr<std::shared_ptr<Buffer>> AllocateOnDevice(
      size_t size_bytes, const CollectiveCall& call) override;
  absl::Status StartAllReduce(ReduceOp op, TensorSpan buffer,
                              const Event& ready, Event* done,
                              const CollectiveCall& call) override;
  absl::Status StartReduceScatter(ReduceOp op, TensorSpan buffer,
                                  const Event& ready, Event* done,
                                  const CollectiveCall& call) override;
  absl::Status StartAllGather(absl::Span<const int64_t> element_counts,
                              TensorSpan buffer, const Event& ready,
                              Event* done, const CollectiveCall& call) override;
  absl::Status StartBroadcast(TensorSpan buffer, int root, const Event& ready,
                              Event* done, const CollectiveCall& call) override;
  void UseEndWord(std::shared_ptr<Buffer> word) override {
    on_device_->UseEndWord(std::move(word));
  }
  absl::Status Await() override;

  CollectiveProgress Progress() const override;

 private:
  // Runs and measures one collective of `size_bytes`.
  absl::Status Measured(const char* operation, DurationMetric* seconds,
                        const CollectiveCall& call, int64_t size_bytes,
                        absl::FunctionRef<absl::Status()> run) const;
  // Adds the times of this process's collectives, including those of other
  // groups.
  void AddStatus(StatusReport* report) const;
  absl::Status Explained(absl::string_view operation,
                         const CollectiveCall& call,
                         const absl::Status& status) const;

  // Destroyed last, because it may keep objects alive that the communicator
  // needs.
  const Explain explain_;
  const std::unique_ptr<Communicator> communicator_;
  DeviceCommunicator* const on_device_;  // Of communicator_; null: none.
  Counter* const bytes_;
  DurationMetric* const all_reduce_seconds_;
  DurationMetric* const reduce_scatter_seconds_;
  DurationMetric* const all_gather_seconds_;
  DurationMetric* const broadcast_seconds_;
  DurationMetric* const barrier_seconds_;
  const StatusSource source_;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_GROUP_COMMUNICATOR_H_
