#ifndef COMMON_CORE_BASE_DID_YOU_MEAN_H_
#define COMMON_CORE_BASE_DID_YOU_MEAN_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster {

// Returns the end of an error message about an unknown name: `; did you mean
// "worker"?` if one of `candidates` is close to `given` (at most two edits,
// ignoring case), and "" otherwise.
std::string DidYouMean(absl::string_view given,
                       absl::Span<const absl::string_view> candidates);

}  // namespace muster

#endif  // COMMON_CORE_BASE_DID_YOU_MEAN_H_
