#ifndef COMMON_COMPUTE_VARIABLES_SESSION_RULES_H_
#define COMMON_COMPUTE_VARIABLES_SESSION_RULES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/variables/variable_rules.h"
#include "common/compute/variables/variable_session.h"

namespace muster {

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

#endif  // COMMON_COMPUTE_VARIABLES_SESSION_RULES_H_
