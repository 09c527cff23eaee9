#include "common/dataset/dataset.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/dataset/batch_stages.h"
#include "common/dataset/buffer_stages.h"
#include "common/dataset/combine_stages.h"
#include "common/dataset/component_stages.h"
#include "common/dataset/components.h"
#include "common/dataset/dataset_node.h"
#include "common/dataset/element_function.h"
#include "common/dataset/file_cache.h"
#include "common/dataset/map_stages.h"
#include "common/dataset/memory_sources.h"
#include "common/dataset/order_stages.h"
#include "common/dataset/padded_batch_stages.h"
#include "common/dataset/sample_stages.h"
#include "common/dataset/window_stages.h"

namespace muster {
namespace {

absl::StatusOr<std::vector<NodePointer>> NodesOf(
    const std::vector<Dataset>& datasets) {
  std::vector<NodePointer> nodes;
  nodes.reserve(datasets.size());
  for (const Dataset& dataset : datasets) {
    RETURN_IF_ERROR(dataset.status());
    nodes.push_back(dataset.node());
  }
  return nodes;
}

// Keeps the node alive, and the result after the end or an error.
class RootIterator final : public DatasetIterator {
 public:
  RootIterator(NodePointer node, std::unique_ptr<ElementStream> elements)
      : node_(std::move(node)), elements_(std::move(elements)) {}

  absl::StatusOr<bool> Next(Element* element) override {
    if (is_over_) return last_answer_;
    absl::StatusOr<bool> more = elements_->Next(element);
    if (!more.ok() || !*more) {
      is_over_ = true;
      last_answer_ = more;
    }
    return more;
  }

 private:
  const NodePointer node_;
  const std::unique_ptr<ElementStream> elements_;
  bool is_over_ = false;
  absl::StatusOr<bool> last_answer_ = false;
};

std::vector<std::string> TakeNames(std::vector<NamedTensor>* components) {
  std::vector<std::string> names;
  for (NamedTensor& component : *components) {
    names.push_back(std::move(component.name));
  }
  return names;
}

Element TensorsOf(const std::vector<NamedTensor>& components) {
  Element tensors;
  for (const NamedTensor& component : components) {
    tensors.push_back(component.value);
  }
  return tensors;
}

}  // namespace

absl::StatusOr<int64_t> InputContext::GetPerReplicaBatchSize(
    int64_t global_batch_size) const {
  if (global_batch_size >= 1 && num_replicas_in_sync >= 1 &&
      global_batch_size % num_replicas_in_sync == 0) {
    return global_batch_size / num_replicas_in_sync;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a global batch of ", global_batch_size,
                   " cannot be divided equally among ", num_replicas_in_sync,
                   " replicas in sync; expected a multiple of their number"));
}

// `status_or_node` of a stage on this dataset, or this dataset's own error.
#define MUSTER_DATASET_STAGE(status_or_node) \
  status_.ok() ? Dataset(status_or_node) : *this

Dataset::Dataset()
    : status_(absl::FailedPreconditionError("the dataset is not defined")) {}

Dataset::Dataset(absl::StatusOr<std::shared_ptr<const DatasetNode>> node)
    : status_(node.status()) {
  if (node.ok()) node_ = *std::move(node);
}

Dataset Dataset::FromTensors(Element components) {
  return Dataset(MakeFromTensors(std::move(components)));
}

Dataset Dataset::FromTensors(std::vector<NamedTensor> components) {
  std::vector<std::string> names = TakeNames(&components);
  return FromTensors(TensorsOf(components)).WithNames(std::move(names));
}

Dataset Dataset::FromTensorSlices(std::vector<NamedTensor> components) {
  std::vector<std::string> names = TakeNames(&components);
  return FromTensorSlices(TensorsOf(components)).WithNames(std::move(names));
}

Dataset Dataset::FromTensorSlices(Element components) {
  return Dataset(MakeFromTensorSlices(std::move(components)));
}

Dataset Dataset::Range(int64_t stop) { return Range(0, stop); }

Dataset Dataset::Range(int64_t start, int64_t stop, int64_t step) {
  return Dataset(MakeRange(start, stop, step));
}

Dataset Dataset::Zip(std::vector<Dataset> datasets) {
  auto nodes = NodesOf(datasets);
  return Dataset(nodes.ok() ? MakeZip(*std::move(nodes)) : nodes.status());
}

Dataset Dataset::Interleave(std::vector<Dataset> datasets,
                            const InterleaveOptions& options) {
  auto nodes = NodesOf(datasets);
  return Dataset(nodes.ok() ? MakeInterleave(*std::move(nodes), options)
                            : nodes.status());
}

Dataset Dataset::SampleFromDatasets(std::vector<Dataset> datasets,
                                    const SampleOptions& options) {
  auto nodes = NodesOf(datasets);
  return Dataset(nodes.ok() ? MakeSample(*std::move(nodes), options)
                            : nodes.status());
}

Dataset Dataset::Map(const TracedFunction& function,
                     const MapOptions& options) const {
  if (!status_.ok()) return *this;
  auto graph = TraceElementFunction(function, element_types());
  if (!graph.ok()) return Dataset(graph.status());
  return Map(*std::move(graph), options);
}

Dataset Dataset::Map(const NamedFunction& function,
                     const MapOptions& options) const {
  if (!status_.ok()) return *this;
  std::vector<std::string> names;
  auto graph = TraceElementFunction(function, element_spec(), &names);
  if (!graph.ok()) return Dataset(graph.status());
  const Dataset mapped = Map(*std::move(graph), options);
  return mapped.WithNames(std::move(names));
}

Dataset Dataset::Map(Graph function, const MapOptions& options) const {
  if (!status_.ok()) return *this;
  auto made = MakeGraphFunction(std::move(function), element_types());
  if (!made.ok()) return Dataset(made.status());
  return Dataset(MakeMap(node_, *std::move(made), options));
}

Dataset Dataset::MapElements(ElementFunction function,
                             std::vector<TensorType> output_types,
                             const MapOptions& options) const {
  if (!status_.ok()) return *this;
  if (function == nullptr) {
    return Dataset(absl::InvalidArgumentError("Map: the function is null"));
  }
  return Dataset(MakeMap(
      node_, MakeHostFunction(std::move(function), {std::move(output_types)}),
      options));
}

Dataset Dataset::Filter(const TracedFunction& predicate) const {
  if (!status_.ok()) return *this;
  auto graph = TraceElementFunction(predicate, element_types());
  if (!graph.ok()) return Dataset(graph.status());
  return Filter(*std::move(graph));
}

Dataset Dataset::Filter(const NamedPredicate& predicate) const {
  if (predicate == nullptr) {
    return Dataset(absl::InvalidArgumentError("Filter: the predicate is null"));
  }
  if (!status_.ok()) return *this;
  std::vector<std::string> names;
  auto graph = TraceElementFunction(
      [&](const NamedValues& row) -> std::vector<NamedValue> {
        return {{"", predicate(row)}};
      },
      element_spec(), &names);
  if (!graph.ok()) return Dataset(graph.status());
  return Filter(*std::move(graph));
}

Dataset Dataset::Filter(Graph predicate) const {
  if (!status_.ok()) return *this;
  auto made = MakeGraphFunction(std::move(predicate), element_types());
  if (!made.ok()) return Dataset(made.status());
  return Dataset(MakeFilter(node_, *std::move(made)));
}

Dataset Dataset::FilterElements(ElementPredicate predicate) const {
  return MUSTER_DATASET_STAGE(MakeFilter(node_, std::move(predicate)));
}

Dataset Dataset::WithNames(std::vector<std::string> names) const {
  return MUSTER_DATASET_STAGE(MakeWithNames(node_, std::move(names)));
}

Dataset Dataset::Rename(
    const std::vector<std::pair<std::string, std::string>>& names) const {
  return MUSTER_DATASET_STAGE(MakeRename(node_, names));
}

Dataset Dataset::Select(const std::vector<std::string>& names) const {
  return MUSTER_DATASET_STAGE(MakeSelect(node_, names));
}

Dataset Dataset::Drop(const std::vector<std::string>& names) const {
  return MUSTER_DATASET_STAGE(MakeDrop(node_, names));
}

Dataset Dataset::SelectComponents(std::vector<int> indices) const {
  return MUSTER_DATASET_STAGE(MakeSelectComponents(node_, std::move(indices)));
}

Dataset Dataset::Shuffle(int64_t buffer_size,
                         const ShuffleOptions& options) const {
  return MUSTER_DATASET_STAGE(MakeShuffle(node_, buffer_size, options));
}

Dataset Dataset::Repeat(int64_t count) const {
  return MUSTER_DATASET_STAGE(MakeRepeat(node_, count));
}

Dataset Dataset::Batch(int64_t batch_size, const BatchOptions& options) const {
  return MUSTER_DATASET_STAGE(MakeBatch(node_, batch_size, options));
}

Dataset Dataset::PaddedBatch(int64_t batch_size,
                             const PaddedBatchOptions& options) const {
  return MUSTER_DATASET_STAGE(MakePaddedBatch(node_, batch_size, options));
}

Dataset Dataset::BucketBySequenceLength(const BucketOptions& options) const {
  return MUSTER_DATASET_STAGE(MakeBucketBySequenceLength(node_, options));
}

Dataset Dataset::Window(int64_t size,
                        const SlidingWindowOptions& options) const {
  return MUSTER_DATASET_STAGE(MakeWindow(node_, size, options));
}

Dataset Dataset::Unbatch() const {
  return MUSTER_DATASET_STAGE(MakeUnbatch(node_));
}

Dataset Dataset::Take(int64_t count) const {
  return MUSTER_DATASET_STAGE(MakeTake(node_, count));
}

Dataset Dataset::Skip(int64_t count) const {
  return MUSTER_DATASET_STAGE(MakeSkip(node_, count));
}

Dataset Dataset::Shard(int64_t shard_count, int64_t index) const {
  return MUSTER_DATASET_STAGE(MakeShard(node_, shard_count, index));
}

Dataset Dataset::ShardByPipeline() const {
  return MUSTER_DATASET_STAGE(MakeShardByPipeline(node_));
}

Dataset Dataset::Cache() const {
  return MUSTER_DATASET_STAGE(MakeCache(node_));
}

Dataset Dataset::Cache(absl::string_view filename) const {
  return MUSTER_DATASET_STAGE(MakeFileCache(node_, std::string(filename)));
}

Dataset Dataset::Prefetch(int64_t buffer_size) const {
  return MUSTER_DATASET_STAGE(MakePrefetch(node_, buffer_size));
}

Dataset Dataset::Concatenate(const Dataset& other) const {
  if (!status_.ok()) return *this;
  if (!other.status_.ok()) return other;
  return Dataset(MakeConcatenate({node_, other.node_}));
}

Dataset Dataset::Interleave(ElementToDataset function,
                            std::vector<TensorType> output_types,
                            const InterleaveOptions& options) const {
  return MUSTER_DATASET_STAGE(MakeInterleave(node_, std::move(function),
                                             std::move(output_types), options));
}

#undef MUSTER_DATASET_STAGE

const std::vector<TensorType>& Dataset::element_types() const {
  static const auto& none = *new std::vector<TensorType>();
  return status_.ok() ? node_->element_types() : none;
}

const std::vector<std::string>& Dataset::component_names() const {
  static const auto& none = *new std::vector<std::string>();
  return status_.ok() ? node_->component_names() : none;
}

int64_t Dataset::Cardinality() const {
  return status_.ok() ? node_->cardinality() : kUnknownCardinality;
}

absl::StatusOr<int64_t> Dataset::CountElements() const {
  RETURN_IF_ERROR(status_);
  const int64_t cardinality = Cardinality();
  if (cardinality >= 0) return cardinality;
  if (cardinality == kInfinite) {
    return absl::InvalidArgumentError(
        "the data is infinite and cannot be counted");
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<DatasetIterator> iterator,
                   MakeIterator());
  Element element;
  for (int64_t count = 0;; ++count) {
    ASSIGN_OR_RETURN(const bool has_element, iterator->Next(&element));
    if (!has_element) return count;
  }
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> Dataset::MakeIterator(
    const InputContext& context, int64_t epoch) const {
  RETURN_IF_ERROR(status_);
  if (context.num_input_pipelines < 1 || context.input_pipeline_id < 0 ||
      context.input_pipeline_id >= context.num_input_pipelines ||
      context.num_replicas_in_sync < 1 || epoch < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input pipeline ", context.input_pipeline_id, " of ",
        context.num_input_pipelines, ", ", context.num_replicas_in_sync,
        " replicas, epoch ", epoch,
        "; expected a pipeline below their number, at least one replica and an "
        "epoch that is not negative"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ElementStream> elements,
                   node_->MakeElements({.input = context, .epoch = epoch}));
  return std::make_unique<RootIterator>(node_, std::move(elements));
}

}  // namespace muster
