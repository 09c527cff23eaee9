#ifndef COMMON_NET_COLLECTIVES_MESSAGE_TRANSFER_PLAN_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_TRANSFER_PLAN_H_

#include <cstdint>
#include <vector>

#include "common/net/collectives/schedule.h"

namespace muster {

// A schedule made ready to run: which transfer may continue when. A transfer
// moves in *segments*, the units in which it is sent, and one segment can be
// passed on while the next is still arriving. Pure.
struct TransferPlan {
  // Up to `end`, the values of receive `receive` are needed.
  struct Need {
    int receive = 0;  // Into `receives`.
    Communicator::Range range;
  };
  struct Step {
    Transfer transfer;
    uint32_t step = 0;
    // The last receives, of earlier steps or before this one in its own, that
    // make the values this transfer starts from.
    std::vector<Need> needs;
  };

  std::vector<Step> sends;
  std::vector<Step> receives;
  // The transfers over each lane, in order: indices into the above.
  std::vector<std::vector<int>> sends_to;
  std::vector<std::vector<int>> receives_from;

  // Elements of a segment; every rank of the group has the same.
  int64_t segment_elements = 1;
};

TransferPlan MakeTransferPlan(const Schedule& schedule, int size,
                              int64_t segment_elements);

// How far the values have to have come for `segment` of a transfer to be
// allowed, given that `receive` is one of the needed ones.
inline int64_t NeededEnd(const TransferPlan::Need& need, int64_t segment_end) {
  return segment_end < need.range.end ? segment_end : need.range.end;
}

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_TRANSFER_PLAN_H_
