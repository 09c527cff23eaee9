#ifndef COMMON_DATASET_DATASET_NODE_H_
#define COMMON_DATASET_DATASET_NODE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "proto/dataset.pb.h"

namespace muster {

// What a stage of a pipeline is made of. For this room only.
//
// Many pipelines shuffle and batch what lies in memory. Their stages pass on
// the numbers of rows, and only the batch touches the data: see RowSelection.

// What one pass through the data depends on.
struct PassContext {
  InputContext input;
  int64_t epoch = 0;
};

// Items one after another. Not thread-safe. After an error a stream is not
// asked again; after its end it may be, and answers the same.
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

// Elements that are reached by number. Thread-safe: immutable.
class RowTable {
 public:
  virtual ~RowTable() = default;
  virtual int64_t row_count() const = 0;
  virtual int component_count() const = 0;
  // Otherwise each element is made when it is asked for.
  virtual bool is_stored() const { return true; }
  // One element: component_count() tensors, which may share memory with the
  // table.
  virtual absl::Status Get(int64_t row, absl::Span<Tensor> element) const = 0;
  // Elements stacked along a new outermost dimension. Uses the memory of
  // `batch`, which has component_count() tensors, again where it can.
  virtual absl::Status Gather(absl::Span<const int64_t> rows,
                              absl::Span<Tensor> batch) const = 0;
};

// Rows of a table, in some order. No table: the elements are not rows of one.
struct RowSelection {
  std::shared_ptr<const RowTable> table = nullptr;
  std::unique_ptr<RowStream> rows = nullptr;
  bool is_whole_table = false;  // Every row once, in order.
};

// What a stage is to whoever divides a pipeline among workers.
enum class StageKind {
  kSource,    // Has no inputs and reads no files.
  kFiles,     // Has no inputs and reads files.
  kElements,  // Which elements come out does not depend on order.
  kShuffle,   // Only the order is another.
  kCount,     // Which elements come out depends on their numbers.
  kShardByPipeline,
  kBatch,
  kUnbatch,
  kZip,
  kConcatenate,
  kInterleave,          // Of a list of inputs.
  kInterleaveFunction,  // Of what a function makes of the input's elements.
};

// One stage of a pipeline's definition. Thread-safe: immutable but for what it
// has loaded. Streams that come back to a node share it.
class DatasetNode {
 public:
  virtual ~DatasetNode() = default;

  const std::vector<TensorType>& element_types() const {
    return element_types_;
  }
  // Or Dataset::kInfinite, Dataset::kUnknownCardinality.
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
  // This stage on other inputs, of the same types; as many where the number
  // matters.
  //   as for making the stage
  virtual absl::StatusOr<std::shared_ptr<const DatasetNode>> WithInputs(
      std::vector<std::shared_ptr<const DatasetNode>> inputs) const;

  // Elements that this stage left out because its input was damaged, so far and
  // in this process.
  virtual int64_t corrupt_input_count() const { return 0; }

  // kBatch: elements that become one.
  virtual int64_t batch_size() const { return 0; }

  // kFiles: how many, and the same reader of some of them, by their numbers.
  virtual int file_count() const { return 0; }
  virtual absl::StatusOr<std::shared_ptr<const DatasetNode>> WithFiles(
      absl::Span<const int> files) const;

  // kInterleaveFunction: what is made of the input's first element; null when
  // there is none.
  //   as for reading the input, and as the function
  virtual absl::StatusOr<std::shared_ptr<const DatasetNode>> FirstMade() const;

  // Appends this node's inputs and the node itself.
  //   kFailedPrecondition, kResourceExhausted  as EncodeDataset()
  virtual absl::Status Encode(proto::Dataset* encoded) const = 0;

 protected:
  DatasetNode(std::vector<TensorType> element_types, int64_t cardinality)
      : element_types_(std::move(element_types)), cardinality_(cardinality) {}

 private:
  const std::vector<TensorType> element_types_;
  const int64_t cardinality_;
};

using NodePointer = std::shared_ptr<const DatasetNode>;

// The elements of a selection, one by one.
std::unique_ptr<ElementStream> ElementsOf(RowSelection selection);

// Every row of `table` once, in order.
RowSelection WholeTable(std::shared_ptr<const RowTable> table);

// A node whose elements are the rows of a table that exists or can be made.
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
