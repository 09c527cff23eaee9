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

// How the ranks of a group on GPUs agree over another communicator
// of the same ranks. All of them call the same function.
namespace muster {

// The layout of an all-gather, for CallSignature.
uint64_t LayoutOf(absl::Span<const int64_t> element_counts);

// Compares the calls that rank 0 and `rank` are about to make.
//   kInvalidArgument  they are different ones; says what which rank does
absl::Status CheckSameCall(const CallSignature& first,
                           const CallSignature& other, int rank);

// Agrees about calls one after another, and about the time at which each of
// them expires, so that ranks that wait for the same call give up together.
//
// Ranks exchange times relative to the end of their previous agreement, which
// all of them leave at about the same time. Their clocks need not be equal.
//
// Not thread-safe.
class CallAgreement {
 public:
  // All ranks make this at about the same time: behind a barrier. `control` is
  // borrowed.
  explicit CallAgreement(Communicator* control);

  // Returns when all ranks are about to make the call that `signature`
  // describes, with the time at which the call expires, of Clock::Real():
  // CollectiveCall::timeout after the first rank began it, or earlier, if
  // another rank waits less long. May lie in the past.
  //   kInvalidArgument  as CheckSameCall()
  //   others            as Communicator, of `control`
  absl::StatusOr<absl::Time> Agree(const CallSignature& signature,
                                   const CollectiveCall& call);

 private:
  Communicator& control_;
  absl::Time last_agreement_;
};

// Returns when all ranks have come with the id of one group.
//   kInvalidArgument  they have different ones; says which rank
//   others            as Communicator, of `control`
absl::Status AgreeAboutId(Communicator& control, const nccl::UniqueId& id,
                          const CollectiveCall& call);

// Asks all ranks to answer, which they do when NCCL has failed them, too.
// Returns `failure` and what came of it: kUnavailable if a rank is gone, the
// code of `failure` otherwise. Takes half a second where a rank is silent.
absl::Status WithMissingRanks(Communicator& control,
                              const absl::Status& failure,
                              absl::string_view name);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_NCCL_AGREEMENT_H_
