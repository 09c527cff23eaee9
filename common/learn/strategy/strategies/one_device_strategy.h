#ifndef COMMON_LEARN_STRATEGY_STRATEGIES_ONE_DEVICE_STRATEGY_H_
#define COMMON_LEARN_STRATEGY_STRATEGIES_ONE_DEVICE_STRATEGY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/learn/strategy/input/distributed_dataset.h"
#include "common/learn/strategy/strategies/synchronous_strategy.h"

namespace muster {

struct OneDeviceStrategyOptions {
  std::string device = "cpu:0";  // Or "gpu:0".
  // As MirroredStrategyOptions.
  int thread_count = 0;
  InputOptions input = {};
  int deterministic_micro_batches = 0;
};

// One replica on one device, with the implementation for many replicas, to test
// programs for several replicas.
//
// Equivalent to: tf.distribute.OneDeviceStrategy.
class OneDeviceStrategy final : public SynchronousStrategy {
 public:
  //   kInvalidArgument, kUnimplemented  as ParseDevice(), and as
  //                                     SynchronousStrategy::CheckOptions()
  //   kUnavailable                      as FindReplicaDevices()
  static absl::StatusOr<std::unique_ptr<OneDeviceStrategy>> Create(
      const OneDeviceStrategyOptions& options = {});

 private:
  using SynchronousStrategy::SynchronousStrategy;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_STRATEGIES_ONE_DEVICE_STRATEGY_H_
