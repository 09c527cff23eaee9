#ifndef COMMON_LEARN_STRATEGY_CROSS_DEVICE_DISTRIBUTED_VALUES_H_
#define COMMON_LEARN_STRATEGY_CROSS_DEVICE_DISTRIBUTED_VALUES_H_

#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// A value that differs for each replica of this process, in the order of the
// replicas. The values of other processes' replicas are in those processes.
//
// Equivalent to: tf.distribute.DistributedValues, PerReplica.
class PerReplica {
 public:
  PerReplica() = default;  // No replicas.
  explicit PerReplica(std::vector<Tensor> values)
      : values_(std::move(values)) {}

  const std::vector<Tensor>& values() const { return values_; }
  int size() const { return static_cast<int>(values_.size()); }
  const Tensor& operator[](int local_replica) const {
    return values_[local_replica];
  }

 private:
  std::vector<Tensor> values_;
};

// An argument of a function on all replicas: one value for all replicas, or one
// for each.
using DistributedValue = std::variant<Tensor, PerReplica>;

// The replica for which a value is computed.
struct ValueContext {
  int replica_id_in_sync_group = 0;
  int num_replicas_in_sync = 1;
};

using ValueFunction =
    std::function<absl::StatusOr<Tensor>(const ValueContext& context)>;

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_CROSS_DEVICE_DISTRIBUTED_VALUES_H_
