#include "common/io/checkpoint/bundle_files.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace muster {
namespace {

// Removes "-00000-of-00002" from the end of `name`.
bool ConsumeShardSuffix(absl::string_view* name) {
  constexpr absl::string_view kPattern = "-ddddd-of-ddddd";
  if (name->size() < kPattern.size()) return false;
  const absl::string_view suffix = name->substr(name->size() - kPattern.size());
  for (size_t i = 0; i < kPattern.size(); ++i) {
    const bool fits = kPattern[i] == 'd' ? absl::ascii_isdigit(suffix[i])
                                         : suffix[i] == kPattern[i];
    if (!fits) return false;
  }
  name->remove_suffix(kPattern.size());
  return true;
}

}  // namespace

std::string BundleIndexPath(absl::string_view prefix) {
  return absl::StrFormat("%s.index", prefix);
}

std::string BundleDataPath(absl::string_view prefix, int shard_index,
                           int shard_count) {
  return absl::StrFormat("%s.data-%05d-of-%05d", prefix, shard_index,
                         shard_count);
}

std::string PartIndexPath(absl::string_view prefix, int shard_index,
                          int shard_count) {
  return absl::StrFormat("%s.part-%05d-of-%05d.index", prefix, shard_index,
                         shard_count);
}

std::string PartDataPath(absl::string_view prefix, int shard_index,
                         int shard_count) {
  return absl::StrFormat("%s.part-%05d-of-%05d.data", prefix, shard_index,
                         shard_count);
}

BundleFileName ParseBundleFileName(absl::string_view name) {
  using Kind = BundleFileName::Kind;
  if (absl::ConsumeSuffix(&name, ".tmp")) {
    // Only indexes are replaced atomically.
    if (!absl::ConsumeSuffix(&name, ".index")) return {};
    return {.kind = Kind::kTemporary, .prefix = name};
  }
  absl::string_view part = name;
  if ((absl::ConsumeSuffix(&part, ".index") ||
       absl::ConsumeSuffix(&part, ".data")) &&
      ConsumeShardSuffix(&part) && absl::ConsumeSuffix(&part, ".part")) {
    return {.kind = Kind::kPart, .prefix = part};
  }
  if (absl::ConsumeSuffix(&name, ".index")) {
    return {.kind = Kind::kIndex, .prefix = name};
  }
  if (ConsumeShardSuffix(&name) && absl::ConsumeSuffix(&name, ".data")) {
    return {.kind = Kind::kData, .prefix = name};
  }
  return {};
}

}  // namespace muster
