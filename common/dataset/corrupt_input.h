#ifndef COMMON_DATASET_CORRUPT_INPUT_H_
#define COMMON_DATASET_CORRUPT_INPUT_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "common/dataset/dataset.h"

namespace muster {

// What a stage does with input that is damaged, cut off, or not what it should
// be. A file that is not there or cannot be read is an error in any case.
enum class CorruptInput {
  kFail,  // The error names the file and, where known, the place in it.
  // Goes on without it, and counts it. A pass that skipped something says so in
  // the log at its end, with the first error. The number of elements is not
  // known beforehand then.
  kSkip,
};

// Elements that stages of this definition have skipped since it was made, in
// all passes through it in this process. Datasets that Interleave() makes of
// elements are not counted.
int64_t CorruptInputCount(const Dataset& dataset);

// Whether `status` is about what the input is.
bool IsCorruptInput(const absl::Status& status);

// What one pass skips. Not thread-safe.
class SkippedInput {
 public:
  // `total` outlives this.
  explicit SkippedInput(std::atomic<int64_t>* total) : total_(total) {}

  void Add(const absl::Status& error);
  // Says in the log what was skipped, if anything was and it was not said yet.
  // `what` begins the line.
  void Report(absl::string_view what);

 private:
  std::atomic<int64_t>* const total_;
  int64_t count_ = 0;
  absl::Status first_error_;
};

}  // namespace muster

#endif  // COMMON_DATASET_CORRUPT_INPUT_H_
