#ifndef COMMON_LEARN_STRATEGY_INPUT_SUB_BATCHES_H_
#define COMMON_LEARN_STRATEGY_INPUT_SUB_BATCHES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/input/rebatch.h"
#include "common/learn/strategy/input/replica_batch.h"

namespace muster {

// How the elements that a worker draws are divided into its replicas' batches.
enum class Division {
  kNone,       // An element is one replica's batch; replicas draw in order.
  kOneStep,    // An element is the global batch of one step.
  kManySteps,  // An element is divided among several steps.
};

struct SubBatchPlan {
  Division division = Division::kNone;
  RebatchRule rule = RebatchRule::kBalanced;
  // kNone: the batch size of one replica, or 0 if unknown. Otherwise above 0.
  int64_t batch_size = 0;
  InputPlacement placement;
  // The types of a replica's element.
  std::vector<TensorType> element_types;
};

// Divides the elements of `input`, on the calling thread. If the group has
// several replicas, every type of the plan has a batch dimension.
std::unique_ptr<DistributedIterator> DivideAmongReplicas(
    std::unique_ptr<DatasetIterator> input, SubBatchPlan plan);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_INPUT_SUB_BATCHES_H_
