#ifndef COMMON_DATASET_CORRUPT_INPUT_H_
#define COMMON_DATASET_CORRUPT_INPUT_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "common/dataset/dataset.h"

namespace muster {

// How a stage handles input that is damaged, truncated, or not of the
// expected kind. A file that is missing or cannot be read is an error in any
// case.
enum class CorruptInput {
  kFail,  // The error names the file and, if known, the offset.
  // Skips and counts it. At the end of a pass that skipped something, the log
  // has the number and the first error. The number of elements is then not
  // known in advance.
  kSkip,
};

// The number of elements that stages of this definition have skipped since it
// was created, in all passes in this process. Datasets that Interleave()
// creates from elements are not counted.
int64_t CorruptInputCount(const Dataset& dataset);

// True if `status` reports invalid input.
bool IsCorruptInput(const absl::Status& status);

// Counts the elements that one pass skips. Not thread-safe.
class SkippedInput {
 public:
  // `total` outlives this.
  explicit SkippedInput(std::atomic<int64_t>* total) : total_(total) {}

  void Add(const absl::Status& error);
  // Logs what was skipped, if anything was skipped since the last call. `what`
  // is the beginning of the line.
  void Report(absl::string_view what);

 private:
  std::atomic<int64_t>* const total_;
  int64_t count_ = 0;
  absl::Status first_error_;
};

}  // namespace muster

#endif  // COMMON_DATASET_CORRUPT_INPUT_H_
