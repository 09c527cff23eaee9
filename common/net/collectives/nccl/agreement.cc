#include "common/net/collectives/nccl/agreement.h"

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/net/collectives/peers/group_error.h"

namespace muster {
namespace {

// How long ranks that NCCL has failed may take to say that they are there.
constexpr absl::Duration kInquiryTimeout = absl::Milliseconds(500);

// Every rank's `own`, by rank.
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

}  // namespace

uint64_t LayoutOf(absl::Span<const int64_t> element_counts) {
  uint64_t hash = element_counts.size();
  for (const int64_t count : element_counts) {
    hash = FoldIn(hash, static_cast<uint64_t>(count));
  }
  return hash;
}

absl::Status AgreeAboutCall(Communicator& control,
                            const CallSignature& signature,
                            const CollectiveCall& call) {
  const EncodedFrameHeader own = EncodeFrameHeader(
      {.generation = control.generation(), .signature = signature});
  ASSIGN_OR_RETURN(const std::vector<EncodedFrameHeader> all,
                   Exchange(control, own, call));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    ASSIGN_OR_RETURN(const FrameHeader first, DecodeFrameHeader(all[0]));
    ASSIGN_OR_RETURN(const FrameHeader other, DecodeFrameHeader(all[rank]));
    return absl::InvalidArgumentError(absl::StrCat(
        "ranks disagree: rank 0 is in ", first.signature.ToString(),
        ", and rank ", rank, " is in ", other.signature.ToString()));
  }
  return absl::OkStatus();
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
