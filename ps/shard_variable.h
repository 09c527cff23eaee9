#ifndef PS_SHARD_VARIABLE_H_
#define PS_SHARD_VARIABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/optimizers/update_rule.h"
#include "common/rpc/message.h"
#include "common/tensor/tensor.h"
#include "proto/parameter_server.pb.h"

namespace muster {

class ShardVariable;

// One update, checked and ready to be applied without a further question.
struct PreparedUpdate {
  ShardVariable* variable = nullptr;
  proto::UpdateKind kind = proto::ASSIGN;
  // The new value or gradient; for the sparse kinds one row for each of `rows`.
  ReceivedTensor value;
  // Sparse kinds only. Rising; without repeats for gradients.
  std::vector<int64_t> rows;
  // Gradients only. The step is set by Begin().
  std::shared_ptr<const UpdateRule> rule;
  int64_t rule_step = 0;
};

// One shard of one variable, with its optimizer slots.
//
// A *stripe* is a run of rows under a lock of its own. An update is applied
// stripe by stripe, so that several pushes work their way through one large
// variable side by side. A value that is read meanwhile may hold some stripes
// from before an update and some from after it, never a torn stripe.
//
// Thread-safe.
class ShardVariable {
 public:
  // `value` has the type of the shard's rows.
  ShardVariable(proto::ShardSpec spec, uint32_t handle, Tensor value);

  const proto::ShardSpec& spec() const { return spec_; }
  uint32_t handle() const { return handle_; }
  const TensorType& type() const { return type_; }
  int64_t row_count() const { return row_count_; }
  int64_t row_elements() const { return row_elements_; }
  size_t size_bytes() const { return value_.size_bytes(); }

  // Rises with every update. A copy made after version() was read holds at
  // least all updates up to it.
  int64_t version() const { return version_.load(std::memory_order_acquire); }
  // How many gradients it has taken.
  int64_t update_count() const {
    return update_count_.load(std::memory_order_relaxed);
  }

  // Checks an update against this variable, puts its rows in order, and makes
  // the slots for a first gradient. `indices` is null for the dense kinds.
  //   kInvalidArgument     the value's type or an index does not fit
  //   kFailedPrecondition  a gradient, and there is no rule to apply it
  //   kResourceExhausted   no memory for slots
  absl::StatusOr<PreparedUpdate> Prepare(proto::UpdateKind kind,
                                         const ReceivedTensor& value,
                                         const ReceivedTensor* indices,
                                         std::shared_ptr<const UpdateRule> rule)
      ABSL_LOCKS_EXCLUDED(slots_mutex_);

  // Row numbers of a gather or a sparse update.
  //   kInvalidArgument  not int64[n], or a row does not exist
  absl::StatusOr<std::vector<int64_t>> CheckRows(
      const ReceivedTensor& indices) const;

  // An update is Begin(), then ApplyStripe() for every stripe in any order and
  // by any thread, then End(). Updates of one push to the same variable come
  // one after another.
  void Begin(PreparedUpdate* update);
  void ApplyStripe(const PreparedUpdate& update, int stripe);
  void End() { version_.fetch_add(1, std::memory_order_release); }

  int stripe_count() const { return stripe_count_; }
  // Bytes that one stripe touches, to weigh work.
  size_t stripe_bytes() const {
    return size_bytes() / static_cast<size_t>(stripe_count_);
  }

  // Copies the stripe to its place in `value`, which is as large as this.
  void CopyStripe(int stripe, uint8_t* value) const;

  // Copies rows[begin, end) to `out`, one after another.
  void GatherRows(absl::Span<const int64_t> rows, uint8_t* out) const
      ABSL_NO_THREAD_SAFETY_ANALYSIS;  // Holds one stripe of many at a time.

 private:
  int64_t StripeRowBegin(int stripe) const;
  int StripeOf(int64_t row) const {
    return static_cast<int>(row / rows_per_stripe_);
  }
  absl::Status MakeSlots(const UpdateRule& rule)
      ABSL_LOCKS_EXCLUDED(slots_mutex_);
  void ApplyDense(const PreparedUpdate& update, int64_t begin, int64_t end);
  void ApplySparse(const PreparedUpdate& update, int64_t row_begin,
                   int64_t row_end);
  absl::Status Mismatch(const TensorType& expected,
                        const TensorType& came) const;

  const proto::ShardSpec spec_;
  const uint32_t handle_;
  const TensorType type_;
  const int64_t row_count_;
  const int64_t row_elements_;
  int64_t rows_per_stripe_;  // Constant after construction.
  int stripe_count_;         // Constant after construction.

  // Guards the rows of a stripe, in the value and in every slot.
  mutable std::vector<absl::Mutex> stripe_mutexes_;
  Tensor value_;

  absl::Mutex slots_mutex_;
  // Made when the first gradient comes, and the same from then on.
  bool has_slots_ ABSL_GUARDED_BY(slots_mutex_) = false;
  std::vector<Tensor> slots_;

  std::atomic<int64_t> version_{1};
  std::atomic<int64_t> update_count_{0};
};

}  // namespace muster

#endif  // PS_SHARD_VARIABLE_H_
