#ifndef COMMON_IO_STORAGE_PRIVATE_FILE_H_
#define COMMON_IO_STORAGE_PRIVATE_FILE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// Replaces the contents of a file of this machine, which only its owner may
// read then: for keys. As ReplaceFile(), but the temporary file has a random
// name and is not one that another user has made.
//   kPermissionDenied, kNotFound, ...  as the system says
absl::Status ReplacePrivateFile(absl::string_view path,
                                absl::string_view content);

}  // namespace muster

#endif  // COMMON_IO_STORAGE_PRIVATE_FILE_H_
