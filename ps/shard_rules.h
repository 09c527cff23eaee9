#ifndef PS_SHARD_RULES_H_
#define PS_SHARD_RULES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/variables/variable_rules.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// The rule that updates each shard of a server, and the memory of the shards
// and their slots. The slots of variables that can have gradients count from
// the start, so that no gradient fails for lack of memory.
//
// Not thread-safe.
class ShardRules {
 public:
  // If `memory_bytes_max` is 0, there is no limit.
  explicit ShardRules(size_t memory_bytes_max)
      : memory_bytes_max_(memory_bytes_max) {}

  // `is_whole` is true if the shard has all rows of the variable.
  //   kUnimplemented      the rule of `variable` cannot update the shard
  //   kResourceExhausted  there is no memory for one more shard of this type
  absl::Status CheckNew(absl::string_view variable, const TensorType& type,
                        bool is_whole) const;
  // Adds a shard of `variable`. No other shard may have the handle.
  void Add(uint32_t handle, absl::string_view variable, const TensorType& type,
           bool is_whole);

  // Returns the rule of a shard that was added; null if it has none yet.
  const std::shared_ptr<const UpdateRule>& Of(uint32_t handle) const {
    return shards_[handle].rule;
  }

  // Sets the rule of `variables`. If `is_default`, also sets the rule of all
  // variables without a rule of their own. Variables need not have shards on
  // this server. After an error nothing has changed.
  //   kUnimplemented       the rule needs whole variables, and a shard has a
  //                        part of one; or a slot has another shape than its
  //                        variable
  //   kFailedPrecondition  a shard has a rule with other slots
  //   kResourceExhausted   there is no memory for the slots
  absl::Status Set(std::shared_ptr<const UpdateRule> rule,
                   absl::Span<const std::string> variables, bool is_default);
  // Lets the variable use the default rule again.
  void Reset(const std::string& variable);
  // Removes all shards and rules.
  void Clear();

  size_t value_bytes() const { return value_bytes_; }
  size_t slot_bytes() const { return slot_bytes_; }

 private:
  struct Shard {
    std::string variable;
    TensorType type;
    std::shared_ptr<const UpdateRule> rule;
    bool is_present = false;
    bool is_whole = true;  // Has all rows of the variable.
  };

  // Returns OK if `rules` fit the existing shards, their slots and the memory.
  absl::Status Check(const VariableRules& rules) const;
  absl::Status CheckBudget(size_t value_bytes, size_t slot_bytes) const;
  void Adopt(VariableRules rules);
  // Returns the size of the slots of all shards under these rules.
  size_t SlotBytes(const VariableRules& rules) const;

  const size_t memory_bytes_max_;
  VariableRules rules_;
  std::vector<Shard> shards_;  // By handle.
  size_t value_bytes_ = 0;
  size_t slot_bytes_ = 0;
};

}  // namespace muster

#endif  // PS_SHARD_RULES_H_
