#ifndef COMMON_NET_COLLECTIVES_MESSAGE_FRAME_H_
#define COMMON_NET_COLLECTIVES_MESSAGE_FRAME_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/dtype.h"
#include "common/net/collectives/reduce_op.h"

// The format of the messages on a lane. Each frame is a header and a payload.
//
// A header is 64 bytes, integers little-endian:
//
//    0  "MSL1"        8  generation       40  step
//    4  kind         16  sequence         44  segment
//    5  operation    24  element_count    48  payload_bytes
//    6  reduce_op    32  layout           56  root
//    7  dtype                             60  algorithm
namespace muster {

enum class FrameKind : uint8_t {
  kData = 1,
  // The sender is in this collective and waits for other ranks. No payload.
  kArrived = 2,
  // The sender has failed. The payload is an encoded status. No frame follows.
  kAbort = 3,
};

enum class CollectiveOperation : uint8_t {
  kAllReduce = 1,
  kReduceScatter = 2,
  kAllGather = 3,
  kBroadcast = 4,
  kBarrier = 5,
};

// "all-reduce", ...
absl::string_view CollectiveOperationName(CollectiveOperation operation);

// The arguments of a call, which must be equal on all ranks. Every data and
// arrival frame carries them, so that the receiver can compare them with its
// own.
struct CallSignature {
  CollectiveOperation operation = CollectiveOperation::kBarrier;
  ReduceOp reduce_op = ReduceOp::kSum;
  DType dtype = DType::kInvalid;
  uint8_t algorithm = 0;  // An Algorithm of schedule.h.
  int32_t root = 0;
  int64_t element_count = 0;
  uint64_t layout = 0;  // A hash of the element counts of an all-gather.

  bool operator==(const CallSignature&) const = default;

  // "all-reduce (sum) of 10 x float32".
  std::string ToString() const;
};

struct FrameHeader {
  static constexpr size_t kEncodedBytes = 64;

  FrameKind kind = FrameKind::kData;
  uint64_t generation = 0;
  uint64_t sequence = 0;  // Sequence number of the collective within the group,
                          // from 1.
  CallSignature signature;
  uint32_t step = 0;
  uint32_t segment = 0;
  uint64_t payload_bytes = 0;
};

using EncodedFrameHeader = std::array<uint8_t, FrameHeader::kEncodedBytes>;

EncodedFrameHeader EncodeFrameHeader(const FrameHeader& header);

//   kInvalidArgument  the bytes are not a valid header
absl::StatusOr<FrameHeader> DecodeFrameHeader(
    const EncodedFrameHeader& encoded);

// The payload of an abort frame. Decoding accepts any bytes and truncates long
// texts.
inline constexpr size_t kAbortPayloadBytesMax = 4096;
std::string EncodeAbort(const absl::Status& status);
absl::Status DecodeAbort(absl::string_view payload);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_MESSAGE_FRAME_H_
