#ifndef COMMON_IO_TAR_TAR_STREAM_H_
#define COMMON_IO_TAR_TAR_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace muster {

// Archives of tar(1) in the GNU format, read and written in sequence: regular
// files of any size, with names of any length below kTarNameLengthMax. Folders
// are implied by the names of files.
//
// See "Basic Tar Format" and "GNU Extensions to the Archive Format" in the
// manual of GNU tar.

inline constexpr size_t kTarNameLengthMax = 4096;

// A file in an archive.
struct TarFile {
  std::string name;  // A relative path, without ".." and empty parts.
  int64_t size_bytes = 0;
};

// Reads an archive. Not thread-safe.
class TarReader {
 public:
  // Fills a part of the span, from its start. Returns how many bytes; 0 at the
  // end.
  using Source = std::function<absl::StatusOr<size_t>(absl::Span<uint8_t>)>;

  explicit TarReader(Source source) : source_(std::move(source)) {}

  // Returns the next file, or none at the end of the archive. Skips what Read()
  // has not read of the last one, and folders.
  //   kDataLoss         the archive is damaged, or ends early
  //   kInvalidArgument  it has something other than files and folders, such as
  //                     a link, or a name that leaves the folder
  //   others            as the source
  absl::StatusOr<std::optional<TarFile>> Next();

  // Fills `bytes` with the next bytes of the file.
  //   kDataLoss  the archive ends early
  //   others     as the source
  // Must not be called for more than the rest of the file.
  absl::Status Read(absl::Span<uint8_t> bytes);

  // Returns how many bytes of the file are left.
  int64_t rest_bytes() const { return rest_bytes_; }

  // True if the source has ended before the header of a file, where the end of
  // an archive that grows is not an error.
  bool has_ended_between_files() const { return has_ended_between_files_; }

 private:
  absl::Status Fill(absl::Span<uint8_t> bytes);
  absl::Status SkipFile();
  absl::StatusOr<std::string> ReadLongName(int64_t size_bytes);

  const Source source_;
  int64_t rest_bytes_ = 0;
  int64_t padding_bytes_ = 0;
  bool has_ended_between_files_ = false;
};

// Writes an archive. Not thread-safe.
class TarWriter {
 public:
  // Takes all bytes of the span.
  using Sink = std::function<absl::Status(absl::Span<const uint8_t>)>;

  explicit TarWriter(Sink sink) : sink_(std::move(sink)) {}

  // Begins a file, of which Append() must have added all bytes before the next
  // call of Begin() or Finish().
  //   kInvalidArgument  the name is too long
  //   others            as the sink
  absl::Status Begin(const TarFile& file);
  absl::Status Append(absl::Span<const uint8_t> bytes);

  // Writes the rest of the last block of a file at once, for a reader that
  // waits for it. The next Begin() does the same.
  absl::Status CompleteFile() { return Pad(); }

  // Ends the archive.
  absl::Status Finish();

 private:
  absl::Status AddHeader(absl::string_view name, int64_t size_bytes, char type);
  absl::Status Pad();

  const Sink sink_;
  int64_t written_bytes_ = 0;
};

}  // namespace muster

#endif  // COMMON_IO_TAR_TAR_STREAM_H_
