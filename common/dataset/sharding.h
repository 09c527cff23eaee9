#ifndef COMMON_DATASET_SHARDING_H_
#define COMMON_DATASET_SHARDING_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"

namespace muster {

// Inspects a pipeline's definition in order to divide it among workers, and
// computes the pipeline of one of them. Reads nothing, except that it calls the
// functions of Interleave() for the first element.

// Returns the number of rows per element of `dataset`, as produced by Batch();
// the last element of a pass may have fewer. 0: there is no batching.
//   kInvalidArgument    components come from batches of different sizes
//   as Dataset::status()
absl::StatusOr<int64_t> BatchSizeOf(const Dataset& dataset);

struct ShardingTraits {
  // Take(), Skip(), Shard(), Window() or SampleFromDatasets() with
  // stop_on_empty_dataset: the set of output elements depends on their
  // positions.
  bool counts_elements = false;
  bool shards_by_pipeline = false;  // ShardByPipeline()
};

//   as Dataset::status()
absl::StatusOr<ShardingTraits> ShardingTraitsOf(const Dataset& dataset);

// Returns the number of files that `dataset` reads, over all its readers. For
// an Interleave() with a function, the number of elements from which it creates
// readers; 0 if it is not known.
//   as Dataset::status()
absl::StatusOr<int64_t> FileCountOf(const Dataset& dataset);

// Returns the pipeline in which every reader has only files index, index +
// shard_count, ... of its own. All stages after the readers are unchanged,
// including shuffles.
//
// For an Interleave() with a function that creates readers, its input elements
// are sharded before they are shuffled. For a Concatenate() or an Interleave()
// of a list, every input is sharded if each reads enough files; otherwise the
// inputs themselves are distributed.
//   kNotFound           a part of the dataset reads no files
//   kInvalidArgument    a reader has fewer files than there are shards; gives
//                       both numbers
//   as Dataset::status(), and as for reading the elements of an Interleave()
absl::StatusOr<Dataset> ShardFiles(const Dataset& dataset, int shard_count,
                                   int index);

}  // namespace muster

#endif  // COMMON_DATASET_SHARDING_H_
