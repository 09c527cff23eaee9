#ifndef COMMON_IO_KERAS_ZIP_ARCHIVE_H_
#define COMMON_IO_KERAS_ZIP_ARCHIVE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/io/storage/disk.h"

namespace muster {

// Reads the members of a zip archive. The archive is not trusted: checksums are
// verified, and sizes are limited. Not thread-safe.
class ZipReader {
 public:
  // `name` stands for the archive in errors.
  //   kDataLoss  not an archive
  //   others     errors of the file
  static absl::StatusOr<std::unique_ptr<ZipReader>> Open(
      absl::string_view name, std::unique_ptr<ReadableFile> file);

  virtual ~ZipReader() = default;

  // Returns the names of the members, in the order of the archive.
  virtual std::vector<std::string> List() const = 0;

  //   kNotFound           no such member; the message lists the members
  //   kResourceExhausted  larger than `size_bytes_max`
  //   kDataLoss           damaged, or declares more bytes than the file can
  //                       hold
  //   kUnimplemented      encrypted, or compressed by an unknown method
  //   others              errors of the file
  virtual absl::StatusOr<std::string> Read(absl::string_view member,
                                           int64_t size_bytes_max) const = 0;

 protected:
  ZipReader() = default;
};

struct ZipMember {
  std::string name;
  absl::string_view bytes;  // Borrowed.
};

// Returns an archive of the members, in their order and without compression.
//   kResourceExhausted  out of memory
absl::StatusOr<std::string> ZipArchiveOf(const std::vector<ZipMember>& members,
                                         absl::Time time);

}  // namespace muster

#endif  // COMMON_IO_KERAS_ZIP_ARCHIVE_H_
