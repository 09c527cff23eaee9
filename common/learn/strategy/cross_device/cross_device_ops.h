#ifndef COMMON_LEARN_STRATEGY_CROSS_DEVICE_CROSS_DEVICE_OPS_H_
#define COMMON_LEARN_STRATEGY_CROSS_DEVICE_CROSS_DEVICE_OPS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/cross_device/distributed_values.h"
#include "common/net/collectives/on_device/local_device_group.h"
#include "common/net/collectives/reduce_op.h"

namespace muster {

// Combines the values of the replicas of one process into one: the values of
// custom loops, and the gradients of a MirroredStrategy that uses it.
//
// Values and the gradients of replicas on CPUs are on the host. Replicas on
// GPUs combine gradients in the memory of the GPUs, as device_reduction()
// specifies; num_packs() does not apply to them.
//
// Immutable and thread-safe.
//
// Equivalent to: tf.distribute.CrossDeviceOps.
class CrossDeviceOps {
 public:
  virtual ~CrossDeviceOps() = default;

  virtual absl::string_view name() const = 0;

  // Where replicas on GPUs add their gradients. nullopt means over NCCL.
  virtual std::optional<DeviceReduction> device_reduction() const = 0;

  // Reduces the values of `replica_count` replicas. The mean of a single value
  // for all replicas is that value, and the sum of zeros is zero.
  //   kInvalidArgument  wrong number of values, or values of several types; or
  //                     a sum of one value for several replicas, which is
  //                     ambiguous: the value could count once or once per
  //                     replica
  //   kUnimplemented    values of this dtype have no reduction
  absl::StatusOr<Tensor> Reduce(ReduceOp op, const DistributedValue& value,
                                int replica_count) const;

  // As Reduce() for each of `values`, with fewer and larger operations.
  absl::StatusOr<std::vector<Tensor>> BatchReduce(
      ReduceOp op, absl::Span<const PerReplica> values,
      int replica_count) const;

  // output[i] = op of inputs[...][i], where `inputs` has one array per replica,
  // in num_packs() parts. `output` differs from all inputs.
  void ReduceArrays(ReduceOp op, DType dtype, int64_t element_count,
                    absl::Span<const void* const> inputs, void* output) const;

  // Returns a separate tensor for each of `replica_count` replicas.
  PerReplica Broadcast(const Tensor& value, int replica_count) const;

 protected:
  // The number of packs that BatchReduce() uses; 0 means one per tensor.
  // Gradients are concatenated according to
  // CommunicationOptions::bytes_per_pack, and each of those packs is divided
  // into this many.
  virtual int num_packs() const { return 0; }

  // output[i] = op of inputs[...][i]; `output` differs from all inputs.
  virtual void Combine(ReduceOp op, DType dtype, int64_t element_count,
                       absl::Span<const void* const> inputs,
                       void* output) const = 0;

 private:
  void CombinePacked(ReduceOp op, DType dtype,
                     absl::Span<const PerReplica> values,
                     absl::Span<const int> positions,
                     std::vector<Tensor>* reduced) const;
};

// One device sums the values in replica order.
std::shared_ptr<const CrossDeviceOps> ReductionToOneDevice();

struct PackOptions {
  // The number of packs of equal size into which tensors are concatenated by
  // dtype; the last one has the remainder. 0: every tensor is a pack.
  int num_packs = 1;
};

// Reduces each half of the replicas first, then the two results. With fewer
// than four replicas, this is ReductionToOneDevice().
//   kInvalidArgument  num_packs is negative
absl::StatusOr<std::shared_ptr<const CrossDeviceOps>> HierarchicalCopyAllReduce(
    const PackOptions& options = {});

// Combines gradients over NCCL if each replica has its own GPU. If NCCL cannot
// connect the replicas, and for values on the host, this is
// ReductionToOneDevice() with packs. A MirroredStrategy whose replicas NCCL
// cannot connect logs a warning.
//   kInvalidArgument  num_packs is negative
absl::StatusOr<std::shared_ptr<const CrossDeviceOps>> NcclAllReduce(
    const PackOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_CROSS_DEVICE_CROSS_DEVICE_OPS_H_
