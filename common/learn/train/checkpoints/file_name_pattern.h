#ifndef COMMON_LEARN_TRAIN_CHECKPOINTS_FILE_NAME_PATTERN_H_
#define COMMON_LEARN_TRAIN_CHECKPOINTS_FILE_NAME_PATTERN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/learn/train/history.h"

namespace muster {

// "weights-{epoch:02d}-{val_loss:.2f}" with numbers in the places of names, as
// Python's str.format() does it: {name} or {name:SPEC}, SPEC being
// [0][width][.precision] and d, f, F, e, E, g, G or nothing; {{ is a brace.
// `epoch` and `batch` begin at 1; all other names are those of `logs`.
//   kInvalidArgument  the pattern makes no sense, or names what is not logged;
//                     says what there is
absl::StatusOr<std::string> FormatFileName(absl::string_view pattern,
                                           int64_t epoch, int64_t batch,
                                           const Logs& logs);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CHECKPOINTS_FILE_NAME_PATTERN_H_
