#ifndef COMMON_CORE_BASE_DID_YOU_MEAN_H_
#define COMMON_CORE_BASE_DID_YOU_MEAN_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster {

// The end of an error about an unknown name: `; did you mean "worker"?` when
// one of `candidates` is close to `came` (two slips at most, upper and lower
// case alike), and nothing otherwise.
std::string DidYouMean(absl::string_view came,
                       absl::Span<const absl::string_view> candidates);

}  // namespace muster

#endif  // COMMON_CORE_BASE_DID_YOU_MEAN_H_
