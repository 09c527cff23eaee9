#include "common/core/base/did_you_mean.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// Longer names are data, not typing errors.
constexpr size_t kNameLengthMax = 64;

// Insertions, deletions, substitutions and transpositions of adjacent letters.
int EditDistance(absl::string_view a, absl::string_view b) {
  const size_t columns = b.size() + 1;
  std::vector<int> cost((a.size() + 1) * columns);
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      int& here = cost[i * columns + j];
      if (i == 0 || j == 0) {
        here = static_cast<int>(i + j);
        continue;
      }
      const bool same = a[i - 1] == b[j - 1];
      here = std::min({cost[(i - 1) * columns + j] + 1,
                       cost[i * columns + j - 1] + 1,
                       cost[(i - 1) * columns + j - 1] + (same ? 0 : 1)});
      const bool swapped =
          i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) {
        here = std::min(here, cost[(i - 2) * columns + j - 2] + 1);
      }
    }
  }
  return cost.back();
}

}  // namespace

std::string DidYouMean(absl::string_view given,
                       absl::Span<const absl::string_view> candidates) {
  if (given.size() > kNameLengthMax) return "";
  const std::string lower = absl::AsciiStrToLower(given);
  absl::string_view best;
  // Two edits turn a short name into any other, so fewer are allowed.
  int best_distance = std::min<int>(3, static_cast<int>(given.size() + 1) / 2);
  for (absl::string_view candidate : candidates) {
    if (candidate == given) continue;
    const int distance = EditDistance(lower, absl::AsciiStrToLower(candidate));
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  if (best.empty()) return "";
  return absl::StrCat("; did you mean \"", best, "\"?");
}

}  // namespace muster
