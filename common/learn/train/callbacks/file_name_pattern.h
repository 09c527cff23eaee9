#ifndef COMMON_LEARN_TRAIN_CALLBACKS_FILE_NAME_PATTERN_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_FILE_NAME_PATTERN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/learn/train/base/history.h"

namespace muster {

// Replaces the names in a pattern such as "weights-{epoch:02d}-{val_loss:.2f}"
// by their values, like Python's str.format(). A field is {name} or
// {name:SPEC}, where SPEC is [0][width][.precision] and one of d, f, F, e, E,
// g, G or nothing; {{ is a brace. `epoch` and `batch` start at 1; all other
// names are looked up in `logs`.
//   kInvalidArgument  the pattern is invalid, or a name is not in `logs`; the
//                     message lists the available names
absl::StatusOr<std::string> FormatFileName(absl::string_view pattern,
                                           int64_t epoch, int64_t batch,
                                           const Logs& logs);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_FILE_NAME_PATTERN_H_
