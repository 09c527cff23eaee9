#ifndef COMMON_LEARN_TRAIN_ATOMIC_FILE_H_
#define COMMON_LEARN_TRAIN_ATOMIC_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// Puts `content` in the place of the file, making its folder if need be: writes
// beside it, syncs, renames. Readers see the old file or the whole new one,
// also after a crash.
//   kInternal          the system refuses; names the file and the reason
absl::Status WriteFileAtomically(const std::string& path,
                                 absl::string_view content);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_ATOMIC_FILE_H_
