#include "common/compute/runtime/testing/thread_replicas.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"

namespace muster {
namespace {

double Combine(ReduceOp op, double a, double b) {
  switch (op) {
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    case ReduceOp::kProd:
      return a * b;
    default:
      return a + b;
  }
}

absl::Status Reduce(ReduceOp op, absl::Span<const Tensor> values,
                    Tensor* reduced) {
  Tensor sum(DType::kFloat64, values[0].shape());
  for (const Tensor& value : values) {
    if (value.type() == values[0].type()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("replicas disagree: ", values[0].type().ToString(),
                     " and ", value.type().ToString()));
  }
  for (int64_t i = 0; i < sum.element_count(); ++i) {
    double element = values[0].ElementAsDouble(i);
    for (const Tensor& value : values.subspan(1)) {
      element = Combine(op, element, value.ElementAsDouble(i));
    }
    if (op == ReduceOp::kMean) element /= static_cast<double>(values.size());
    VisitNumber(reduced->dtype(), [&]<typename T>() {
      if constexpr (std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>) {
        reduced->mutable_flat<T>()[i] = T(static_cast<float>(element));
      } else {
        reduced->mutable_flat<T>()[i] = static_cast<T>(element);
      }
    });
  }
  return absl::OkStatus();
}

}  // namespace

class ThreadReplicas::Link : public ReplicaLink {
 public:
  Link(ThreadReplicas* group, int replica, int count)
      : group_(group), replica_(replica), count_(count) {}

  int replica_id() const override { return replica_; }
  int replica_count() const override { return count_; }

  absl::Status AllReduce(ReduceOp op, Tensor* value,
                         absl::string_view) override {
    return group_->Exchange(
        replica_, value->Clone(),
        [&](absl::Span<const Tensor> all) { return Reduce(op, all, value); });
  }

  absl::Status AllGather(const Tensor& value,
                         absl::Span<const int64_t> element_counts,
                         Tensor* gathered, absl::string_view) override {
    MUSTER_CHECK(element_counts[replica_] == value.element_count());
    return group_->Exchange(replica_, value, [&](absl::Span<const Tensor> all) {
      uint8_t* to = gathered->mutable_raw_data();
      for (int r = 0; r < count_; ++r) {
        MUSTER_CHECK(element_counts[r] == all[r].element_count());
        if (all[r].size_bytes() == 0) continue;
        std::memcpy(to, all[r].raw_data(), all[r].size_bytes());
        to += all[r].size_bytes();
      }
      return absl::OkStatus();
    });
  }

 private:
  ThreadReplicas* const group_;
  const int replica_;
  const int count_;
};

ThreadReplicas::ThreadReplicas(int count) : values_(count), phases_(count) {
  for (int r = 0; r < count; ++r) {
    links_.push_back(std::make_unique<Link>(this, r, count));
  }
}

ThreadReplicas::~ThreadReplicas() = default;

ReplicaLink* ThreadReplicas::link(int replica) const {
  return links_[replica].get();
}

absl::Status ThreadReplicas::Exchange(
    int replica, const Tensor& value,
    absl::FunctionRef<absl::Status(absl::Span<const Tensor>)> read) {
  absl::MutexLock lock(&mutex_);
  values_[replica] = value;
  RETURN_IF_ERROR(WaitForAll(replica, ++phases_[replica]));
  absl::Status status = read(values_);
  RETURN_IF_ERROR(WaitForAll(replica, ++phases_[replica]));
  return status;
}

bool ThreadReplicas::AllAre(int phase) const {
  return std::all_of(phases_.begin(), phases_.end(),
                     [phase](int other) { return other >= phase; });
}

absl::Status ThreadReplicas::WaitForAll(int replica, int phase) {
  const auto all_are_here = [this, phase] {
    mutex_.AssertReaderHeld();
    return AllAre(phase);
  };
  if (mutex_.AwaitWithTimeout(absl::Condition(&all_are_here),
                              absl::Minutes(1))) {
    return absl::OkStatus();
  }
  std::string missing;
  for (size_t r = 0; r < phases_.size(); ++r) {
    if (phases_[r] < phase) absl::StrAppend(&missing, " ", r);
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "replica ", replica, " has waited a minute for replicas", missing));
}

}  // namespace muster
