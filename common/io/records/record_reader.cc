#include "common/io/records/record_reader.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/core/base/hashes.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

constexpr uint64_t kStepBytes = uint64_t{1} << 20;

uint64_t LoadLittleEndian(const char* bytes, size_t size_bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < size_bytes; ++i) {
    value |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  }
  return value;
}

// Guesses the format of a file that is not a plain TFRecord file, by its first
// bytes.
absl::string_view Guess(const char* header, bool is_compressed) {
  if (is_compressed) return "";
  const auto byte = [&](int i) { return static_cast<uint8_t>(header[i]); };
  if (byte(0) == 0x1f && byte(1) == 0x8b) return "; it looks like gzip";
  if (byte(0) == 0x78 && (byte(0) * 256 + byte(1)) % 31 == 0) {
    return "; it looks like zlib";
  }
  return "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordReader>> RecordReader::Open(
    absl::string_view path, const Options& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source, OpenFileSource(path));
  return std::make_unique<RecordReader>(std::move(source), options);
}

RecordReader::RecordReader(std::unique_ptr<ByteSource> source,
                           const Options& options)
    : source_(options.compression == RecordCompression::kNone
                  ? std::move(source)
                  : CreateInflateSource(std::move(source))),
      is_compressed_(options.compression != RecordCompression::kNone),
      record_bytes_max_(options.record_bytes_max) {}

absl::Status RecordReader::RecordError(absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(
      source_->name(), ": record ", record_number_, " at offset ", offset_,
      is_compressed_ ? " of the content" : "", ": ", what));
}

absl::Status RecordReader::TruncatedError(absl::string_view part,
                                          uint64_t found,
                                          uint64_t expected) const {
  return RecordError(absl::StrCat("the file ends within ", part, ", after ",
                                  found, " of ", expected, " bytes"));
}

absl::StatusOr<bool> RecordReader::Next(std::string* record) {
  RETURN_IF_ERROR(status_);
  if (ended_) return false;
  return ReadNext(record);
}

// Returns false if the file ends here.
absl::StatusOr<bool> RecordReader::ReadLength(uint64_t* length) {
  std::array<char, kRecordHeaderBytes> header;
  ASSIGN_OR_RETURN(const size_t read_count,
                   source_->Read(header.data(), header.size()));
  if (read_count == 0) return false;
  if (read_count < header.size()) {
    return TruncatedError("its header", read_count, header.size());
  }
  *length = LoadLittleEndian(header.data(), 8);
  const uint64_t stored = LoadLittleEndian(header.data() + 8, 4);
  const uint32_t computed =
      MaskCrc32c(Crc32c(absl::string_view(header.data(), 8)));
  if (stored != computed) {
    return RecordError(absl::StrFormat(
        "the checksum of its length is %08x, expected %08x; the file is "
        "damaged here or is not a TFRecord file%s",
        stored, computed,
        record_number_ == 0 ? Guess(header.data(), is_compressed_) : ""));
  }
  if (*length > static_cast<uint64_t>(record_bytes_max_)) {
    return RecordError(absl::StrCat("it has ", *length, " bytes; the limit is ",
                                    record_bytes_max_));
  }
  return true;
}

absl::StatusOr<bool> RecordReader::ReadNext(std::string* record) {
  uint64_t length = 0;
  const absl::StatusOr<bool> more = ReadLength(&length);
  if (!more.ok()) status_ = more.status();
  if (!more.ok() || !*more) {
    ended_ = true;
    return more;
  }
  const uint64_t whole = length + kRecordFooterBytes;
  record->clear();
  while (record->size() < whole) {
    const size_t begin = record->size();
    // The declared length is not trusted: a step at most doubles the bytes that
    // have been read, or has kStepBytes.
    const uint64_t step = std::min<uint64_t>(
        whole - begin, std::max<uint64_t>(begin, kStepBytes));
    record->resize(begin + step);
    absl::StatusOr<size_t> read_count =
        source_->Read(record->data() + begin, step);
    if (read_count.ok() && *read_count == step) continue;
    status_ = read_count.ok()
                  ? TruncatedError("its data", begin + *read_count, whole)
                  : read_count.status();
    return status_;
  }
  const uint64_t stored =
      LoadLittleEndian(record->data() + length, kRecordFooterBytes);
  record->resize(length);
  const uint32_t computed = MaskCrc32c(Crc32c(*record));
  absl::Status status;
  if (stored != computed) {
    status = RecordError(
        absl::StrFormat("the checksum of its %d bytes is %08x, expected %08x",
                        length, stored, computed));
  }
  offset_ += static_cast<int64_t>(kRecordHeaderBytes + whole);
  ++record_number_;
  RETURN_IF_ERROR(status);
  return true;
}

}  // namespace muster
