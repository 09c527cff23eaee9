#include "coordinator/journal/journal_file.h"

#include <cstddef>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/core/base/hashes.h"
#include "common/core/base/status_macros.h"
#include "common/io/checkpoint/coding.h"
#include "common/io/records/record_format.h"

namespace muster {
namespace {

constexpr size_t kLengthBytes = 8;

uint32_t MaskedCrc(absl::string_view data) { return MaskCrc32c(Crc32c(data)); }

// Returns the record at the beginning of `bytes`, or nullopt if there is no
// whole one.
std::optional<absl::string_view> RecordAt(absl::string_view bytes) {
  if (bytes.size() < kRecordHeaderBytes) return std::nullopt;
  const uint64_t length = LoadFixed<uint64_t>(bytes.data());
  const uint32_t length_crc = LoadFixed<uint32_t>(bytes.data() + kLengthBytes);
  if (MaskedCrc(bytes.substr(0, kLengthBytes)) != length_crc) {
    return std::nullopt;
  }
  bytes.remove_prefix(kRecordHeaderBytes);
  if (bytes.size() < kRecordFooterBytes ||
      length > bytes.size() - kRecordFooterBytes) {
    return std::nullopt;
  }
  const absl::string_view record = bytes.substr(0, length);
  const uint32_t record_crc = LoadFixed<uint32_t>(bytes.data() + length);
  if (MaskedCrc(record) != record_crc) return std::nullopt;
  return record;
}

// True if a whole record begins anywhere in `bytes`.
bool HasRecord(absl::string_view bytes) {
  for (size_t begin = 0; begin + kRecordHeaderBytes <= bytes.size(); ++begin) {
    if (RecordAt(bytes.substr(begin)).has_value()) return true;
  }
  return false;
}

}  // namespace

std::string FrameJournalRecord(absl::string_view record) {
  std::string bytes;
  bytes.reserve(kRecordHeaderBytes + record.size() + kRecordFooterBytes);
  AppendFixed<uint64_t>(record.size(), &bytes);
  AppendFixed<uint32_t>(MaskedCrc(bytes), &bytes);
  bytes.append(record.data(), record.size());
  AppendFixed<uint32_t>(MaskedCrc(record), &bytes);
  return bytes;
}

absl::StatusOr<std::vector<std::string>> ReadJournalFile(
    Disk* disk, absl::string_view path) {
  ASSIGN_OR_RETURN(const std::string content,
                   ReadFile(disk, path, kJournalFileBytesMax));
  std::vector<std::string> records;
  absl::string_view rest = content;
  while (!rest.empty()) {
    const std::optional<absl::string_view> record = RecordAt(rest);
    if (!record.has_value()) break;
    records.emplace_back(*record);
    rest.remove_prefix(kRecordHeaderBytes + record->size() +
                       kRecordFooterBytes);
  }
  if (!rest.empty() && HasRecord(rest.substr(1))) {
    return absl::DataLossError(
        absl::StrCat(path, " is damaged at byte ", content.size() - rest.size(),
                     ": expected a record, and another record follows"));
  }
  return records;
}

}  // namespace muster
