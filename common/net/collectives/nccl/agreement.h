#ifndef COMMON_NET_COLLECTIVES_NCCL_AGREEMENT_H_
#define COMMON_NET_COLLECTIVES_NCCL_AGREEMENT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/message/frame.h"
#include "common/net/collectives/nccl/nccl_api.h"

// Lets the ranks of a group on GPUs agree over another communicator of the same
// ranks. All ranks call the same function.
namespace muster {

// Returns a hash of the element counts of an all-gather, for
// CallSignature::layout.
uint64_t LayoutOf(absl::Span<const int64_t> element_counts);

// Compares the call `first`, which rank 0 is about to make, with the call
// `other` of `rank`.
//   kInvalidArgument  the calls differ; says which rank makes which call
absl::Status CheckSameCall(const CallSignature& first,
                           const CallSignature& other, int rank);

// Lets ranks agree on each call, and on the time at which it expires, so that
// all ranks of a call time out together.
//
// Ranks exchange times relative to the end of their previous agreement, which
// is at about the same time on all of them. Their clocks need not agree.
//
// Not thread-safe.
class CallAgreement {
 public:
  // All ranks construct this at about the same time: after a barrier. `control`
  // is borrowed.
  explicit CallAgreement(Communicator* control);

  // Blocks until all ranks are about to make the call that `signature`
  // describes. Returns the time, of Clock::Real(), at which the call expires:
  // CollectiveCall::timeout after the first rank began it, or earlier if
  // another rank passed a shorter timeout. It may be in the past.
  //   kInvalidArgument  as for CheckSameCall()
  //   others            errors of `control`, as for Communicator
  absl::StatusOr<absl::Time> Agree(const CallSignature& signature,
                                   const CollectiveCall& call);

 private:
  Communicator& control_;
  absl::Time last_agreement_;
};

// Blocks until all ranks have called it, and checks that their ids are equal.
//   kInvalidArgument  the ids differ; names a rank
//   others            errors of `control`, as for Communicator
absl::Status AgreeAboutId(Communicator& control, const nccl::UniqueId& id,
                          const CollectiveCall& call);

// Finds the ranks that do not answer after an error of NCCL, which all other
// ranks handle by calling this function. Returns `failure` with the result
// added to its message. The code is kUnavailable if a rank is gone, else that
// of `failure`. Takes half a second if a rank does not answer.
absl::Status WithMissingRanks(Communicator& control,
                              const absl::Status& failure,
                              absl::string_view name);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_NCCL_AGREEMENT_H_
