#include "ps/log/log_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/hashes.h"
#include "common/core/base/status_macros.h"
#include "common/io/checkpoint/coding.h"
#include "common/io/records/record_format.h"

namespace muster {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kMessageLengthBytes = 4;
// Smaller pieces are copied together, up to this size, and written by one call.
constexpr size_t kCopiedBytesMax = 128 << 10;

absl::Span<const uint8_t> BytesOf(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

absl::string_view TextOf(absl::Span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

absl::Status AppendLogRecord(const proto::ServerLogRecord& message,
                             absl::Span<const absl::Span<const uint8_t>> pieces,
                             AppendableFile* file) {
  size_t piece_bytes = 0;
  for (const absl::Span<const uint8_t> piece : pieces) {
    piece_bytes += piece.size();
  }
  const size_t message_bytes = message.ByteSizeLong();
  std::string buffer;
  buffer.reserve(std::min(kCopiedBytesMax, kRecordHeaderBytes + message_bytes +
                                               piece_bytes + kLengthBytes));
  AppendFixed<uint64_t>(kMessageLengthBytes + message_bytes + piece_bytes,
                        &buffer);
  AppendFixed<uint32_t>(MaskCrc32c(Crc32c(buffer)), &buffer);
  AppendFixed<uint32_t>(static_cast<uint32_t>(message_bytes), &buffer);
  message.AppendToString(&buffer);
  uint32_t crc = Crc32c(absl::string_view(buffer).substr(kRecordHeaderBytes));
  for (const absl::Span<const uint8_t> piece : pieces) {
    crc = ExtendCrc32c(crc, piece.data(), piece.size());
    if (buffer.size() + piece.size() > kCopiedBytesMax) {
      RETURN_IF_ERROR(file->Append(BytesOf(buffer)));
      buffer.clear();
    }
    if (piece.size() > kCopiedBytesMax) {
      RETURN_IF_ERROR(file->Append(piece));
    } else {
      buffer.append(TextOf(piece).data(), piece.size());
    }
  }
  AppendFixed<uint32_t>(MaskCrc32c(crc), &buffer);
  return file->Append(BytesOf(buffer));
}

absl::StatusOr<std::unique_ptr<LogFileReader>> LogFileReader::Open(
    Disk* disk, absl::string_view path) {
  ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, disk->Open(path));
  return std::unique_ptr<LogFileReader>(
      new LogFileReader(std::move(file), path));
}

absl::Status LogFileReader::Damaged(absl::string_view how) const {
  return absl::DataLossError(
      absl::StrCat(path_, " is damaged at byte ", offset_, ": ", how));
}

absl::StatusOr<std::optional<ServerLogEntry>> LogFileReader::Next() {
  const int64_t left = file_->size_bytes() - offset_;
  if (left < static_cast<int64_t>(kRecordHeaderBytes)) return std::nullopt;
  uint8_t header[kRecordHeaderBytes];
  RETURN_IF_ERROR(file_->ReadAt(offset_, absl::MakeSpan(header)));
  const absl::string_view head = TextOf(header);
  const uint64_t length = LoadFixed<uint64_t>(head.data());
  if (MaskCrc32c(Crc32c(head.substr(0, kLengthBytes))) !=
      LoadFixed<uint32_t>(head.data() + kLengthBytes)) {
    return Damaged("expected a record");
  }
  const uint64_t rest_bytes = static_cast<uint64_t>(left) - kRecordHeaderBytes;
  if (rest_bytes < kRecordFooterBytes ||
      length > rest_bytes - kRecordFooterBytes) {
    return std::nullopt;  // The process ended while it wrote this record.
  }
  if (length < kMessageLengthBytes) return Damaged("the record has no message");
  const size_t size_bytes = length + kRecordFooterBytes;
  // Not initialized: a record may be large.
  const std::shared_ptr<uint8_t[]> owner(new uint8_t[size_bytes]);
  const int64_t begin = offset_ + static_cast<int64_t>(kRecordHeaderBytes);
  RETURN_IF_ERROR(file_->ReadAt(begin, {owner.get(), size_bytes}));
  const absl::string_view body = TextOf({owner.get(), length});
  const uint32_t message_bytes = LoadFixed<uint32_t>(body.data());
  if (MaskCrc32c(Crc32c(body)) !=
      LoadFixed<uint32_t>(body.data() + body.size())) {
    return Damaged("the checksum of the record is wrong");
  }
  ServerLogEntry record;
  if (message_bytes > length - kMessageLengthBytes ||
      !record.message.ParseFromArray(body.data() + kMessageLengthBytes,
                                     static_cast<int>(message_bytes))) {
    return Damaged("the record is not a muster.proto.ServerLogRecord");
  }
  record.bytes = absl::MakeConstSpan(owner.get(), length)
                     .subspan(kMessageLengthBytes + message_bytes);
  record.owner = owner;
  offset_ = begin + static_cast<int64_t>(size_bytes);
  return record;
}

}  // namespace muster
