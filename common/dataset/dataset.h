#ifndef COMMON_DATASET_DATASET_H_
#define COMMON_DATASET_DATASET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// The components of one element, for example {features, label}.
using Element = std::vector<Tensor>;

// A position in a dataset. Not thread-safe.
class DatasetIterator {
 public:
  virtual ~DatasetIterator() = default;

  // Puts the next element into `element` and returns true, or returns false at
  // the end, and from then on. After an error the same error comes again.
  //
  // Tensors that are handed in with `element` and have no other owner may be
  // used again for the next element, so a loop that keeps passing the same
  // Element allocates nothing where the stages allow it.
  virtual absl::StatusOr<bool> Next(Element* element) = 0;
};

// Which of several input pipelines an iterator serves.
struct InputContext {
  int num_input_pipelines = 1;
  int input_pipeline_id = 0;
  int num_replicas_in_sync = 1;

  // The size to batch by where a dataset's elements are one replica's batches.
  //   kInvalidArgument  the global batch size is no multiple of the replicas,
  //   or
  //                     below 1
  absl::StatusOr<int64_t> GetPerReplicaBatchSize(
      int64_t global_batch_size) const;
};

struct MapOptions {
  // Elements worked on at the same time, each on a thread of its own; 1: on the
  // thread that asks for the next element. The order is the same for any.
  int thread_count = 1;
  // Of the randomness in a traced function: each element of each epoch draws
  // its own numbers.
  uint64_t seed = 0;
};

struct ShuffleOptions {
  uint64_t seed = 0;
  // Every pass through the data has another order.
  bool reshuffle_each_iteration = true;
  // Every input pipeline has another order: for workers that all go through
  // the same data.
  bool decorrelate = false;
};

struct BatchOptions {
  // Leaves out a last batch that is not full.
  bool drop_remainder = false;
};

struct InterleaveOptions {
  int64_t cycle_length = 1;  // Datasets drawn from in turn.
  int64_t block_length = 1;  // Elements drawn before it is the next one's turn.
};

class DatasetNode;  // One stage of a pipeline's definition; immutable.

// The definition of an input pipeline: a value, cheap to copy. Nothing is read
// until an iterator is made, except that files of unknown content are asked for
// their types. Mistakes while chaining are kept and come out of status() and
// MakeIterator().
//
// The order of elements is a pure function of the definition, the InputContext
// and the epoch. Every buffer is bounded by an argument of the stage it
// belongs to.
//
// Equivalent to: tf.data.Dataset.
//
// Thread-safe: immutable.
class Dataset {
 public:
  // Traced once, when the stage is added.
  using TracedFunction =
      std::function<std::vector<Value>(absl::Span<const Value>)>;
  // Called for each element, by several threads at once when a stage has more
  // than one. Datasets that have one cannot be sent to other processes.
  using ElementFunction = std::function<absl::StatusOr<Element>(Element)>;
  using ElementPredicate = std::function<absl::StatusOr<bool>(const Element&)>;
  using ElementToDataset = std::function<Dataset(const Element&)>;

  // No elements and no types; status() is kFailedPrecondition.
  Dataset();

  // One element.
  static Dataset FromTensors(Element components);

  // An element for each row: components[i] without its outermost dimension,
  // which all have in common.
  static Dataset FromTensorSlices(Element components);

  // int64 scalars from `start`, before `stop`.
  static Dataset Range(int64_t stop);
  static Dataset Range(int64_t start, int64_t stop, int64_t step = 1);

  // The components of one element of each dataset side by side; ends with the
  // shortest.
  static Dataset Zip(std::vector<Dataset> datasets);

  // Draws from `cycle_length` datasets in turn; one that ends makes room for
  // the next.
  static Dataset Interleave(std::vector<Dataset> datasets,
                            const InterleaveOptions& options = {});

  // function(components...) of each element.
  Dataset Map(const TracedFunction& function,
              const MapOptions& options = {}) const;
  Dataset Map(Graph function, const MapOptions& options = {}) const;
  Dataset MapElements(ElementFunction function,
                      std::vector<TensorType> output_types,
                      const MapOptions& options = {}) const;

  // The elements for which predicate(components...) is true: a bool scalar.
  Dataset Filter(const TracedFunction& predicate) const;
  Dataset Filter(Graph predicate) const;
  Dataset FilterElements(ElementPredicate predicate) const;

  // Fills a buffer and draws from it at random; the place of what was drawn is
  // taken by the next element. A perfect shuffle when everything fits.
  Dataset Shuffle(int64_t buffer_size,
                  const ShuffleOptions& options = {}) const;

  // Goes through the data `count` times, each time as another epoch.
  Dataset Repeat(int64_t count = kInfinite) const;

  // Stacks `batch_size` elements along a new outermost dimension.
  Dataset Batch(int64_t batch_size, const BatchOptions& options = {}) const;

  // The rows of each element, as elements.
  Dataset Unbatch() const;

  // kInfinite takes all.
  Dataset Take(int64_t count) const;
  Dataset Skip(int64_t count) const;

  // Elements index, index + shard_count, ...
  Dataset Shard(int64_t shard_count, int64_t index) const;
  // Shard(num_input_pipelines, input_pipeline_id) of the InputContext.
  Dataset ShardByPipeline() const;

  // Keeps the elements of the first whole pass in memory. Iterators of this
  // dataset and of its copies share them.
  Dataset Cache() const;
  // Keeps them in a file, which later processes find; see file_cache.h. The
  // order is that of the pass that made it.
  Dataset Cache(absl::string_view filename) const;

  // A thread of its own stays up to `buffer_size` elements ahead.
  Dataset Prefetch(int64_t buffer_size) const;

  // This one's elements, then the other's.
  Dataset Concatenate(const Dataset& other) const;

  // Interleaves the datasets that `function` makes of each element.
  Dataset Interleave(ElementToDataset function,
                     std::vector<TensorType> output_types,
                     const InterleaveOptions& options = {}) const;

  // The types of an element's components; extents may be unknown.
  const std::vector<TensorType>& element_types() const;

  static constexpr int64_t kInfinite = -1;
  static constexpr int64_t kUnknownCardinality = -2;
  // The number of elements. kInfinite after Repeat() without a count, as in
  // tf.data, even if data of unknown length turns out to be empty.
  int64_t Cardinality() const;

  // The first mistake made while chaining.
  //   kInvalidArgument  names the stage, what it expected and what came
  const absl::Status& status() const { return status_; }

  // How many elements there are, by going through them where Cardinality() does
  // not know.
  //   kInvalidArgument  the data never ends
  //   others            of the data
  absl::StatusOr<int64_t> CountElements() const;

  // `epoch` says how often the data has been gone through before: a loop that
  // makes an iterator for each epoch passes 0, 1, 2, ..., and sees what
  // Repeat() would have shown it.
  absl::StatusOr<std::unique_ptr<DatasetIterator>> MakeIterator(
      const InputContext& context = {}, int64_t epoch = 0) const;

  // For stages defined elsewhere in this room.
  explicit Dataset(absl::StatusOr<std::shared_ptr<const DatasetNode>> node);
  const std::shared_ptr<const DatasetNode>& node() const { return node_; }

 private:
  absl::Status status_;
  std::shared_ptr<const DatasetNode> node_;  // Null unless status_ is OK.
};

}  // namespace muster

#endif  // COMMON_DATASET_DATASET_H_
