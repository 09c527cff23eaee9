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
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/dataset_node.h"
#include "common/dataset/files/loaded_table.h"
#include "common/dataset/row_tables.h"

namespace muster {

inline constexpr int kFileCountMax = 1 << 16;

// Expands `patterns` to files, in the order of the patterns. A pattern is the
// path of a file, or contains *, ? and [...] as in a shell and is replaced by
// the matching files in byte order of their names. In the URL of objects only
// what follows the last slash is a pattern.
//   kNotFound         nothing matches; names the pattern
//   kInvalidArgument  there are no patterns, or more than kFileCountMax files;
//                     a folder of a URL is a pattern
//   kUnavailable      a folder cannot be read
//   others            as Disk::List(), of objects
absl::StatusOr<std::vector<std::string>> ExpandFilePatterns(
    absl::Span<const std::string> patterns);

// The records of a list of files, each of which is read completely when the
// first iterator is created, and is then kept in memory.
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

  // `order`: how files are interleaved.
  FileTableNode(std::vector<TensorType> element_types, int64_t cardinality,
                std::vector<std::string> paths, const InterleaveOptions& order,
                std::vector<std::string> component_names = {})
      : DatasetNode(std::move(element_types), cardinality,
                    std::move(component_names)),
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

// Returns the values of a file as numbers of `dtype`, multiplied by `scale`
// unless it is 0. Bytes that are to become float32 stay bytes in memory.
TensorTable::Component MakeComponent(Tensor values, DType dtype, double scale);

// The first checks of all readers of several files; error messages begin with
// `format`.
//   kInvalidArgument  no files, too many, or an option is out of range
absl::Status CheckFiles(const char* format, absl::Span<const std::string> paths,
                        const InterleaveOptions& order);

}  // namespace muster

#endif  // COMMON_DATASET_FILES_FILE_TABLE_H_
