#ifndef COMMON_LEARN_STRATEGY_CHIEF_RESULT_H_
#define COMMON_LEARN_STRATEGY_CHIEF_RESULT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/learn/strategy/worker_agreement.h"

namespace muster {

// Bytes or an error, as a string for DecodeResult(). An error keeps its code,
// message and payloads (except those over the limits of EncodeFailure()), so
// that all processes end with the same exit code.
std::string EncodeResult(const absl::StatusOr<std::string>& result);
//   kInternal  `encoded` does not come from EncodeResult()
absl::StatusOr<std::string> DecodeResult(absl::string_view encoded);

// Returns the chief's `result` on all processes of `agreement`; those of others
// are ignored. `what` is as in WorkerAgreement::FromChief().
absl::StatusOr<std::string> ResultFromChief(
    const WorkerAgreement& agreement, absl::string_view what,
    const absl::StatusOr<std::string>& result);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_CHIEF_RESULT_H_
