#include "common/learn/strategy/synchronous/leaf_lockstep.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/net/collectives/reduce_kernels.h"
#include "common/net/collectives/tensor_span.h"

namespace muster {
namespace {

std::vector<int> FirstOfRank(const Leaves& leaves) {
  std::vector<int> first = {0};
  for (const int count : leaves.count_of_rank) {
    first.push_back(first.back() + count);
  }
  return first;
}

}  // namespace

class LeafLockstep::Link final : public ReplicaLink {
 public:
  Link(LeafLockstep* lockstep, int leaf) : lockstep_(*lockstep), leaf_(leaf) {}

  int replica_id() const override { return lockstep_.NumberOf(leaf_); }
  int replica_count() const override { return lockstep_.options_.leaves.count; }

  absl::Status AllReduce(ReduceOp op, Tensor* value,
                         absl::string_view name) override {
    RETURN_IF_ERROR(CheckReducible(value->dtype()));
    const Call call{.reduction = op,
                    .dtype = value->dtype(),
                    .element_count = value->element_count(),
                    .name = name};
    return lockstep_.Exchange(leaf_, call, /*element_counts=*/{}, *value,
                              value->mutable_raw_data());
  }

  absl::Status AllGather(const Tensor& value,
                         absl::Span<const int64_t> element_counts,
                         Tensor* gathered, absl::string_view name) override {
    const Call call{.reduction = std::nullopt,
                    .dtype = value.dtype(),
                    .element_count = gathered->element_count(),
                    .name = name};
    return lockstep_.Exchange(leaf_, call, element_counts, value,
                              gathered->mutable_raw_data());
  }

 private:
  LeafLockstep& lockstep_;
  const int leaf_;
};

LeafLockstep::LeafLockstep(Options options)
    : options_(std::move(options)),
      rank_(options_.communicator->rank()),
      first_of_rank_(FirstOfRank(options_.leaves)),
      offsets_(options_.leaves.count + 1),
      rank_counts_(options_.leaves.count_of_rank.size()),
      inputs_(options_.leaves.count),
      outputs_(options_.leaves.count_of_rank[rank_]),
      threads_(own_count()) {
  for (int leaf = 0; leaf < own_count(); ++leaf) {
    links_.push_back(std::make_unique<Link>(this, leaf));
  }
}

LeafLockstep::~LeafLockstep() = default;

ReplicaLink* LeafLockstep::link(int leaf) { return links_[leaf].get(); }

absl::Status LeafLockstep::Run(absl::FunctionRef<absl::Status(int leaf)> work) {
  return threads_.Run(
      [&](int leaf) -> absl::Status {
        RETURN_IF_ERROR(AwaitTurn(leaf));
        RETURN_IF_ERROR(work(leaf));
        return Leave(leaf);
      },
      [this](const absl::Status& status) { End(status); });
}

absl::Status LeafLockstep::Exchange(int leaf, const Call& call,
                                    absl::Span<const int64_t> element_counts,
                                    const Tensor& value, void* output) {
  if (leaf == 0) Begin(call, element_counts);
  RETURN_IF_ERROR(CheckCall(leaf, call, value));
  if (value.size_bytes() > 0) {
    std::memcpy(ContributionOf(NumberOf(leaf)), value.raw_data(),
                value.size_bytes());
  }
  outputs_[leaf] = output;
  if (++contributed_count_ == own_count()) RETURN_IF_ERROR(Complete());
  PassTurn(leaf);
  return AwaitTurn(leaf);
}

void LeafLockstep::Begin(const Call& call,
                         absl::Span<const int64_t> element_counts) {
  call_ = call;
  for (int i = 0; i < options_.leaves.count; ++i) {
    offsets_[i + 1] =
        offsets_[i] +
        (element_counts.empty() ? call.element_count : element_counts[i]);
  }
  const size_t size_bytes = offsets_.back() * SizeOf(call.dtype);
  if (size_bytes > contributions_.size()) contributions_.resize(size_bytes);
}

absl::Status LeafLockstep::CheckCall(int leaf, const Call& call,
                                     const Tensor& value) const {
  const int number = NumberOf(leaf);
  if (contributed_count_ != leaf) {
    return absl::InternalError(
        absl::StrCat("micro-batch ", number, " calls the collective \"",
                     call.name, "\", and one before it has ended its step"));
  }
  const auto to_string = [](const Call& made) {
    return absl::StrCat(
        "\"", made.name, "\" (",
        made.reduction.has_value() ? ReduceOpName(*made.reduction) : "gather",
        " of ", made.element_count, " ", DTypeName(made.dtype), ")");
  };
  if (call.reduction != call_.reduction || call.dtype != call_.dtype ||
      call.element_count != call_.element_count || call.name != call_.name) {
    return absl::InvalidArgumentError(absl::StrCat(
        "micro-batches call different collectives: ", NumberOf(0), " calls ",
        to_string(call_), " and ", number, " calls ", to_string(call)));
  }
  const int64_t expected = offsets_[number + 1] - offsets_[number];
  if (value.element_count() == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "micro-batch ", number, " contributes ", value.element_count(),
      " elements to the collective \"", call.name, "\"; expected ", expected));
}

uint8_t* LeafLockstep::ContributionOf(int number) {
  return contributions_.data() + offsets_[number] * SizeOf(call_.dtype);
}

absl::Status LeafLockstep::Complete() {
  contributed_count_ = 0;
  if (options_.before_exchange != nullptr) {
    RETURN_IF_ERROR(options_.before_exchange());
  }
  for (size_t rank = 0; rank < rank_counts_.size(); ++rank) {
    rank_counts_[rank] =
        offsets_[first_of_rank_[rank + 1]] - offsets_[first_of_rank_[rank]];
  }
  const TensorSpan all{call_.dtype, offsets_.back(), contributions_.data()};
  const int own_begin = first_of_rank_[rank_];
  const int own_end = first_of_rank_[rank_ + 1];
  RETURN_IF_ERROR(options_.communicator->AllGather(
      all.Part(offsets_[own_begin], offsets_[own_end]), rank_counts_, all,
      {.name = call_.name, .timeout = options_.timeout}));
  if (call_.reduction.has_value()) {
    for (int i = 0; i < options_.leaves.count; ++i) {
      inputs_[i] = ContributionOf(i);
    }
    Reduce(*call_.reduction, call_.dtype, call_.element_count, inputs_,
           outputs_);
    return absl::OkStatus();
  }
  for (void* const output : outputs_) {
    if (all.size_bytes() > 0) std::memcpy(output, all.data, all.size_bytes());
  }
  return absl::OkStatus();
}

absl::Status LeafLockstep::Leave(int leaf) {
  if (contributed_count_ > 0) {
    return absl::InternalError(
        absl::StrCat("micro-batch ", NumberOf(leaf),
                     " has ended its step, and others call the collective \"",
                     call_.name, "\""));
  }
  PassTurn(leaf);
  return absl::OkStatus();
}

absl::Status LeafLockstep::AwaitTurn(int leaf) {
  const auto may_run = [this, leaf]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return turn_ == leaf || !status_.ok();
  };
  absl::MutexLock lock(&mutex_);
  // Waits without a deadline while the other leaves compute; exchanges have a
  // deadline.
  mutex_.Await(absl::Condition(&may_run));
  return status_;
}

void LeafLockstep::PassTurn(int leaf) {
  absl::MutexLock lock(&mutex_);
  turn_ = (leaf + 1) % own_count();
}

void LeafLockstep::End(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (status_.ok()) status_ = status;
}

}  // namespace muster
