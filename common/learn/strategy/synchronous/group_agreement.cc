#include "common/learn/strategy/synchronous/group_agreement.h"

#include <utility>
#include <vector>

#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/strategy/synchronous/broadcast_bytes.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/reduce_op.h"

namespace muster {

absl::StatusOr<std::string> GroupAgreement::FromChief(absl::string_view what,
                                                      std::string bytes) const {
  return BroadcastBytes(group_, {.name = what, .timeout = timeout_},
                        std::move(bytes));
}

absl::StatusOr<bool> GroupAgreement::AgreeToStop(bool wants_stop) const {
  if (group_->worker_count() == 1) return wants_stop;
  const ReplicaGroup::Communicators communicators = group_->communicators();
  std::vector<int32_t> flags(communicators.size(), wants_stop ? 1 : 0);
  RETURN_IF_ERROR(group_->Run([&](int replica) {
    return communicators[replica]->AllReduce(
        ReduceOp::kMax, {DType::kInt32, 1, &flags[replica]},
        {.name = "whether training stops", .timeout = timeout_});
  }));
  return flags[0] != 0;
}

}  // namespace muster
