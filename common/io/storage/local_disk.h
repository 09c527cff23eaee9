#ifndef COMMON_IO_STORAGE_LOCAL_DISK_H_
#define COMMON_IO_STORAGE_LOCAL_DISK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/io/storage/disk.h"

namespace muster {

// The file systems of this machine. Lives as long as the process.
Disk* LocalDisk();

// Wraps the result of open(2) for `path`: a descriptor, which the returned file
// owns, or -1 with errno set.
//   kInvalidArgument  not a regular file
//   others            as Disk::Open()
absl::StatusOr<std::unique_ptr<ReadableFile>> ReadDescriptor(std::string path,
                                                             int descriptor);

}  // namespace muster

#endif  // COMMON_IO_STORAGE_LOCAL_DISK_H_
