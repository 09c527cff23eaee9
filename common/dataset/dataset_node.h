#ifndef COMMON_DATASET_DATASET_NODE_H_
#define COMMON_DATASET_DATASET_NODE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"

namespace muster {

namespace proto {
class Dataset;
}  // namespace proto

// The building blocks of pipeline stages. For this folder only.
//
// Many pipelines shuffle and batch data in memory. Their stages pass on row
// numbers, and only Batch() reads the data: see RowSelection.

// The inputs that determine one pass over the data.
struct PassContext {
  InputContext input;
  int64_t epoch = 0;
};

// A sequence of items. Not thread-safe. After an error, a stream must not be
// read again. After its end it may be, and reports the end again.
template <typename T>
class ItemStream {
 public:
  virtual ~ItemStream() = default;
  // As DatasetIterator::Next().
  virtual absl::StatusOr<bool> Next(T* item) = 0;
};

using ElementStream = ItemStream<Element>;
using RowStream = ItemStream<int64_t>;

template <typename T>
using StreamFactory =
    std::function<absl::StatusOr<std::unique_ptr<ItemStream<T>>>(
        const PassContext&)>;

// Elements with random access. Thread-safe: immutable.
class RowTable {
 public:
  virtual ~RowTable() = default;
  virtual int64_t row_count() const = 0;
  virtual int component_count() const = 0;
  // If not, each element is computed on access.
  virtual bool is_stored() const { return true; }
  // Returns one element: component_count() tensors, which may share memory with
  // the table.
  virtual absl::Status Get(int64_t row, absl::Span<Tensor> element) const = 0;
  // Stacks elements along a new outermost dimension. Reuses the memory of
  // `batch`, which has component_count() tensors, if possible.
  virtual absl::Status Gather(absl::Span<const int64_t> rows,
                              absl::Span<Tensor> batch) const = 0;
  // The same rows with some of the components, in the order of `components`.
  // Null if the table has no form of that kind without copies.
  virtual std::shared_ptr<const RowTable> Select(
      absl::Span<const int> components) const {
    (void)components;
    return nullptr;
  }
};

// Rows of a table, in some order. Without a table, the elements are not rows of
// one.
struct RowSelection {
  std::shared_ptr<const RowTable> table = nullptr;
  std::unique_ptr<RowStream> rows = nullptr;
  bool is_whole_table = false;  // Every row once, in order.
};

// The kinds of stages, for code that divides a pipeline among workers.
enum class StageKind {
  kSource,    // Has no inputs and reads no files.
  kFiles,     // Has no inputs and reads files.
  kElements,  // The set of output elements does not depend on order.
  kShuffle,   // Changes only the order.
  kCount,     // The set of output elements depends on their positions.
  kShardByPipeline,
  kBatch,
  kWindow,  // The set of output elements depends on the order of the input.
  kUnbatch,
  kZip,
  kConcatenate,
  kInterleave,          // Has a list of inputs.
  kInterleaveFunction,  // Has inputs created by a function.
};

// One stage of a pipeline's definition. Thread-safe: immutable except for
// loaded data, which all streams of the node share.
class DatasetNode {
 public:
  virtual ~DatasetNode() = default;

  const std::vector<TensorType>& element_types() const {
    return element_types_;
  }
  // As ElementSpec::names.
  const std::vector<std::string>& component_names() const {
    return component_names_;
  }
  // The number of elements, Dataset::kInfinite, or
  // Dataset::kUnknownCardinality.
  int64_t cardinality() const { return cardinality_; }

  virtual absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const = 0;

  virtual absl::StatusOr<RowSelection> MakeRows(const PassContext&) const {
    return RowSelection();
  }

  virtual StageKind kind() const = 0;

  virtual std::vector<std::shared_ptr<const DatasetNode>> inputs() const {
    return {};
  }
  // This stage with other inputs of the same types, and of the same number if
  // the number matters.
  //   errors  as for creating the stage
  virtual absl::StatusOr<std::shared_ptr<const DatasetNode>> WithInputs(
      std::vector<std::shared_ptr<const DatasetNode>> inputs) const;

  // The number of elements that this stage skipped in this process because
  // their input was damaged.
  virtual int64_t corrupt_input_count() const { return 0; }

  // kBatch: the number of elements per batch.
  virtual int64_t batch_size() const { return 0; }

  // kFiles: the number of files, and the same reader for a subset of them.
  virtual int file_count() const { return 0; }
  virtual absl::StatusOr<std::shared_ptr<const DatasetNode>> WithFiles(
      absl::Span<const int> files) const;

  // kInterleaveFunction: the dataset created from the input's first element;
  // null if the input is empty.
  //   errors  as for reading the input, and as the function
  virtual absl::StatusOr<std::shared_ptr<const DatasetNode>> FirstMade() const;

  // Appends this node's inputs and the node itself.
  //   kFailedPrecondition, kResourceExhausted  as EncodeDataset()
  virtual absl::Status Encode(proto::Dataset* encoded) const = 0;

 protected:
  // A stage that leaves components where they are passes on its input's names.
  DatasetNode(std::vector<TensorType> element_types, int64_t cardinality,
              std::vector<std::string> component_names = {});

 private:
  const std::vector<TensorType> element_types_;
  const std::vector<std::string> component_names_;
  const int64_t cardinality_;
};

using NodePointer = std::shared_ptr<const DatasetNode>;

// Reads the elements of a selection one by one.
std::unique_ptr<ElementStream> ElementsOf(RowSelection selection);

// Selects every row of `table` once, in order.
RowSelection WholeTable(std::shared_ptr<const RowTable> table);

// A node whose elements are the rows of a table that exists or can be loaded.
class TableNode : public DatasetNode {
 public:
  using DatasetNode::DatasetNode;

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const final;
  absl::StatusOr<RowSelection> MakeRows(const PassContext& context) const final;
  StageKind kind() const final { return StageKind::kSource; }

 protected:
  virtual absl::StatusOr<std::shared_ptr<const RowTable>> Table() const = 0;
};

}  // namespace muster

#endif  // COMMON_DATASET_DATASET_NODE_H_
