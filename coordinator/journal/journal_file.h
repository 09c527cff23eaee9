#ifndef COORDINATOR_JOURNAL_JOURNAL_FILE_H_
#define COORDINATOR_JOURNAL_JOURNAL_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/io/storage/disk.h"

// Records in a file that one process appends to, in the framing of TFRecord
// (common/io/records/record_format.h).
//
// A record is appended when the one before is synced, so a crash can damage the
// last record only.
namespace muster {

// The largest file that is read.
inline constexpr int64_t kJournalFileBytesMax = int64_t{2} << 30;

// Returns the bytes of a record in the file.
std::string FrameJournalRecord(absl::string_view record);

// Returns the whole records of the file. A damaged record at the end, which a
// crash can leave, is left out.
//   kDataLoss  a damaged record is followed by a whole one; the message has the
//              path and the offset
//   others     the file cannot be read
absl::StatusOr<std::vector<std::string>> ReadJournalFile(
    Disk* disk, absl::string_view path);

}  // namespace muster

#endif  // COORDINATOR_JOURNAL_JOURNAL_FILE_H_
