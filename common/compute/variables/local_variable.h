#ifndef COMMON_COMPUTE_VARIABLES_LOCAL_VARIABLE_H_
#define COMMON_COMPUTE_VARIABLES_LOCAL_VARIABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/variables/element_shares.h"
#include "common/compute/variables/row_sums.h"
#include "common/compute/variables/variable_session.h"
#include "common/compute/variables/variable_state.h"
#include "common/core/tensor/tensor.h"

namespace muster {

namespace proto {
class VariableSpec;
}  // namespace proto

// One variable in this process, with its optimizer state.
//
// A returned value never changes: an update writes in place if no other tensor
// holds the value, and otherwise writes a copy. The variable then alternates
// between two buffers, so a reader that releases its value before the next
// update causes no allocation.
//
// Thread-safe. Every call is atomic.
class LocalVariable {
 public:
  using Slot = VariableState::Slot;

  //   kInvalidArgument  the spec is invalid
  static absl::StatusOr<std::unique_ptr<LocalVariable>> Create(
      const proto::VariableSpec& spec);
  ~LocalVariable();

  const proto::VariableSpec& spec() const { return *spec_; }
  const TensorType& type() const { return type_; }

  Tensor Read() const ABSL_LOCKS_EXCLUDED(mutex_);

  //   kInvalidArgument  `value` has another type
  absl::Status Assign(const Tensor& value) ABSL_LOCKS_EXCLUDED(mutex_);

  // As VariableSession::Gather().
  absl::Status Gather(const Tensor& indices, Tensor* rows) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // As VariableSession::Update(). Applies all or, on an error, nothing. `rule`
  // is null when there is no optimizer. `row_sums` is working memory.
  //   kInvalidArgument     types do not fit, also those of restored slots, or
  //                        an index is out of range
  //   kFailedPrecondition  the update is a gradient and there is no optimizer,
  //                        or one that the shares of the variable do not suit
  //   kUnimplemented       the variable is divided, and the update is a
  //                        gradient of rows
  absl::Status Update(UpdateKind kind, const Tensor& value,
                      const Tensor& indices,
                      const std::shared_ptr<const UpdateRule>& rule,
                      RowSums* row_sums) ABSL_LOCKS_EXCLUDED(mutex_);

  // As VariableSession::Accumulate() and ApplyMean(). `rule` is not null.
  absl::StatusOr<Tensor> Accumulate(
      UpdateKind kind, const Tensor& gradient, const Tensor& indices,
      const std::shared_ptr<const UpdateRule>& rule, RowSums* row_sums)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ApplyMean(const Tensor& mean,
                         const std::shared_ptr<const UpdateRule>& rule)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Divides the variable. Gradients then change the elements of this rank only,
  // and slots, also those that exist or are restored later, are reduced to
  // them. Update counts are those of the whole variable.
  //   kInvalidArgument     the shares do not fit the variable, or divide one
  //                        with a constraint within its elements
  //   kFailedPrecondition  the variable is divided in another way
  absl::Status Divide(ElementShares shares) ABSL_LOCKS_EXCLUDED(mutex_);
  ElementShares shares() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets elements, atomically. The values have the dtype of the variable.
  //   kInvalidArgument  there are no such elements
  absl::Status AssignElements(absl::Span<const ElementValues> values)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Number of gradients taken so far.
  int64_t update_count() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The slots created so far; they share memory with the variable as Read()
  // does.
  std::vector<Slot> ReadSlots() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The state as of one moment; shares memory as Read() does.
  VariableState ReadState() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Replaces value, slots and count atomically. Slots may cover the whole
  // variable or this rank's share.
  //   kInvalidArgument  the value has another type, a slot has another dtype or
  //                     size, or the count is negative
  absl::Status Restore(VariableState state) ABSL_LOCKS_EXCLUDED(mutex_);

  // As above, but keeps the value.
  //   kInvalidArgument  a slot has another dtype, or the count is negative
  absl::Status Restore(int64_t update_count, std::vector<Slot> slots)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  LocalVariable(std::unique_ptr<const proto::VariableSpec> spec,
                TensorType type, Tensor value);

  int64_t row_count() const;
  int64_t row_elements() const;
  absl::Status CheckIndices(const Tensor& indices) const;
  absl::Status CheckState(int64_t update_count,
                          const std::vector<Slot>& slots) const;
  absl::Status Error(absl::string_view message) const;

  // This rank's elements: all, unless the variable is divided.
  struct Own {
    int64_t begin = 0;
    int64_t count = 0;
    bool is_partial = false;  // Not all elements.
    bool has_whole_accumulator = false;

    // True if a slot of the rule covers these elements only.
    bool IsShare(absl::string_view slot) const;
    // Returns a copy of these elements of a tensor of the variable's shape.
    Tensor Of(const Tensor& whole) const;
    // Returns the first value of a slot.
    Tensor MakeSlot(const SlotSpec& slot, const Tensor& variable) const;
  };

  // Reduces slots to this rank's elements.
  //   kInvalidArgument  a slot is of another share
  absl::Status ReduceToShare(std::vector<Slot>* slots) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status CheckRule(const UpdateRule& rule) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status CheckNoRows(UpdateKind kind) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Adds a dense gradient to the elements of `sum`, of the variable's shape,
  // that are not this rank's.
  void AddOtherElements(const Tensor& gradient, Tensor* sum) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  // Makes this variable the only owner of value_, with or without its content.
  void MakeWritable(bool keep_content) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  //   kInvalidArgument  a restored slot has not the shape that `rule` needs
  absl::Status MakeSlots(const std::shared_ptr<const UpdateRule>& rule)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Applies a gradient whose type and indices have been checked. `row_sums`
  // holds the rows of a sparse gradient; null for a dense one.
  void TakeGradient(const Tensor& gradient, const RowSums* row_sums)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Applies the variable's constraint, if it has one.
  void Constrain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the mean of the accumulated gradients and counts them as applied.
  Tensor TakeMean() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns a dense gradient of the whole variable.
  Tensor Dense(const RowSums& row_sums) const;
  template <typename T>
  void ApplyGradient(const UpdateRule& rule, const Tensor& gradient)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename T>
  void ApplySparseGradient(const UpdateRule& rule, const RowSums& row_sums)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename T>
  void ApplyMeanOf(const UpdateRule& rule, const Tensor& mean)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename T>
  void SlotPointers(T** pointers) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<const proto::VariableSpec> spec_;
  const TensorType type_;

  mutable absl::Mutex mutex_;
  Tensor value_ ABSL_GUARDED_BY(mutex_);
  Tensor spare_ ABSL_GUARDED_BY(mutex_);  // The previous value, or invalid.
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mutex_);
  // The rule that the first slots of slots_ belong to, and UpdateRuleFor() of
  // that rule and this variable.
  std::shared_ptr<const UpdateRule> slots_rule_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const UpdateRule> own_rule_ ABSL_GUARDED_BY(mutex_);
  int64_t update_count_ ABSL_GUARDED_BY(mutex_) = 0;
  ElementShares shares_ ABSL_GUARDED_BY(mutex_);
  Own own_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_LOCAL_VARIABLE_H_
