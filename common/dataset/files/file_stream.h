#ifndef COMMON_DATASET_FILES_FILE_STREAM_H_
#define COMMON_DATASET_FILES_FILE_STREAM_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/dataset/dataset.h"
#include "common/dataset/dataset_node.h"

namespace muster {

// The string[] elements of a list of files, each of which is opened when it is
// reached. Thread-safe.
class FileStreamNode : public DatasetNode {
 public:
  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const final;
  StageKind kind() const final { return StageKind::kFiles; }
  int file_count() const final { return static_cast<int>(paths_.size()); }
  int64_t corrupt_input_count() const final { return *corrupt_input_count_; }

 protected:
  using Counter = std::shared_ptr<std::atomic<int64_t>>;

  // `order`: how files are interleaved. `corrupt_input_count` is shared with
  // the same reader of other files.
  FileStreamNode(std::vector<std::string> paths, const InterleaveOptions& order,
                 Counter corrupt_input_count);

  const std::vector<std::string>& paths() const { return paths_; }
  const InterleaveOptions& order() const { return order_; }
  const Counter& corrupt_input_counter() const { return corrupt_input_count_; }
  std::vector<std::string> PathsOf(absl::Span<const int> files) const;

  virtual absl::StatusOr<std::unique_ptr<ElementStream>> OpenFile(
      const std::string& path) const = 0;

 private:
  const std::vector<std::string> paths_;
  const InterleaveOptions order_;
  const Counter corrupt_input_count_;
};

}  // namespace muster

#endif  // COMMON_DATASET_FILES_FILE_STREAM_H_
