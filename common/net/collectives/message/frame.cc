#include "common/net/collectives/message/frame.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr char kMagic[4] = {'M', 'S', 'L', '1'};

// Writes and reads little-endian integers one after another.
class Writer {
 public:
  explicit Writer(uint8_t* next) : next_(next) {}
  template <typename T>
  void Put(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) {
      *next_++ = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i));
    }
  }

 private:
  uint8_t* next_;
};

class Reader {
 public:
  explicit Reader(const uint8_t* next) : next_(next) {}
  template <typename T>
  T Get() {
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      value |= static_cast<uint64_t>(*next_++) << (8 * i);
    }
    return static_cast<T>(value);
  }

 private:
  const uint8_t* next_;
};

bool IsKnownKind(uint8_t kind) {
  return kind >= static_cast<uint8_t>(FrameKind::kData) &&
         kind <= static_cast<uint8_t>(FrameKind::kAbort);
}

}  // namespace

absl::string_view CollectiveOperationName(CollectiveOperation operation) {
  switch (operation) {
    case CollectiveOperation::kAllReduce:
      return "all-reduce";
    case CollectiveOperation::kReduceScatter:
      return "reduce-scatter";
    case CollectiveOperation::kAllGather:
      return "all-gather";
    case CollectiveOperation::kBroadcast:
      return "broadcast";
    case CollectiveOperation::kBarrier:
      return "barrier";
  }
  return "unknown collective";
}

std::string CallSignature::ToString() const {
  const absl::string_view name = CollectiveOperationName(operation);
  if (operation == CollectiveOperation::kBarrier) return std::string(name);
  const std::string elements =
      absl::StrCat(element_count, " x ", DTypeString(dtype));
  switch (operation) {
    case CollectiveOperation::kBroadcast:
      return absl::StrCat(name, " from rank ", root, " of ", elements);
    case CollectiveOperation::kAllGather:
      return absl::StrCat(name, " of ", elements, ", counts ",
                          absl::Hex(layout & 0xffff, absl::kZeroPad4));
    default:
      return absl::StrCat(name, " (", std::string(ReduceOpName(reduce_op)),
                          ") of ", elements);
  }
}

EncodedFrameHeader EncodeFrameHeader(const FrameHeader& header) {
  EncodedFrameHeader encoded;
  std::memcpy(encoded.data(), kMagic, sizeof(kMagic));
  Writer writer(encoded.data() + sizeof(kMagic));
  writer.Put(static_cast<uint8_t>(header.kind));
  writer.Put(static_cast<uint8_t>(header.signature.operation));
  writer.Put(static_cast<uint8_t>(header.signature.reduce_op));
  writer.Put(static_cast<uint8_t>(header.signature.dtype));
  writer.Put(header.generation);
  writer.Put(header.sequence);
  writer.Put(header.signature.element_count);
  writer.Put(header.signature.layout);
  writer.Put(header.step);
  writer.Put(header.segment);
  writer.Put(header.payload_bytes);
  writer.Put(header.signature.root);
  writer.Put(static_cast<uint32_t>(header.signature.algorithm));
  return encoded;
}

absl::StatusOr<FrameHeader> DecodeFrameHeader(
    const EncodedFrameHeader& encoded) {
  if (std::memcmp(encoded.data(), kMagic, sizeof(kMagic)) != 0 ||
      !IsKnownKind(encoded[4])) {
    return absl::InvalidArgumentError("the message is not a frame");
  }
  Reader reader(encoded.data() + sizeof(kMagic));
  FrameHeader header;
  header.kind = static_cast<FrameKind>(reader.Get<uint8_t>());
  CallSignature& signature = header.signature;
  signature.operation = static_cast<CollectiveOperation>(reader.Get<uint8_t>());
  signature.reduce_op = static_cast<ReduceOp>(reader.Get<uint8_t>());
  signature.dtype = static_cast<DType>(reader.Get<uint8_t>());
  header.generation = reader.Get<uint64_t>();
  header.sequence = reader.Get<uint64_t>();
  signature.element_count = reader.Get<int64_t>();
  signature.layout = reader.Get<uint64_t>();
  header.step = reader.Get<uint32_t>();
  header.segment = reader.Get<uint32_t>();
  header.payload_bytes = reader.Get<uint64_t>();
  signature.root = reader.Get<int32_t>();
  signature.algorithm = static_cast<uint8_t>(reader.Get<uint32_t>());
  if (header.kind == FrameKind::kAbort &&
      header.payload_bytes > kAbortPayloadBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("received an abort of ", header.payload_bytes,
                     " bytes, expected at most ", kAbortPayloadBytesMax));
  }
  return header;
}

std::string EncodeAbort(const absl::Status& status) {
  std::string payload(1, static_cast<char>(status.raw_code()));
  absl::StrAppend(&payload,
                  status.message().substr(0, kAbortPayloadBytesMax - 1));
  return payload;
}

absl::Status DecodeAbort(absl::string_view payload) {
  if (payload.empty()) {
    return absl::UnknownError("a rank aborted without a reason");
  }
  payload = payload.substr(0, kAbortPayloadBytesMax);
  const int code = static_cast<uint8_t>(payload[0]);
  const bool is_error =
      code > 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return absl::Status(is_error ? static_cast<absl::StatusCode>(code)
                               : absl::StatusCode::kUnknown,
                      payload.substr(1));
}

}  // namespace muster
