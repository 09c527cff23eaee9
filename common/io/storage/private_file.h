#ifndef COMMON_IO_STORAGE_PRIVATE_FILE_H_
#define COMMON_IO_STORAGE_PRIVATE_FILE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// Replaces the contents of a file of this machine, such that only its owner may
// read it. For keys. As ReplaceFile(), but the temporary file has a random
// name, and a file that another user has made is not used for it.
//   kPermissionDenied, kNotFound, ...  errors of the system
absl::Status ReplacePrivateFile(absl::string_view path,
                                absl::string_view content);

}  // namespace muster

#endif  // COMMON_IO_STORAGE_PRIVATE_FILE_H_
