#ifndef PS_LOG_LOG_FILE_H_
#define PS_LOG_LOG_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/io/storage/disk.h"
#include "proto/server_log.pb.h"

// Records in a file that one process appends to, in the framing of TFRecord
// (common/io/records/record_format.h). A record is the length of a
// proto::ServerLogRecord (uint32), the message, and the bytes of its tensors.
namespace muster {

// A record that was read.
struct ServerLogEntry {
  proto::ServerLogRecord message;
  // The bytes after the message. `owner` keeps them.
  absl::Span<const uint8_t> bytes;
  std::shared_ptr<const void> owner;
};

// Appends a record whose bytes are those of `pieces`, one after another. The
// operating system has the record when the call returns, so that it survives
// the end of this process.
//   errors as AppendableFile::Append(); a part of the record may be in the file
absl::Status AppendLogRecord(const proto::ServerLogRecord& message,
                             absl::Span<const absl::Span<const uint8_t>> pieces,
                             AppendableFile* file);

// Reads the records of a file in order.
//
// A process that is killed while it appends leaves the beginning of a record,
// which is left out. Anything else that is no record is damage.
//
// Not thread-safe.
class LogFileReader {
 public:
  // `disk` is borrowed.
  static absl::StatusOr<std::unique_ptr<LogFileReader>> Open(
      Disk* disk, absl::string_view path);

  // Returns the next whole record; nullopt at the end.
  //   kDataLoss  the file is damaged; the message has its path and the offset
  absl::StatusOr<std::optional<ServerLogEntry>> Next();

  int64_t size_bytes() const { return file_->size_bytes(); }

 private:
  LogFileReader(std::unique_ptr<ReadableFile> file, absl::string_view path)
      : file_(std::move(file)), path_(path) {}

  absl::Status Damaged(absl::string_view how) const;

  const std::unique_ptr<ReadableFile> file_;
  const std::string path_;
  int64_t offset_ = 0;
};

}  // namespace muster

#endif  // PS_LOG_LOG_FILE_H_
