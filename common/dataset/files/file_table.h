#ifndef COMMON_DATASET_FILES_FILE_TABLE_H_
#define COMMON_DATASET_FILES_FILE_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/dataset/dataset.h"
#include "common/dataset/dataset_node.h"
#include "common/dataset/files/loaded_table.h"
#include "common/dataset/row_tables.h"

namespace muster {

inline constexpr int kFileCountMax = 1 << 16;

// The files that `patterns` name, pattern after pattern. A pattern is the path
// of a file, or else may have *, ? and [...] as in a shell, and stands for what
// matches it, in the order of the bytes of the names.
//   kNotFound         nothing matches; names the pattern
//   kInvalidArgument  there are no patterns, or more than kFileCountMax files
//   kUnavailable      a folder cannot be read
absl::StatusOr<std::vector<std::string>> ExpandFilePatterns(
    absl::Span<const std::string> patterns);

// The records of a list of files, each file read whole when the first iterator
// is made and then kept in memory.
//
// Thread-safe.
class FileTableNode : public DatasetNode {
 public:
  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const final;
  absl::StatusOr<RowSelection> MakeRows(const PassContext& context) const final;

  StageKind kind() const final { return StageKind::kFiles; }
  int file_count() const final { return static_cast<int>(paths_.size()); }

 protected:
  using Components = std::vector<TensorTable::Component>;

  // `order`: how files are read in turn.
  FileTableNode(std::vector<TensorType> element_types, int64_t cardinality,
                std::vector<std::string> paths, const InterleaveOptions& order)
      : DatasetNode(std::move(element_types), cardinality),
        paths_(std::move(paths)),
        order_(order) {}

  const std::vector<std::string>& paths() const { return paths_; }
  const InterleaveOptions& order() const { return order_; }

  // The records of paths()[file].
  virtual absl::StatusOr<Components> ReadFile(int file) const = 0;

 private:
  // The records of all files, file after file.
  class Table;

  absl::StatusOr<std::shared_ptr<const RowTable>> Load() const;

  const std::vector<std::string> paths_;
  const InterleaveOptions order_;
  mutable LoadedTable table_;
};

// What readers of several files check first; `format` begins the errors.
//   kInvalidArgument  no files, too many, or an option is out of range
absl::Status CheckFiles(const char* format, absl::Span<const std::string> paths,
                        const InterleaveOptions& order);

}  // namespace muster

#endif  // COMMON_DATASET_FILES_FILE_TABLE_H_
