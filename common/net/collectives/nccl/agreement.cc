#include "common/net/collectives/nccl/agreement.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_message.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/dtype.h"

namespace muster {
namespace {

// How long ranks may take to answer after an error of NCCL.
constexpr absl::Duration kInquiryTimeout = absl::Milliseconds(500);

// Returns the `own` of every rank, by rank.
template <typename T>
absl::StatusOr<std::vector<T>> Exchange(Communicator& control, const T& own,
                                        const CollectiveCall& call) {
  std::vector<T> all(control.size());
  T sent = own;
  RETURN_IF_ERROR(control.AllGather(
      {DType::kUint8, sizeof(T), &sent},
      std::vector<int64_t>(all.size(), sizeof(T)),
      {DType::kUint8, static_cast<int64_t>(all.size() * sizeof(T)), all.data()},
      call));
  return all;
}

EncodedFrameHeader Encode(const Communicator& control,
                          const CallSignature& signature) {
  return EncodeFrameHeader(
      {.generation = control.generation(), .signature = signature});
}

absl::Status Disagreement(const CallSignature& first,
                          const CallSignature& other, int rank) {
  return absl::InvalidArgumentError(
      absl::StrCat("ranks disagree: rank 0 is in ", first.ToString(),
                   ", and rank ", rank, " is in ", other.ToString()));
}

absl::Status CheckSame(const EncodedFrameHeader& first,
                       const EncodedFrameHeader& other, size_t rank) {
  if (other == first) return absl::OkStatus();
  ASSIGN_OR_RETURN(const FrameHeader wanted, DecodeFrameHeader(first));
  ASSIGN_OR_RETURN(const FrameHeader found, DecodeFrameHeader(other));
  return Disagreement(wanted.signature, found.signature,
                      static_cast<int>(rank));
}

// What ranks exchange before each call.
struct CallProposal {
  EncodedFrameHeader header;
  int64_t expiry_nanoseconds;  // From the end of the last agreement.
};

}  // namespace

uint64_t LayoutOf(absl::Span<const int64_t> element_counts) {
  uint64_t hash = element_counts.size();
  for (const int64_t count : element_counts) {
    hash = FoldIn(hash, static_cast<uint64_t>(count));
  }
  return hash;
}

absl::Status CheckSameCall(const CallSignature& first,
                           const CallSignature& other, int rank) {
  return other == first ? absl::OkStatus() : Disagreement(first, other, rank);
}

CallAgreement::CallAgreement(Communicator* control)
    : control_(*control), last_agreement_(Clock::Real()->Now()) {}

absl::StatusOr<absl::Time> CallAgreement::Agree(const CallSignature& signature,
                                                const CollectiveCall& call) {
  const absl::Duration expiry =
      Clock::Real()->Now() + call.timeout - last_agreement_;
  ASSIGN_OR_RETURN(const std::vector<CallProposal> all,
                   Exchange(control_,
                            CallProposal{Encode(control_, signature),
                                         absl::ToInt64Nanoseconds(expiry)},
                            call));
  int64_t earliest = all[0].expiry_nanoseconds;
  for (size_t rank = 1; rank < all.size(); ++rank) {
    RETURN_IF_ERROR(CheckSame(all[0].header, all[rank].header, rank));
    earliest = std::min(earliest, all[rank].expiry_nanoseconds);
  }
  const absl::Time deadline = last_agreement_ + absl::Nanoseconds(earliest);
  last_agreement_ = Clock::Real()->Now();
  return deadline;
}

absl::Status AgreeAboutId(Communicator& control, const nccl::UniqueId& id,
                          const CollectiveCall& call) {
  uint64_t hash = 0;
  for (const char byte : id.bytes) {
    hash = FoldIn(hash, static_cast<uint8_t>(byte));
  }
  ASSIGN_OR_RETURN(const std::vector<uint64_t> all,
                   Exchange(control, hash, call));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("ranks have NCCL ids of different groups: rank ", rank,
                     " has another one than rank 0"));
  }
  return absl::OkStatus();
}

absl::Status WithMissingRanks(Communicator& control,
                              const absl::Status& failure,
                              absl::string_view name) {
  const absl::Status met = control.Barrier({name, kInquiryTimeout});
  const absl::string_view found =
      met.ok() ? "all ranks still answer" : met.message();
  return WithMessage(absl::IsUnavailable(met) ? met : failure,
                     absl::StrCat(failure.message(), "; ", found));
}

}  // namespace muster
