#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_GROUP_AGREEMENT_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_GROUP_AGREEMENT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/learn/strategy/synchronous/replica_group.h"
#include "common/learn/strategy/worker_agreement.h"

namespace muster {

// The agreement of the workers of a ReplicaGroup, of which worker 0 is the
// chief. FromChief() and AgreeToStop() are collectives if there are several
// workers.
class GroupAgreement final : public WorkerAgreement {
 public:
  // `group` is borrowed. `timeout` bounds the wait for the other workers.
  GroupAgreement(ReplicaGroup* group, absl::Duration timeout,
                 std::optional<uint64_t> shared_seed)
      : group_(group), timeout_(timeout), shared_seed_(shared_seed) {}

  bool is_chief() const override { return group_->worker_index() == 0; }
  std::optional<uint64_t> shared_seed() const override { return shared_seed_; }
  absl::StatusOr<std::string> FromChief(absl::string_view what,
                                        std::string bytes) const override;
  absl::StatusOr<bool> AgreeToStop(bool wants_stop) const override;

  // Returns on how many workers `flag` is true. A collective.
  absl::StatusOr<int> Count(absl::string_view what, bool flag) const;

  // As FromChief(), but returns the bytes of the replica of rank `root`.
  absl::StatusOr<std::string> FromRank(int root, absl::string_view what,
                                       std::string bytes) const;

 private:
  ReplicaGroup* const group_;
  const absl::Duration timeout_;
  const std::optional<uint64_t> shared_seed_;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_GROUP_AGREEMENT_H_
