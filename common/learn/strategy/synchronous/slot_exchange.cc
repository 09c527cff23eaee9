#include "common/learn/strategy/synchronous/slot_exchange.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "common/compute/variables/element_shares.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/net/collectives/tensor_span.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

// A slot without its elements, as one rank describes it to the others.
struct SlotHead {
  std::string name;
  bool is_share = false;
  Shape shape;
};

// Returns the form that is broadcast: "momentum whole 3,4".
std::string EntryOf(const VariableState::Slot& slot) {
  return absl::StrCat(slot.name, " ", slot.is_share ? "share" : "whole", " ",
                      absl::StrJoin(slot.value.shape().dims(), ","));
}

absl::StatusOr<SlotHead> HeadOf(absl::string_view entry) {
  const std::vector<absl::string_view> parts = absl::StrSplit(entry, ' ');
  std::vector<int64_t> extents;
  bool is_valid = parts.size() == 3;
  if (is_valid) {
    for (const absl::string_view text :
         absl::StrSplit(parts[2], ',', absl::SkipEmpty())) {
      is_valid &= absl::SimpleAtoi(text, &extents.emplace_back());
    }
  }
  if (!is_valid) {
    return absl::InternalError(
        absl::StrCat("another replica sent the slot \"", entry, "\""));
  }
  ASSIGN_OR_RETURN(Shape shape,
                   Shape::Create(extents, /*allow_unknown=*/false));
  return SlotHead{.name = std::string(parts[0]),
                  .is_share = parts[1] == "share",
                  .shape = std::move(shape)};
}

// Returns the heads of the slots of rank `root`.
absl::StatusOr<std::vector<SlotHead>> BroadcastHeads(
    const std::vector<VariableState::Slot>& own, int root,
    Communicator& communicator, const CollectiveCall& call) {
  std::vector<std::string> entries;
  for (const VariableState::Slot& slot : own) entries.push_back(EntryOf(slot));
  std::string text = absl::StrJoin(entries, "\n");
  int64_t size = static_cast<int64_t>(text.size());
  RETURN_IF_ERROR(
      communicator.Broadcast({DType::kInt64, 1, &size}, root, call));
  text.resize(size);
  RETURN_IF_ERROR(
      communicator.Broadcast({DType::kUint8, size, text.data()}, root, call));
  std::vector<SlotHead> heads;
  for (const absl::string_view entry :
       absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    ASSIGN_OR_RETURN(heads.emplace_back(), HeadOf(entry));
  }
  return heads;
}

absl::StatusOr<Tensor> FindSlot(const std::vector<VariableState::Slot>& slots,
                                const SlotHead& head,
                                absl::string_view variable) {
  const auto found = std::find_if(
      slots.begin(), slots.end(),
      [&](const VariableState::Slot& slot) { return slot.name == head.name; });
  if (found != slots.end()) return found->value;
  return absl::InternalError(absl::StrCat("variable \"", variable,
                                          "\": this replica has no slot \"",
                                          head.name, "\", and others have"));
}

}  // namespace

absl::Status BroadcastValue(const ReplicaVariables::Description& variable,
                            int root, Communicator& communicator,
                            absl::Duration timeout, VariableState* state) {
  const CollectiveCall call{.name = variable.spec->name(), .timeout = timeout};
  RETURN_IF_ERROR(communicator.Broadcast(
      {DType::kInt64, 1, &state->update_count}, root, call));
  // Clones, because the state may share its memory with the variable.
  state->value = state->value.Clone();
  return communicator.Broadcast(SpanOf(state->value), root, call);
}

absl::Status BroadcastState(const ReplicaVariables::Description& variable,
                            int root, Communicator& communicator,
                            absl::Duration timeout, VariableState* state) {
  RETURN_IF_ERROR(BroadcastValue(variable, root, communicator, timeout, state));
  const bool is_root = communicator.rank() == root;
  const CollectiveCall call{.name = variable.spec->name(), .timeout = timeout};
  ASSIGN_OR_RETURN(const std::vector<SlotHead> heads,
                   BroadcastHeads(state->slots, root, communicator, call));
  std::vector<VariableState::Slot> wanted;
  for (size_t i = 0; i < heads.size(); ++i) {
    VariableState::Slot slot{
        heads[i].name, is_root ? state->slots[i].value.Clone()
                               : Tensor(variable.type.dtype, heads[i].shape)};
    RETURN_IF_ERROR(communicator.Broadcast(SpanOf(slot.value), root, call));
    wanted.push_back(std::move(slot));
  }
  state->slots = std::move(wanted);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<VariableState::Slot>> GatherSlots(
    const ReplicaVariables::Description& variable,
    const std::vector<VariableState::Slot>& own, absl::string_view only,
    bool keeps_values, Communicator& communicator, absl::Duration timeout) {
  const std::string& name = variable.spec->name();
  const CollectiveCall call{.name = name, .timeout = timeout};
  const ElementShares& shares = variable.shares;
  const int owner = shares.FirstOwner();
  ASSIGN_OR_RETURN(const std::vector<SlotHead> heads,
                   BroadcastHeads(own, owner, communicator, call));
  std::vector<int64_t> counts;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    counts.push_back(shares.CountOf(rank));
  }
  std::vector<VariableState::Slot> gathered;
  for (const SlotHead& head : heads) {
    if (!only.empty() && head.name != only) continue;
    ASSIGN_OR_RETURN(const Tensor part, FindSlot(own, head, name));
    Tensor whole(variable.type.dtype,
                 head.is_share ? variable.type.shape : head.shape);
    if (head.is_share) {
      // A collective that only reads takes no const span.
      Tensor input = part;
      RETURN_IF_ERROR(
          communicator.AllGather(SpanOf(input), counts, SpanOf(whole), call));
    } else {
      if (communicator.rank() == owner) whole = part.Clone();
      RETURN_IF_ERROR(communicator.Broadcast(SpanOf(whole), owner, call));
    }
    gathered.push_back({head.name, keeps_values ? std::move(whole) : Tensor()});
  }
  return gathered;
}

}  // namespace muster
