#include "common/learn/strategy/synchronous/state_sharding.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/net/collectives/tensor_span.h"

namespace muster {

absl::StatusOr<std::unique_ptr<StateSharding>> StateSharding::Create(
    const PackPlan& plan, absl::Span<const TrainedVariable> trained,
    ReplicaVariables* variables, Communicator* communicator,
    absl::Duration timeout) {
  auto sharding = absl::WrapUnique(
      new StateSharding(plan, variables, communicator, timeout));
  RETURN_IF_ERROR(sharding->DivideAll(trained));
  sharding->PlanTransfers(trained);
  return sharding;
}

std::vector<int64_t> StateSharding::PartEnds(int item,
                                             int64_t element_count) const {
  const PackPlan::Place& place = plan_.places[item];
  const int64_t pack_elements = plan_.packs[place.pack].element_count;
  std::vector<int64_t> ends;
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    const int64_t end =
        Communicator::PartOf(pack_elements, rank, communicator_.size()).end;
    ends.push_back(std::clamp<int64_t>(end - place.begin, 0, element_count));
  }
  return ends;
}

absl::Status StateSharding::DivideAll(
    absl::Span<const TrainedVariable> trained) {
  const int rank_count = communicator_.size();
  std::vector<int64_t> loads(rank_count, 0);  // Elements, by rank.
  std::vector<int> whole;                     // Gradients of whole variables.
  shares_.resize(trained.size());
  std::set<std::string> seen;
  for (size_t i = 0; i < trained.size(); ++i) {
    const TrainedVariable& variable = trained[i];
    ASSIGN_OR_RETURN(const ReplicaVariables::Description described,
                     variables_.Describe(variable.name));
    shares_[i] = described.shares;
    const int64_t count = variable.type.shape.element_count();
    const bool stays = shares_[i].is_divided() || variable.takes_rows ||
                       count == 0 || !seen.insert(variable.name).second;
    if (!stays) {
      ASSIGN_OR_RETURN(const bool needs_all,
                       variables_.NeedsWholeVariable(variable.name));
      shares_[i] = {.rank = communicator_.rank(),
                    .has_whole_accumulator = variable.is_limited};
      if (needs_all) {
        whole.push_back(static_cast<int>(i));
        continue;
      }
      shares_[i].ends = PartEnds(static_cast<int>(i), count);
      RETURN_IF_ERROR(variables_.Divide(variable.name, shares_[i]));
    }
    if (!shares_[i].is_divided()) continue;
    for (int rank = 0; rank < rank_count; ++rank) {
      loads[rank] += shares_[i].CountOf(rank);
    }
  }
  // Largest first, each to the rank with the fewest elements.
  std::stable_sort(whole.begin(), whole.end(), [&](int a, int b) {
    return trained[a].type.shape.element_count() >
           trained[b].type.shape.element_count();
  });
  for (const int i : whole) {
    const int64_t count = trained[i].type.shape.element_count();
    const auto owner = std::min_element(loads.begin(), loads.end());
    *owner += count;
    shares_[i].ends.assign(rank_count, 0);
    std::fill(shares_[i].ends.begin() + (owner - loads.begin()),
              shares_[i].ends.end(), count);
    RETURN_IF_ERROR(variables_.Divide(trained[i].name, shares_[i]));
  }
  return absl::OkStatus();
}

void StateSharding::PlanTransfers(absl::Span<const TrainedVariable> trained) {
  scattered_packs_.assign(plan_.packs.size(), false);
  for (size_t i = 0; i < trained.size(); ++i) {
    scattered_packs_[plan_.places[i].pack] = true;
  }
  std::map<int, size_t> transfer_of_pack;
  std::set<std::string> seen;
  for (size_t i = 0; i < trained.size(); ++i) {
    const int item = static_cast<int>(i);
    const int pack = plan_.places[i].pack;
    const bool needs_part =
        shares_[i].is_divided() && !trained[i].is_limited &&
        !trained[i].has_loss_scale &&
        shares_[i].ends ==
            PartEnds(item, trained[i].type.shape.element_count());
    if (!needs_part) scattered_packs_[pack] = false;
    if (!shares_[i].is_divided() || !seen.insert(trained[i].name).second) {
      continue;
    }
    const auto [found, is_new] =
        transfer_of_pack.try_emplace(pack, transfers_.size());
    if (is_new) {
      transfers_.push_back(
          {.counts = std::vector<int64_t>(communicator_.size(), 0)});
    }
    Transfer& transfer = transfers_[found->second];
    transfer.variables.push_back({trained[i].name, shares_[i]});
    for (int rank = 0; rank < communicator_.size(); ++rank) {
      transfer.counts[rank] += shares_[i].CountOf(rank);
    }
  }
  for (const auto& [pack, index] : transfer_of_pack) {
    Transfer& transfer = transfers_[index];
    for (size_t i = trained.size(); i > 0; --i) {
      if (plan_.places[i - 1].pack == pack) {
        transfer.first_item = static_cast<int>(i - 1);
      }
    }
    transfer.call_name =
        absl::StrCat("new values of ", transfer.variables.front().name);
    if (transfer.variables.size() > 1) {
      absl::StrAppend(&transfer.call_name, " and ",
                      transfer.variables.size() - 1, " more");
    }
  }
}

void StateSharding::ConnectPacks(PackExchange* packs) {
  for (Transfer& transfer : transfers_) {
    int64_t count = 0;
    for (const int64_t of_rank : transfer.counts) count += of_rank;
    const int pack = plan_.places[transfer.first_item].pack;
    // The variables are gradients of the pack, which begins with its first
    // gradient, so their values fit before its trailer.
    transfer.memory =
        packs->SumOf(transfer.first_item, {plan_.packs[pack].dtype, {count}});
  }
}

absl::Status StateSharding::ExchangeValues() {
  for (Transfer& transfer : transfers_) RETURN_IF_ERROR(Exchange(transfer));
  return absl::OkStatus();
}

absl::Status StateSharding::Exchange(Transfer& transfer) {
  const int own_rank = communicator_.rank();
  const size_t element_bytes = SizeOf(transfer.memory.dtype());
  uint8_t* const memory = transfer.memory.mutable_raw_data();
  // By rank: the elements before those of the next variable.
  std::vector<int64_t> next(communicator_.size(), 0);
  for (size_t rank = 1; rank < next.size(); ++rank) {
    next[rank] = next[rank - 1] + transfer.counts[rank - 1];
  }
  const int64_t own_begin = next[own_rank];
  uint8_t* own = memory + own_begin * element_bytes;
  for (const Divided& variable : transfer.variables) {
    const size_t size_bytes = variable.shares.CountOf(own_rank) * element_bytes;
    if (size_bytes == 0) continue;
    ASSIGN_OR_RETURN(const Tensor value, variables_.Read(variable.name));
    std::memcpy(
        own,
        value.raw_data() + variable.shares.BeginOf(own_rank) * element_bytes,
        size_bytes);
    own += size_bytes;
  }
  const TensorSpan all = SpanOf(transfer.memory);
  RETURN_IF_ERROR(communicator_.AllGather(
      all.Part(own_begin, own_begin + transfer.counts[own_rank]),
      transfer.counts, all, {.name = transfer.call_name, .timeout = timeout_}));
  std::vector<ElementValues> values;
  for (const Divided& variable : transfer.variables) {
    values.clear();
    for (int rank = 0; rank < communicator_.size(); ++rank) {
      const int64_t count = variable.shares.CountOf(rank);
      if (rank != own_rank && count > 0) {
        values.push_back({.begin = variable.shares.BeginOf(rank),
                          .count = count,
                          .data = memory + next[rank] * element_bytes});
      }
      next[rank] += count;
    }
    if (values.empty()) continue;
    RETURN_IF_ERROR(variables_.AssignElements(variable.name, values));
  }
  return absl::OkStatus();
}

}  // namespace muster
