#ifndef COMMON_LEARN_STRATEGY_STRATEGIES_MIRRORED_STRATEGY_H_
#define COMMON_LEARN_STRATEGY_STRATEGIES_MIRRORED_STRATEGY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/learn/strategy/communication_options.h"
#include "common/learn/strategy/cross_device/cross_device_ops.h"
#include "common/learn/strategy/input/distributed_dataset.h"
#include "common/learn/strategy/strategies/synchronous_strategy.h"

namespace muster {

struct MirroredStrategyOptions {
  // One per replica: {"cpu:0", "cpu:1"}. Empty means all GPUs, or one CPU if
  // there is no GPU.
  std::vector<std::string> devices = {};
  CommunicationOptions communication = {};
  // Threads per operation of one replica; 0: AvailableCpus() divided by the
  // number of replicas.
  int thread_count = 0;
  InputOptions input = {};
  // As SynchronousStrategy::Options.
  int deterministic_micro_batches = 0;
  // How the replicas' gradients and the values passed to Reduce() are combined.
  // Sparse gradients are always concatenated in replica order. If null,
  // gradients use the all-reduce of shared memory, which has the same order as
  // ReductionToOneDevice(), and on GPUs NCCL or copies between GPUs; Reduce()
  // uses ReductionToOneDevice(). Must be null with deterministic_micro_batches,
  // whose order of summation is fixed.
  std::shared_ptr<const CrossDeviceOps> cross_device_ops = nullptr;
};

// Replicas on devices of this process, each with a copy of all variables.
//
//   ASSIGN_OR_RETURN(auto strategy, MirroredStrategy::Create(
//                                       {.devices = {"cpu:0", "cpu:1"}}));
//
// Equivalent to: tf.distribute.MirroredStrategy.
class MirroredStrategy final : public SynchronousStrategy {
 public:
  //   kInvalidArgument, kUnimplemented  as ParseDevices(), and as
  //                                     SynchronousStrategy::CheckOptions()
  static absl::StatusOr<std::unique_ptr<MirroredStrategy>> Create(
      const MirroredStrategyOptions& options = {});

 private:
  using SynchronousStrategy::SynchronousStrategy;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_STRATEGIES_MIRRORED_STRATEGY_H_
