#ifndef COMMON_DATASET_SHARDING_H_
#define COMMON_DATASET_SHARDING_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"

namespace muster {

// What a pipeline's definition shows to whoever divides it among workers, and
// the pipeline that one of them is left with. Nothing is read, but that the
// functions of Interleave() are called for a first element.

// The number of rows that the elements of `dataset` have as the batches that
// Batch() makes; the last one of a pass may have fewer. 0: nothing batches.
//   kInvalidArgument    components come from batches of different sizes
//   as Dataset::status()
absl::StatusOr<int64_t> BatchSizeOf(const Dataset& dataset);

struct ShardingTraits {
  // Take(), Skip() or Shard(): which elements come out depends on how many came
  // before.
  bool counts_elements = false;
  bool shards_by_pipeline = false;  // ShardByPipeline()
};

//   as Dataset::status()
absl::StatusOr<ShardingTraits> ShardingTraitsOf(const Dataset& dataset);

// Files that `dataset` reads, over all its readers. Of an Interleave() with a
// function, the elements that it makes readers of; 0 when their number is not
// known.
//   as Dataset::status()
absl::StatusOr<int64_t> FileCountOf(const Dataset& dataset);

// The pipeline with every reader left with files index, index + shard_count,
// ... of its own. All stages keep their place behind the readers, shuffles
// among them.
//
// Of an Interleave() with a function that makes readers, the elements that it
// is called for are dealt out, before they are shuffled. Of a Concatenate() or
// an Interleave() of a list, every input is sharded where each reads enough
// files; otherwise the inputs themselves are dealt out.
//   kNotFound           something in the dataset reads no files
//   kInvalidArgument    a reader has fewer files than there are shards; says
//                       how many of each
//   as Dataset::status(), and as for reading the elements of an Interleave()
absl::StatusOr<Dataset> ShardFiles(const Dataset& dataset, int shard_count,
                                   int index);

}  // namespace muster

#endif  // COMMON_DATASET_SHARDING_H_
