#include "common/dataset/interleaved_stream.h"

#include "absl/strings/str_cat.h"

namespace muster {

absl::Status CheckInterleave(const char* stage,
                             const InterleaveOptions& options) {
  if (options.cycle_length < 1 || options.cycle_length > kCycleLengthMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(stage, ": cycle_length is ", options.cycle_length,
                     "; expected 1 to ", kCycleLengthMax));
  }
  if (options.block_length < 1) {
    return absl::InvalidArgumentError(absl::StrCat(stage, ": block_length is ",
                                                   options.block_length,
                                                   "; expected at least 1"));
  }
  return absl::OkStatus();
}

}  // namespace muster
