#ifndef COMMON_DATASET_DATASET_H_
#define COMMON_DATASET_DATASET_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/components.h"

namespace muster {

// The components of one element, for example {features, label}.
using Element = std::vector<Tensor>;

// A position in a dataset. Not thread-safe.
class DatasetIterator {
 public:
  virtual ~DatasetIterator() = default;

  // Puts the next element into `element` and returns true, or returns false at
  // the end, and from then on. After an error, the same error is returned
  // again.
  //
  // Tensors in `element` that have no other owner may be reused for the next
  // element. A loop that always passes the same Element allocates nothing, as
  // far as the stages support it.
  virtual absl::StatusOr<bool> Next(Element* element) = 0;
};

// The input pipeline that an iterator serves, one of several.
struct InputContext {
  int num_input_pipelines = 1;
  int input_pipeline_id = 0;
  int num_replicas_in_sync = 1;

  // Returns the batch size to use if a dataset's elements are the batches of
  // one replica.
  //   kInvalidArgument  the global batch size is not a multiple of the
  //                     replicas, or is below 1
  absl::StatusOr<int64_t> GetPerReplicaBatchSize(
      int64_t global_batch_size) const;
};

struct MapOptions {
  // Number of elements processed concurrently, each on its own thread; 1: on
  // the thread that requests the next element; or kAutotune. The order does not
  // depend on it.
  int thread_count = 1;
  // Seeds the randomness in a traced function: each element of each epoch draws
  // its own numbers.
  uint64_t seed = 0;
};

struct ShuffleOptions {
  uint64_t seed = 0;
  // Each pass over the data has a different order.
  bool reshuffle_each_iteration = true;
  // Each input pipeline has a different order: for workers that all read the
  // same data.
  bool decorrelate = false;
};

struct BatchOptions {
  // Drops the last batch if it is not full.
  bool drop_remainder = false;
};

struct PaddedBatchOptions {
  bool drop_remainder = false;
  // The shape of each component in a batch, without the batch's dimension. An
  // unknown extent becomes that of the longest element of the batch. Empty: the
  // shapes of the components.
  std::vector<Shape> padded_shapes = {};
  // A scalar for each component. Empty: 0, false and "".
  std::vector<Tensor> padding_values = {};
  // The same for components with these names, instead; the others are padded as
  // without.
  std::map<std::string, Shape> named_padded_shapes = {};
  std::map<std::string, Tensor> named_padding_values = {};
  // Unknown extents are rounded up to a multiple, so that fewer shapes occur:
  // each is compiled for when a step first gets it.
  int64_t length_multiple = 1;
};

struct BucketOptions {
  // The length of an element is the outermost extent of this component: the
  // one at this position, or, unless it is "", of this name.
  int component = 0;
  std::string component_name = "";
  // Bucket i has the lengths from boundaries[i - 1] to below boundaries[i]; the
  // last one has all that are longer.
  std::vector<int64_t> boundaries = {};
  // One for each bucket, one more than boundaries.
  std::vector<int64_t> batch_sizes = {};
  bool drop_remainder = false;
  // Pads to the greatest length of the bucket in place of the longest element.
  // Does not apply to the last bucket.
  bool pad_to_bucket_boundary = false;
  // As PaddedBatchOptions.
  std::vector<Shape> padded_shapes = {};
  std::vector<Tensor> padding_values = {};
  std::map<std::string, Shape> named_padded_shapes = {};
  std::map<std::string, Tensor> named_padding_values = {};
};

struct InterleaveOptions {
  int64_t cycle_length = 1;  // Datasets drawn from alternately.
  int64_t block_length = 1;  // Consecutive elements of one dataset.
};

struct SampleOptions {
  // One for each dataset, in proportion to its probability. Empty: all have the
  // same.
  std::vector<double> weights = {};
  uint64_t seed = 0;
  // Ends when a dataset that was drawn has ended. Otherwise it is left out from
  // then on.
  bool stop_on_empty_dataset = false;
  // Each pass over the data draws other elements.
  bool rerandomize_each_iteration = true;
};

struct SlidingWindowOptions {
  // From the first element of a window to that of the next; 0: the size.
  int64_t shift = 0;
  // From an element of a window to the next.
  int64_t stride = 1;
  // Drops the windows at the end that are not full.
  bool drop_remainder = false;
};

class DatasetNode;  // One stage of a pipeline's definition; immutable.

// The definition of an input pipeline: a value, cheap to copy. Nothing is read
// before an iterator is created, except the types of files whose content is not
// described. Errors made while chaining are kept and returned by status() and
// MakeIterator().
//
// The order of elements is a pure function of the definition, the InputContext
// and the epoch. Every buffer is bounded by an argument of its stage.
//
// Components may have names, as the keys of dicts in tf.data. Names belong to
// the definition, not to elements. They come from sources, from WithNames() and
// from functions that make components by name; stages that leave components
// where they are leave them their names. An element of tf.data that is
// ({"age": ..., "city": ...}, label) has the components "age", "city" and one
// without a name here.
//
// Equivalent to: tf.data.Dataset.
//
// Thread-safe: immutable.
class Dataset {
 public:
  // Traced once, when the stage is added.
  using TracedFunction =
      std::function<std::vector<Value>(absl::Span<const Value>)>;
  // The same, with names:
  //   data.Map([](const NamedValues& row) -> std::vector<NamedValue> {
  //     return {{"rate", row["count"] / row["hours"]}, {"", row["label"]}};
  //   });
  using NamedFunction =
      std::function<std::vector<NamedValue>(const NamedValues&)>;
  using NamedPredicate = std::function<Value(const NamedValues&)>;
  // Called for each element, concurrently if a stage has several threads. A
  // dataset with such a function cannot be sent to other processes.
  using ElementFunction = std::function<absl::StatusOr<Element>(Element)>;
  using ElementPredicate = std::function<absl::StatusOr<bool>(const Element&)>;
  using ElementToDataset = std::function<Dataset(const Element&)>;

  // Has no elements and no types; status() is kFailedPrecondition.
  Dataset();

  // One element.
  static Dataset FromTensors(Element components);
  static Dataset FromTensors(std::vector<NamedTensor> components);

  // One element per row: components[i] without the outermost dimension, which
  // has the same extent in all components.
  //   FromTensorSlices({{"age", ages}, {"city", cities}, {"", labels}})
  static Dataset FromTensorSlices(Element components);
  static Dataset FromTensorSlices(std::vector<NamedTensor> components);

  // int64 scalars from `start` to below `stop`.
  static Dataset Range(int64_t stop);
  static Dataset Range(int64_t start, int64_t stop, int64_t step = 1);

  // Concatenates the components of one element of each dataset; ends with the
  // shortest dataset. No two may have the same name.
  static Dataset Zip(std::vector<Dataset> datasets);

  // Draws from `cycle_length` datasets alternately; one that ends is replaced
  // by the next.
  static Dataset Interleave(std::vector<Dataset> datasets,
                            const InterleaveOptions& options = {});

  // Draws each element from one of the datasets at random. Each keeps its
  // order.
  //
  // Equivalent to: tf.data.Dataset.sample_from_datasets.
  static Dataset SampleFromDatasets(std::vector<Dataset> datasets,
                                    const SampleOptions& options = {});

  // Maps each element to function(components...). Of these functions, only a
  // NamedFunction gives the results names.
  Dataset Map(const TracedFunction& function,
              const MapOptions& options = {}) const;
  Dataset Map(const NamedFunction& function,
              const MapOptions& options = {}) const;
  Dataset Map(Graph function, const MapOptions& options = {}) const;
  Dataset MapElements(ElementFunction function,
                      std::vector<TensorType> output_types,
                      const MapOptions& options = {}) const;

  // Keeps the elements for which predicate(components...), a bool scalar, is
  // true.
  Dataset Filter(const TracedFunction& predicate) const;
  Dataset Filter(const NamedPredicate& predicate) const;
  Dataset Filter(Graph predicate) const;
  Dataset FilterElements(ElementPredicate predicate) const;

  // Gives the components these names: one for each, "" for none. {} removes all
  // names.
  Dataset WithNames(std::vector<std::string> names) const;
  // Pairs of a name and the new one, which may be "".
  Dataset Rename(
      const std::vector<std::pair<std::string, std::string>>& names) const;
  // Keeps the components of these names, in this order, and behind them all
  // without a name.
  Dataset Select(const std::vector<std::string>& names) const;
  // Leaves out the components of these names.
  Dataset Drop(const std::vector<std::string>& names) const;
  // Keeps the components at these positions, in this order.
  Dataset SelectComponents(std::vector<int> indices) const;

  // Fills a buffer and draws from it at random; the next element replaces the
  // one drawn. A perfect shuffle if all elements fit.
  Dataset Shuffle(int64_t buffer_size,
                  const ShuffleOptions& options = {}) const;

  // Repeats the data `count` times, each time as another epoch. Ends after a
  // pass without elements.
  Dataset Repeat(int64_t count = kInfinite) const;

  // Stacks `batch_size` elements along a new outermost dimension.
  Dataset Batch(int64_t batch_size, const BatchOptions& options = {}) const;

  // As Batch(), for components whose extents differ from element to element:
  // pads each component at the end of each axis.
  //
  // Equivalent to: tf.data.Dataset.padded_batch.
  Dataset PaddedBatch(int64_t batch_size,
                      const PaddedBatchOptions& options = {}) const;
  // Batches elements of similar length, with padding. A batch is ready when its
  // bucket is full; buckets that are not full come last.
  //
  // Equivalent to: tf.data.Dataset.bucket_by_sequence_length.
  Dataset BucketBySequenceLength(const BucketOptions& options) const;

  // Stacks `size` elements along a new outermost dimension, as Batch(), but
  // windows may overlap: Range(5).Window(3, {.shift = 1, .drop_remainder =
  // true}) has {0, 1, 2}, {1, 2, 3} and {2, 3, 4}.
  //
  // Equivalent to: tf.data.Dataset.window(...).flat_map(batch).
  Dataset Window(int64_t size, const SlidingWindowOptions& options = {}) const;

  // Splits each element into its rows.
  Dataset Unbatch() const;

  // kInfinite takes all elements.
  Dataset Take(int64_t count) const;
  Dataset Skip(int64_t count) const;

  // Keeps elements index, index + shard_count, ...
  Dataset Shard(int64_t shard_count, int64_t index) const;
  // Shard(num_input_pipelines, input_pipeline_id) of the InputContext.
  Dataset ShardByPipeline() const;

  // Keeps the elements of the first complete pass in memory, shared by the
  // iterators of this dataset and of its copies.
  Dataset Cache() const;
  // Keeps them in a file, which later processes reuse; see file_cache.h. The
  // order is that of the pass that wrote it.
  Dataset Cache(absl::string_view filename) const;

  // Reads up to `buffer_size` elements ahead on a separate thread; or kAutotune
  // (autotune.h).
  Dataset Prefetch(int64_t buffer_size) const;

  // The elements of this dataset, followed by those of the other.
  Dataset Concatenate(const Dataset& other) const;

  // Interleaves the datasets that `function` returns for the elements. All have
  // the same names; those of the result are given with WithNames().
  Dataset Interleave(ElementToDataset function,
                     std::vector<TensorType> output_types,
                     const InterleaveOptions& options = {}) const;

  // The types of an element's components; extents may be unknown.
  const std::vector<TensorType>& element_types() const;
  // Their names, as in ElementSpec.
  const std::vector<std::string>& component_names() const;
  ElementSpec element_spec() const {
    return {element_types(), component_names()};
  }

  static constexpr int64_t kInfinite = -1;
  static constexpr int64_t kUnknownCardinality = -2;
  // The number of elements. kInfinite after Repeat() without a count, as in
  // tf.data, even if data of unknown length turns out to be empty.
  int64_t Cardinality() const;

  // The first error made while chaining.
  //   kInvalidArgument  names the stage, what it expected and what it got
  const absl::Status& status() const { return status_; }

  // Returns the number of elements. Reads all of them if Cardinality() does not
  // know it.
  //   kInvalidArgument  the data is infinite
  //   others            errors of the data
  absl::StatusOr<int64_t> CountElements() const;

  // `epoch` is the number of earlier passes over the data: a loop that creates
  // an iterator for each epoch passes 0, 1, 2, ... and gets the same elements
  // as with Repeat().
  absl::StatusOr<std::unique_ptr<DatasetIterator>> MakeIterator(
      const InputContext& context = {}, int64_t epoch = 0) const;

  // For stages defined elsewhere in this folder.
  explicit Dataset(absl::StatusOr<std::shared_ptr<const DatasetNode>> node);
  const std::shared_ptr<const DatasetNode>& node() const { return node_; }

 private:
  absl::Status status_;
  std::shared_ptr<const DatasetNode> node_;  // Null unless status_ is OK.
};

}  // namespace muster

#endif  // COMMON_DATASET_DATASET_H_
