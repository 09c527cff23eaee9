#ifndef COMMON_LEARN_STRATEGY_REPLICA_CROSS_DEVICE_OPS_H_
#define COMMON_LEARN_STRATEGY_REPLICA_CROSS_DEVICE_OPS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/replica/distributed_values.h"
#include "common/net/collectives/reduce_op.h"

namespace muster {

// How the replicas of one process make one value of several: the work of the
// host, between steps. (Gradients of a step travel in its own collectives.)
// Devices of one process reach the same memory, so what is reduced is there for
// all of them.
//
// Immutable and thread-safe.
//
// Equivalent to: tf.distribute.CrossDeviceOps.
class CrossDeviceOps {
 public:
  virtual ~CrossDeviceOps() = default;

  virtual absl::string_view name() const = 0;

  // The reduction of the values of `replica_count` replicas. One value for all
  // of them is its own mean; zeros are their own sum.
  //   kInvalidArgument  another number of values, or of several types; a sum of
  //                     one value for several replicas, which could mean it
  //                     once or once for each
  //   kUnimplemented    values of this dtype have no reduction
  absl::StatusOr<Tensor> Reduce(ReduceOp op, const DistributedValue& value,
                                int replica_count) const;

  // As Reduce() of each, with fewer and larger pieces of work.
  absl::StatusOr<std::vector<Tensor>> BatchReduce(
      ReduceOp op, absl::Span<const PerReplica> values,
      int replica_count) const;

  // For each of `replica_count` replicas a tensor of its own.
  PerReplica Broadcast(const Tensor& value, int replica_count) const;

 protected:
  // Into how many pieces BatchReduce() cuts what it has to do; 0: one for each
  // tensor.
  virtual int num_packs() const { return 0; }

  // output[i] = op of inputs[...][i]; `output` is none of the inputs.
  virtual void Combine(ReduceOp op, DType dtype, int64_t element_count,
                       absl::Span<const void* const> inputs,
                       void* output) const = 0;

 private:
  void CombinePacked(ReduceOp op, DType dtype,
                     absl::Span<const PerReplica> values,
                     absl::Span<const int> positions,
                     std::vector<Tensor>* reduced) const;
};

// One device adds up the values in replica order.
std::shared_ptr<const CrossDeviceOps> ReductionToOneDevice();

struct PackOptions {
  // Into how many equal pieces tensors are cut, put one behind the other by
  // dtype; the last has what remains. 0: every tensor is a piece.
  int num_packs = 1;
};

// Each half of the replicas first, then the two halves. With fewer than four
// replicas that is ReductionToOneDevice().
//   kInvalidArgument  num_packs is negative
absl::StatusOr<std::shared_ptr<const CrossDeviceOps>> HierarchicalCopyAllReduce(
    const PackOptions& options = {});

// NCCL is for replicas that are GPUs. Among others, a warning says so, and this
// is ReductionToOneDevice() with packs.
//   kInvalidArgument  num_packs is negative
absl::StatusOr<std::shared_ptr<const CrossDeviceOps>> NcclAllReduce(
    const PackOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_REPLICA_CROSS_DEVICE_OPS_H_
