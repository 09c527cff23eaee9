#ifndef COMMON_NET_COLLECTIVES_MESSAGE_TRANSFER_PLAN_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_TRANSFER_PLAN_H_

#include <cstdint>
#include <vector>

#include "common/net/collectives/schedule.h"

namespace muster {

// A schedule with the dependencies between its transfers. A transfer is sent in
// *segments*, and one segment can be forwarded while the next is still
// arriving. Pure.
struct TransferPlan {
  // A dependency on the elements `range` of a receive.
  struct Need {
    int receive = 0;  // Index into `receives`.
    Communicator::Range range;
  };
  struct Step {
    Transfer transfer;
    uint32_t step = 0;
    // The receives, of earlier steps or earlier in the same step, that produce
    // the values with which this transfer starts.
    std::vector<Need> needs;
  };

  std::vector<Step> sends;
  std::vector<Step> receives;
  // The transfers over each lane, in order: indices into `sends` and
  // `receives`.
  std::vector<std::vector<int>> sends_to;
  std::vector<std::vector<int>> receives_from;

  // Elements per segment. Equal on every rank of the group.
  int64_t segment_elements = 1;
};

TransferPlan MakeTransferPlan(const Schedule& schedule, int size,
                              int64_t segment_elements);

// Returns up to which element the receive of `need` must have arrived before
// the segment of a transfer that ends at `segment_end` may start.
inline int64_t NeededEnd(const TransferPlan::Need& need, int64_t segment_end) {
  return segment_end < need.range.end ? segment_end : need.range.end;
}

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_TRANSFER_PLAN_H_
