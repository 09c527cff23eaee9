#ifndef COMMON_LEARN_STRATEGY_VARIABLE_OWNERS_H_
#define COMMON_LEARN_STRATEGY_VARIABLE_OWNERS_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace muster {

// Which objects the variables of a strategy belong to. Variables are known by
// name, and two models may name their layers alike: without owners, one would
// continue with the weights of the other.
//
// Thread-safe.
class VariableOwners {
 public:
  enum class Claim {
    kNew,        // The variable had no owner.
    kRepeated,   // `owner` has it already.
    kInherited,  // Its owner is gone. The variable has that one's state.
  };

  // Makes `owner`, which is not null, the owner of the variable. Does not
  // extend its life.
  //   kAlreadyExists  the variable has another owner
  absl::StatusOr<Claim> Take(absl::string_view variable,
                             const std::shared_ptr<const void>& owner)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::weak_ptr<const void>> owners_
      ABSL_GUARDED_BY(mutex_);  // By variable.
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_VARIABLE_OWNERS_H_
