#ifndef PS_SHARD_VARIABLE_H_
#define PS_SHARD_VARIABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/message.h"
#include "proto/parameter_server.pb.h"
#include "ps/frozen_rows.h"

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

  // ---- Saving. Array 0 is the value, and array i slot i - 1.

  // The state as of now, to be read by ReadFrozen(), beside those that were
  // frozen before. No update is under way, and no Prepare().
  struct Frozen {
    std::shared_ptr<FrozenRows> rows;
    std::vector<std::string> slot_names;
    int64_t update_count = 0;
  };
  Frozen Freeze(std::shared_ptr<AsideBudget> budget)
      ABSL_LOCKS_EXCLUDED(slots_mutex_);

  // What has not been read yet will not be. No update is under way.
  void Thaw();

  // Hands the bytes of an array to `sink`, in order, while updates go on. Each
  // array of what Freeze() returned is read once, by one thread.
  //   kResourceExhausted  the budget was spent, or Thaw() was called
  //   others              the sink's
  absl::Status ReadFrozen(
      const Frozen& frozen, int array,
      absl::FunctionRef<absl::Status(absl::Span<const uint8_t> bytes)> sink);

  // ---- Restoring. Nobody trains meanwhile; who reads sees some of both.

  // Makes the slots `names` where no gradient has come yet and no rule says
  // which there are. With a rule, makes those.
  absl::Status PrepareSlots(const UpdateRule* rule,
                            absl::Span<const std::string> names)
      ABSL_LOCKS_EXCLUDED(slots_mutex_);
  std::vector<std::string> slot_names() const ABSL_LOCKS_EXCLUDED(slots_mutex_);

  // Changes bytes of an array, from `offset_bytes` on.
  void Overwrite(int array, int64_t offset_bytes,
                 absl::Span<const uint8_t> bytes);
  // Gives slot array - 1 its initial value.
  void ResetSlot(int array);
  // As before the first gradient. After Thaw().
  void DropSlots() ABSL_LOCKS_EXCLUDED(slots_mutex_);
  // The value is complete, and has seen so many gradients.
  void FinishRestore(int64_t update_count);

 private:
  int64_t StripeRowBegin(int stripe) const;
  int StripeOf(int64_t row) const {
    return static_cast<int>(row / rows_per_stripe_);
  }
  absl::Status MakeSlots(const UpdateRule& rule)
      ABSL_LOCKS_EXCLUDED(slots_mutex_);
  absl::StatusOr<Tensor> MakeSlot(double initial_value) const;
  Tensor& ArrayAt(int array) { return array == 0 ? value_ : slots_[array - 1]; }
  // What `block` has of an array. Blocks are parts of stripes.
  FrozenRows::Block BlockAt(int array, int block);
  // Before an update of these rows of a stripe, for all that are frozen or for
  // one of them. No rows stand for all.
  void PutAside(const PreparedUpdate& update, int stripe, int64_t row_begin,
                int64_t row_end);
  void PutAside(const PreparedUpdate& update, int stripe, int64_t row_begin,
                int64_t row_end, FrozenRows* frozen);
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
  int64_t rows_per_block_;   // Constant after construction.
  int blocks_per_stripe_;    // Constant after construction.

  // Guards the rows of a stripe, in the value and in every slot.
  mutable std::vector<absl::Mutex> stripe_mutexes_;
  Tensor value_;

  mutable absl::Mutex slots_mutex_;
  // Made when the first gradient comes, and the same until DropSlots().
  bool has_slots_ ABSL_GUARDED_BY(slots_mutex_) = false;
  // By slot. Before has_slots_ those that were restored.
  std::vector<SlotSpec> slot_specs_ ABSL_GUARDED_BY(slots_mutex_);
  std::vector<Tensor> slots_;

  // Changes while there is no update.
  // Of whoever saves; some are gone by now.
  std::vector<std::weak_ptr<FrozenRows>> frozen_;

  std::atomic<int64_t> version_{1};
  std::atomic<int64_t> update_count_{0};
};

}  // namespace muster

#endif  // PS_SHARD_VARIABLE_H_
