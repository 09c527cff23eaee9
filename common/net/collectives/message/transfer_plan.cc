#include "common/net/collectives/message/transfer_plan.h"

#include <algorithm>

namespace muster {
namespace {

using Range = Communicator::Range;

// Returns `ranges` without the elements of `removed`.
std::vector<Range> Without(const std::vector<Range>& ranges, Range removed) {
  std::vector<Range> left;
  for (const Range& range : ranges) {
    const Range before{range.begin, std::min(range.end, removed.begin)};
    const Range after{std::max(range.begin, removed.end), range.end};
    if (before.begin < before.end) left.push_back(before);
    if (after.begin < after.end) left.push_back(after);
  }
  return left;
}

// Returns those of the first `receive_count` receives on which a transfer of
// `range` depends. The search goes backwards and stops when all of `range` is
// covered: earlier receives of the same elements are dependencies of the
// receives that were found.
std::vector<TransferPlan::Need> FindNeeds(const TransferPlan& plan,
                                          int receive_count, Range range) {
  std::vector<TransferPlan::Need> needs;
  std::vector<Range> open = {range};
  for (int i = receive_count - 1; i >= 0 && !open.empty(); --i) {
    const Range earlier = plan.receives[i].transfer.range;
    const Range overlap{std::max(range.begin, earlier.begin),
                        std::min(range.end, earlier.end)};
    if (overlap.begin >= overlap.end) continue;
    std::vector<Range> left = Without(open, overlap);
    const bool covers_more =
        left.size() != open.size() ||
        !std::equal(left.begin(), left.end(), open.begin(),
                    [](const Range& a, const Range& b) {
                      return a.begin == b.begin && a.end == b.end;
                    });
    if (!covers_more) continue;
    open = std::move(left);
    needs.push_back({i, overlap});
  }
  return needs;
}

// Returns all earlier receives. A transfer without elements, as in a barrier,
// depends on all of them.
std::vector<TransferPlan::Need> AllBefore(const TransferPlan& plan,
                                          int receive_count) {
  std::vector<TransferPlan::Need> needs;
  for (int i = 0; i < receive_count; ++i) {
    needs.push_back({i, plan.receives[i].transfer.range});
  }
  return needs;
}

bool IsEmpty(Range range) { return range.begin >= range.end; }

}  // namespace

TransferPlan MakeTransferPlan(const Schedule& schedule, int size,
                              int64_t segment_elements) {
  TransferPlan plan;
  plan.segment_elements = segment_elements;
  plan.sends_to.resize(size);
  plan.receives_from.resize(size);
  for (size_t step = 0; step < schedule.size(); ++step) {
    const int receive_count = static_cast<int>(plan.receives.size());
    for (const Transfer& send : schedule[step].sends) {
      plan.sends_to[send.peer].push_back(static_cast<int>(plan.sends.size()));
      plan.sends.push_back({send, static_cast<uint32_t>(step),
                            IsEmpty(send.range)
                                ? AllBefore(plan, receive_count)
                                : FindNeeds(plan, receive_count, send.range)});
    }
    for (const Transfer& receive : schedule[step].receives) {
      const int index = static_cast<int>(plan.receives.size());
      plan.receives_from[receive.peer].push_back(index);
      plan.receives.push_back({receive, static_cast<uint32_t>(step),
                               FindNeeds(plan, index, receive.range)});
    }
  }
  return plan;
}

}  // namespace muster
