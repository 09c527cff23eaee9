#ifndef COMMON_IO_STORAGE_LOCAL_DISK_H_
#define COMMON_IO_STORAGE_LOCAL_DISK_H_

#include "common/io/storage/disk.h"

namespace muster {

// The file systems of this machine. Lives as long as the process.
Disk* LocalDisk();

}  // namespace muster

#endif  // COMMON_IO_STORAGE_LOCAL_DISK_H_
