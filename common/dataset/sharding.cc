#include "common/dataset/sharding.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/dataset/dataset_node.h"
#include "common/dataset/order_stages.h"

namespace muster {
namespace {

// Calls `visit` for `node` and everything upstream.
void Visit(const DatasetNode& node,
           absl::FunctionRef<void(const DatasetNode&)> visit) {
  visit(node);
  for (const NodePointer& input : node.inputs()) Visit(*input, visit);
}

absl::StatusOr<int64_t> BatchSize(const DatasetNode& node) {
  switch (node.kind()) {
    case StageKind::kBatch:
      return node.batch_size();
    case StageKind::kSource:
    case StageKind::kFiles:
    case StageKind::kUnbatch:
    case StageKind::kWindow:
      return 0;
    case StageKind::kInterleaveFunction: {
      ASSIGN_OR_RETURN(const NodePointer made, node.FirstMade());
      return made == nullptr ? 0 : BatchSize(*made);
    }
    default:
      break;
  }
  const bool is_zip = node.kind() == StageKind::kZip;
  int64_t largest = 0;
  int64_t smallest = INT64_MAX;
  for (const NodePointer& input : node.inputs()) {
    ASSIGN_OR_RETURN(const int64_t size, BatchSize(*input));
    largest = std::max(largest, size);
    smallest = std::min(smallest, size);
  }
  if (is_zip && smallest != largest) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Zip: one dataset has batches of ", smallest, " and another of ",
        largest, "; expected one size, or Batch() after Zip()"));
  }
  return smallest == 0 ? 0 : largest;
}

// The smallest number of files of any reader in `node`; 0: a source reads none.
absl::StatusOr<int64_t> FewestFiles(const DatasetNode& node) {
  switch (node.kind()) {
    case StageKind::kFiles:
      return node.file_count();
    case StageKind::kSource:
      return 0;
    case StageKind::kInterleaveFunction: {
      ASSIGN_OR_RETURN(const NodePointer made, node.FirstMade());
      if (made == nullptr) return 0;
      ASSIGN_OR_RETURN(const int64_t files, FewestFiles(*made));
      const int64_t elements = node.inputs()[0]->cardinality();
      if (files == 0) return 0;
      return elements < 0 ? INT64_MAX : elements;
    }
    default:
      break;
  }
  int64_t fewest = INT64_MAX;
  for (const NodePointer& input : node.inputs()) {
    ASSIGN_OR_RETURN(const int64_t files, FewestFiles(*input));
    fewest = std::min(fewest, files);
  }
  return fewest;
}

struct Shards {
  int count = 1;
  int index = 0;
};

absl::Status TooFewFiles(int64_t file_count, const Shards& shards) {
  return absl::InvalidArgumentError(
      absl::StrCat("the dataset reads ", file_count,
                   file_count == 1 ? " file" : " files", " and there are ",
                   shards.count, " workers; each needs a file of its own"));
}

absl::StatusOr<NodePointer> ShardNode(const NodePointer& node,
                                      const Shards& shards);

absl::StatusOr<NodePointer> ShardFilesOf(const DatasetNode& reader,
                                         const Shards& shards) {
  if (reader.file_count() < shards.count) {
    return TooFewFiles(reader.file_count(), shards);
  }
  std::vector<int> files;
  for (int file = shards.index; file < reader.file_count();
       file += shards.count) {
    files.push_back(file);
  }
  return reader.WithFiles(files);
}

// Inserts a shard stage directly after the source of `node`, so that all
// workers shard the same elements, whatever reorders them later.
absl::StatusOr<NodePointer> ShardSource(const NodePointer& node,
                                        const Shards& shards) {
  const std::vector<NodePointer> inputs = node->inputs();
  if (inputs.size() == 1 && node->kind() != StageKind::kInterleaveFunction) {
    ASSIGN_OR_RETURN(NodePointer input, ShardSource(inputs[0], shards));
    return node->WithInputs({std::move(input)});
  }
  bool shuffles = false;
  Visit(*node, [&](const DatasetNode& stage) {
    shuffles |= stage.kind() == StageKind::kShuffle;
  });
  if (shuffles) {
    return absl::InvalidArgumentError(
        "the files of Interleave() come from several datasets that are "
        "shuffled before they are put together; shuffle them afterwards");
  }
  return MakeShard(node, shards.count, shards.index);
}

absl::StatusOr<NodePointer> ShardInterleaveFunction(const NodePointer& node,
                                                    const Shards& shards) {
  ASSIGN_OR_RETURN(const int64_t files, FewestFiles(*node));
  if (files == 0) {
    return absl::NotFoundError(
        "the datasets that the function of Interleave() makes read no files");
  }
  if (files < shards.count) return TooFewFiles(files, shards);
  ASSIGN_OR_RETURN(NodePointer input, ShardSource(node->inputs()[0], shards));
  return node->WithInputs({std::move(input)});
}

// Concatenate() and Interleave() of a list.
absl::StatusOr<NodePointer> ShardList(const NodePointer& node,
                                      const Shards& shards) {
  const std::vector<NodePointer> inputs = node->inputs();
  std::vector<NodePointer> left;
  ASSIGN_OR_RETURN(const int64_t fewest, FewestFiles(*node));
  if (fewest == 0 || fewest >= shards.count) {
    for (const NodePointer& input : inputs) {
      ASSIGN_OR_RETURN(left.emplace_back(), ShardNode(input, shards));
    }
    return node->WithInputs(std::move(left));
  }
  if (static_cast<int64_t>(inputs.size()) < shards.count) {
    return TooFewFiles(std::max<int64_t>(fewest, inputs.size()), shards);
  }
  for (size_t i = shards.index; i < inputs.size(); i += shards.count) {
    left.push_back(inputs[i]);
  }
  return node->WithInputs(std::move(left));
}

absl::StatusOr<NodePointer> ShardNode(const NodePointer& node,
                                      const Shards& shards) {
  switch (node->kind()) {
    case StageKind::kFiles:
      return ShardFilesOf(*node, shards);
    case StageKind::kSource:
      return absl::NotFoundError(
          "a source of the dataset reads no files: it is in memory or made on "
          "the fly");
    case StageKind::kInterleaveFunction:
      return ShardInterleaveFunction(node, shards);
    case StageKind::kConcatenate:
    case StageKind::kInterleave:
      return ShardList(node, shards);
    default:
      break;
  }
  std::vector<NodePointer> inputs;
  for (const NodePointer& input : node->inputs()) {
    ASSIGN_OR_RETURN(inputs.emplace_back(), ShardNode(input, shards));
  }
  return node->WithInputs(std::move(inputs));
}

}  // namespace

absl::StatusOr<int64_t> BatchSizeOf(const Dataset& dataset) {
  RETURN_IF_ERROR(dataset.status());
  return BatchSize(*dataset.node());
}

absl::StatusOr<ShardingTraits> ShardingTraitsOf(const Dataset& dataset) {
  RETURN_IF_ERROR(dataset.status());
  ShardingTraits traits;
  Visit(*dataset.node(), [&](const DatasetNode& node) {
    traits.counts_elements |=
        node.kind() == StageKind::kCount || node.kind() == StageKind::kWindow;
    traits.shards_by_pipeline |= node.kind() == StageKind::kShardByPipeline;
  });
  return traits;
}

absl::StatusOr<int64_t> FileCountOf(const Dataset& dataset) {
  RETURN_IF_ERROR(dataset.status());
  int64_t count = 0;
  absl::Status status;
  Visit(*dataset.node(), [&](const DatasetNode& node) {
    count += node.file_count();
    if (node.kind() != StageKind::kInterleaveFunction) return;
    const absl::StatusOr<int64_t> made = FewestFiles(node);
    status.Update(made.status());
    if (made.ok() && *made != INT64_MAX) count += *made;
  });
  RETURN_IF_ERROR(status);
  return count;
}

absl::StatusOr<Dataset> ShardFiles(const Dataset& dataset, int shard_count,
                                   int index) {
  RETURN_IF_ERROR(dataset.status());
  if (shard_count < 1 || index < 0 || index >= shard_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("shard ", index, " of ", shard_count,
                     "; expected an index from 0 to below the shards"));
  }
  ASSIGN_OR_RETURN(NodePointer sharded,
                   ShardNode(dataset.node(), {shard_count, index}));
  return Dataset(std::move(sharded));
}

}  // namespace muster
