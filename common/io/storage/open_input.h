#ifndef COMMON_IO_STORAGE_OPEN_INPUT_H_
#define COMMON_IO_STORAGE_OPEN_INPUT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/io/storage/disk.h"

namespace muster {

// Opens a file that an input pipeline reads: a path, or the URL of an object.
// Follows ConfineReads() (confined_files.h): a URL must be below a URL among
// those folders, whatever paths they allow.
//   kPermissionDenied  the path or the URL is not below them
//   others             as Disk::Open()
absl::StatusOr<std::unique_ptr<ReadableFile>> OpenInput(
    const std::string& path);

}  // namespace muster

#endif  // COMMON_IO_STORAGE_OPEN_INPUT_H_
