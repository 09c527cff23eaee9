#include "common/learn/strategy/synchronous/cross_device_communicator.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/net/collectives/reduce_kernels.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/tensor_span.h"

namespace muster {
namespace {

// The state that the ranks of one group share. A barrier separates writes from
// reads.
struct Exchange {
  struct Entry {
    ReduceOp op = ReduceOp::kSum;
    TensorSpan buffer = {};
  };
  std::vector<Entry> entries;  // By rank.
  Tensor result;               // Written by rank 0.
};

class CrossDeviceCommunicator final : public Communicator {
 public:
  CrossDeviceCommunicator(std::shared_ptr<const CrossDeviceOps> ops,
                          std::shared_ptr<Exchange> exchange,
                          std::unique_ptr<Communicator> inner)
      : ops_(std::move(ops)),
        exchange_(std::move(exchange)),
        inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  uint64_t generation() const override { return inner_->generation(); }
  std::string transport() const override { return inner_->transport(); }

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(
      size_t size_bytes, const CollectiveCall& call) override {
    return inner_->Allocate(size_bytes, call);
  }
  absl::Status AllReduce(ReduceOp op, TensorSpan buffer,
                         const CollectiveCall& call) override;
  absl::Status ReduceScatter(ReduceOp op, TensorSpan buffer,
                             const CollectiveCall& call) override {
    return AllReduce(op, buffer, call);
  }
  absl::Status AllGather(TensorSpan input,
                         absl::Span<const int64_t> element_counts,
                         TensorSpan output,
                         const CollectiveCall& call) override {
    return inner_->AllGather(input, element_counts, output, call);
  }
  absl::Status Broadcast(TensorSpan buffer, int root,
                         const CollectiveCall& call) override {
    return inner_->Broadcast(buffer, root, call);
  }
  absl::Status Barrier(const CollectiveCall& call) override {
    return inner_->Barrier(call);
  }
  void Abort(absl::Status status) override { inner_->Abort(std::move(status)); }
  CollectiveProgress Progress() const override { return inner_->Progress(); }

 private:
  // Checks that all ranks reduce with the same operation, dtype and element
  // count.
  absl::Status CheckEntries(const CollectiveCall& call) const;
  void Combine();

  const std::shared_ptr<const CrossDeviceOps> ops_;
  const std::shared_ptr<Exchange> exchange_;
  const std::unique_ptr<Communicator> inner_;
};

absl::Status CrossDeviceCommunicator::AllReduce(ReduceOp op, TensorSpan buffer,
                                                const CollectiveCall& call) {
  if (size() == 1) return inner_->AllReduce(op, buffer, call);
  exchange_->entries[rank()] = {op, buffer};
  RETURN_IF_ERROR(inner_->Barrier(call));
  if (absl::Status status = CheckEntries(call); !status.ok()) {
    // Every rank finds the error. The barrier ensures that no rank ends the
    // group before all ranks have checked.
    inner_->Barrier(call).IgnoreError();
    inner_->Abort(status);
    return status;
  }
  if (rank() == 0) Combine();
  // The copy below is safe: in the next call, rank 0 changes the result only
  // after a barrier, which every rank reaches after its copy.
  RETURN_IF_ERROR(inner_->Barrier(call));
  if (buffer.element_count > 0) {
    std::memcpy(buffer.data, exchange_->result.raw_data(), buffer.size_bytes());
  }
  return absl::OkStatus();
}

absl::Status CrossDeviceCommunicator::CheckEntries(
    const CollectiveCall& call) const {
  const Exchange::Entry& first = exchange_->entries[0];
  for (int r = 1; r < size(); ++r) {
    const Exchange::Entry& entry = exchange_->entries[r];
    if (entry.op == first.op && entry.buffer.dtype == first.buffer.dtype &&
        entry.buffer.element_count == first.buffer.element_count) {
      continue;
    }
    const auto describe = [](const Exchange::Entry& entry) {
      return absl::StrCat(ReduceOpName(entry.op), " of ",
                          entry.buffer.element_count, " ",
                          DTypeName(entry.buffer.dtype));
    };
    return absl::InvalidArgumentError(absl::StrCat(
        "all-reduce of ", call.name,
        ": all replicas reduce the same; replica 0 has the ", describe(first),
        " and replica ", r, " the ", describe(entry)));
  }
  return CheckReducible(first.buffer.dtype);
}

void CrossDeviceCommunicator::Combine() {
  const Exchange::Entry& first = exchange_->entries[0];
  const TensorSpan& shape = first.buffer;
  if (shape.element_count == 0) return;
  Tensor& result = exchange_->result;
  const bool fits = result.IsValid() && result.dtype() == shape.dtype &&
                    result.element_count() >= shape.element_count;
  if (!fits) result = Tensor(shape.dtype, {shape.element_count});
  std::vector<const void*> inputs;
  for (const Exchange::Entry& entry : exchange_->entries) {
    inputs.push_back(entry.buffer.data);
  }
  ops_->ReduceArrays(first.op, shape.dtype, shape.element_count, inputs,
                     result.mutable_raw_data());
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> ReduceBy(
    std::shared_ptr<const CrossDeviceOps> ops,
    std::vector<std::unique_ptr<Communicator>> inner) {
  const auto exchange = std::make_shared<Exchange>();
  exchange->entries.resize(inner.size());
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (std::unique_ptr<Communicator>& communicator : inner) {
    communicators.push_back(std::make_unique<CrossDeviceCommunicator>(
        ops, exchange, std::move(communicator)));
  }
  return communicators;
}

}  // namespace muster
