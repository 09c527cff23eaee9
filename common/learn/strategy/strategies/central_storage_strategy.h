#ifndef COMMON_LEARN_STRATEGY_STRATEGIES_CENTRAL_STORAGE_STRATEGY_H_
#define COMMON_LEARN_STRATEGY_STRATEGIES_CENTRAL_STORAGE_STRATEGY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/learn/strategy/communication_options.h"
#include "common/learn/strategy/input/distributed_dataset.h"
#include "common/learn/strategy/strategies/synchronous_strategy.h"

namespace muster {

struct CentralStorageStrategyOptions {
  // One per replica. Empty means all GPUs, or one CPU if there is no GPU.
  std::vector<std::string> compute_devices = {};
  std::string parameter_device = "cpu:0";
  // As MirroredStrategyOptions.
  CommunicationOptions communication = {};
  int thread_count = 0;
  InputOptions input = {};
  int deterministic_micro_batches = 0;
};

// Replicas on devices of this process that share one copy of the variables:
// gradients are summed and applied once.
//
// Equivalent to: tf.distribute.experimental.CentralStorageStrategy.
class CentralStorageStrategy final : public SynchronousStrategy {
 public:
  //   kInvalidArgument, kUnimplemented  as ParseDevices(), and as
  //                                     SynchronousStrategy::CheckOptions()
  static absl::StatusOr<std::unique_ptr<CentralStorageStrategy>> Create(
      const CentralStorageStrategyOptions& options = {});

 private:
  using SynchronousStrategy::SynchronousStrategy;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_STRATEGIES_CENTRAL_STORAGE_STRATEGY_H_
