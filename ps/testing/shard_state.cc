#include "ps/testing/shard_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "common/core/base/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "proto/parameter_server.pb.h"

namespace muster {

std::vector<std::string> StateOf(ParameterShard& shard) {
  const auto state =
      shard.FreezeForRecords([](int64_t) { return absl::OkStatus(); });
  EXPECT_OK(state.status());
  if (!state.ok()) return {};
  std::vector<std::string> parts;
  std::vector<std::pair<uint64_t, uint32_t>> pushes;
  for (const PushId& push : state->pushes) {
    pushes.emplace_back(push.step_id, push.exchange_index);
  }
  std::sort(pushes.begin(), pushes.end());
  std::string ledger = absl::StrCat("mark ", state->low_water_mark, ":");
  for (const auto& [step_id, index] : pushes) {
    absl::StrAppend(&ledger, " ", step_id, "/", index);
  }
  parts.push_back(std::move(ledger));
  parts.push_back(absl::StrCat("generation ", state->generation, ", ",
                               state->update_count, " updates, ",
                               state->handle_count, " handles"));
  for (const proto::SetOptimizerRequest& request : state->optimizers.list()) {
    parts.push_back(request.ShortDebugString());
  }
  for (const FrozenShard::Variable& entry : state->frozen->variables) {
    const ShardVariable::Frozen& frozen = entry.frozen;
    parts.push_back(absl::StrCat(
        entry.variable->spec().ShortDebugString(), " handle ",
        entry.variable->handle(), " version ", frozen.version, " count ",
        frozen.update_count, frozen.has_slots ? " slots " : " stored slots ",
        absl::StrJoin(frozen.slot_names, ",")));
    for (int array = 0; array < frozen.rows->array_count(); ++array) {
      std::string bytes;
      EXPECT_OK(entry.variable->ReadFrozen(
          frozen, array, [&](absl::Span<const uint8_t> piece) {
            bytes.append(reinterpret_cast<const char*>(piece.data()),
                         piece.size());
            return absl::OkStatus();
          }));
      parts.push_back(std::move(bytes));
    }
  }
  return parts;
}

}  // namespace muster
