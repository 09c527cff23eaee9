#ifndef COMMON_COMPUTE_VARIABLES_VARIABLE_RULES_H_
#define COMMON_COMPUTE_VARIABLES_VARIABLE_RULES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/variables/variable_session.h"

namespace muster {

// Which rule updates which variable of a store: a default, and rules of
// individual variables. A value: a change does not affect earlier copies. A
// copy costs one pointer. Not thread-safe.
class VariableRules {
 public:
  // Sets the rule of the variables that have no individual one.
  //   kFailedPrecondition  the default is a rule of another name
  absl::Status SetDefault(std::shared_ptr<const UpdateRule> rule);

  // Changes nothing unless all of `variables` can use this rule.
  //   kFailedPrecondition  a variable has a rule of another name, whose slots
  //                        this one cannot use
  absl::Status Set(absl::Span<const std::string> variables,
                   std::shared_ptr<const UpdateRule> rule);

  // Makes the variables use the default again.
  void Reset(absl::Span<const std::string> variables);

  // Returns null if there is none.
  const std::shared_ptr<const UpdateRule>& Of(absl::string_view variable) const;

  // Returns true if one is a copy of the other and neither has changed since.
  bool IsCopyOf(const VariableRules& other) const {
    return rules_ == other.rules_;
  }

 private:
  struct Rules {
    std::shared_ptr<const UpdateRule> default_rule;
    absl::flat_hash_map<std::string, std::shared_ptr<const UpdateRule>>
        by_variable;
  };

  // Shared with copies, so it is replaced and never changed.
  std::shared_ptr<const Rules> rules_ = std::make_shared<Rules>();
};

// The rules of a session's variables, by index. Not thread-safe.
class SessionRules {
 public:
  explicit SessionRules(absl::Span<const VariableUse> uses);

  // Takes the rules of the session's variables from `all`. Does nothing if
  // `all` has not changed since the last call.
  void Update(const VariableRules& all);

  // Returns null if the variable has no rule.
  const std::shared_ptr<const UpdateRule>& operator[](int variable) const {
    return rules_[variable];
  }

 private:
  std::vector<std::string> variables_;
  std::vector<std::shared_ptr<const UpdateRule>> rules_;  // By variable.
  VariableRules all_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_VARIABLE_RULES_H_
