#include "common/variables/variable_store.h"

#include <utility>

#include "common/base/status_macros.h"

namespace muster {
namespace {

class LateSnapshot final : public VariableSnapshot {
 public:
  LateSnapshot(VariableStore* store, std::vector<Entry> entries)
      : store_(store), entries_(std::move(entries)) {}

  const std::vector<Entry>& entries() const override { return entries_; }

  absl::Status WriteShards(Disk*, absl::string_view prefix,
                           int shard_count) override {
    return store_->SaveShards(prefix, shard_count);
  }

 private:
  VariableStore* const store_;
  const std::vector<Entry> entries_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<VariableSnapshot>>
VariableStore::TakeSnapshot() {
  std::vector<VariableSnapshot::Entry> entries;
  for (const proto::VariableSpec& spec : List()) {
    ASSIGN_OR_RETURN(const int64_t update_count, UpdateCount(spec.name()));
    entries.push_back({.variable = spec.name(), .update_count = update_count});
  }
  return std::make_unique<LateSnapshot>(this, std::move(entries));
}

}  // namespace muster
