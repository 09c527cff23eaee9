#ifndef COMMON_COMPUTE_RUNTIME_EXECUTABLE_H_
#define COMMON_COMPUTE_RUNTIME_EXECUTABLE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/runtime/replica_link.h"
#include "common/compute/runtime/replica_shapes.h"
#include "common/compute/runtime/run_options.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/tensor/tensor.h"

namespace muster {

class Device;
class Plan;
class DeviceStream;

struct ExecutableOptions {
  // Threads per kernel, including the calling thread.
  int intra_op_thread_count = 1;
  // Number of plans that are kept, one for each combination of argument shapes;
  // the least recently used one is evicted. At least 1.
  int plan_count_max = 8;
  // The maximum memory of a plan's intermediate values and results. Graphs come
  // over the network, and a few bytes of one can request any amount.
  // 0: nine tenths of what this process may use (AvailableMemoryBytes()).
  int64_t plan_bytes_max = 0;
  // The other replicas of the step, which all run this graph; borrowed, and
  // outlives the executable. Null: the step runs on a single replica.
  ReplicaLink* replica_link = nullptr;
  // The device that runs the step; borrowed, and outlives the executable. Null:
  // the host.
  Device* device = nullptr;
  // With a device: the stream of its work, for executables that run one after
  // another on values of each other; borrowed, and outlives the executable.
  // Null: each has its own.
  DeviceStream* stream = nullptr;
  // With a device: computes constants, and what the device has no kernel for.
  // Borrowed; not null.
  const KernelRegistry* host_kernels = nullptr;
  // With a device: an operation without a device kernel runs on the host, and
  // its operands are copied to the host and back. Logged once for each op. If
  // false, the operation is an error.
  //
  // Equivalent to: tf.config.set_soft_device_placement.
  bool soft_placement = true;
};

// A graph prepared to run on one device. The first run with new argument shapes
// makes a plan (selects kernels, lays out memory). Later runs only execute it
// and allocate nothing.
//
// Not thread-safe: a plan has one set of buffers. Compile() is cheap enough to
// give every thread that runs steps its own Executable.
class Executable {
 public:
  // `ops`, `kernels` and `variables` are borrowed and must outlive the result.
  // `variables` may be null if the graph has no variables.
  //   kInvalidArgument     the graph is malformed (VerifyGraph), an option is
  //                        out of range, or the graph has variables and there
  //                        is no store
  //   kNotFound            the store has no such variable
  static absl::StatusOr<std::unique_ptr<Executable>> Compile(
      Graph graph, const OpRegistry& ops, const KernelRegistry& kernels,
      VariableSessionFactory* variables, ExecutableOptions options = {});

  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  // Runs one step. Arguments and results are on the host, also if a device
  // computes. `results` gets one tensor for each result of the graph. The
  // caller owns their content: later runs do not write to it, unless the caller
  // passes a tensor again as its sole owner, in which case its memory is
  // reused.
  //
  // After an error, nothing is committed beyond what the store had already
  // applied, `results` is unspecified, and the object can run again.
  //   kInvalidArgument   the arguments do not fit the graph's parameters, or
  //                      the data does not fit an operation (an index out of
  //                      range); names the node and its op
  //   kUnimplemented     the device has no kernel for a node
  //   kResourceExhausted the step needs more than plan_bytes_max, or more
  //                      memory than the device has left
  //   kDeadlineExceeded  the device did not finish the step in time
  //   any                from the variable store, and from the replica link
  absl::Status Run(absl::Span<const Tensor> arguments,
                   const RunOptions& options, std::vector<Tensor>* results);

  // The graph that is executed: without nodes on which nothing depends.
  const Graph& graph() const { return graph_; }
  // In the session's order.
  absl::Span<const VariableUse> variable_uses() const { return uses_; }
  int plan_count() const { return static_cast<int>(plans_.size()); }

 private:
  Executable(Graph graph, const OpRegistry& ops, const KernelRegistry& kernels,
             const ExecutableOptions& options);

  struct PlanEntry {
    std::unique_ptr<Plan> plan;
    // The types for which the plan was made in addition to its own arguments,
    // as in ReplicaShapes; empty if there are none.
    std::vector<int64_t> replica_extents;
  };

  // Returns the plan for arguments of these types; makes it if there is none.
  absl::StatusOr<Plan*> FindPlan(absl::Span<const Tensor> arguments);
  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(
      absl::Span<const Tensor> arguments) const;
  absl::Span<const int64_t> replica_extents() const;

  const Graph graph_;
  const OpRegistry& ops_;
  const KernelRegistry& kernels_;
  const ExecutableOptions options_;
  std::vector<VariableUse> uses_;
  std::unique_ptr<DeviceStream> own_stream_;  // Null if it is borrowed.
  DeviceStream* stream_ = nullptr;            // Null on the host.
  std::unique_ptr<VariableSession> session_;  // Null without variables.
  // Null if the types of this replica's own arguments are sufficient.
  std::unique_ptr<ReplicaShapes> replica_shapes_;
  std::list<PlanEntry> plans_;  // Most recently used first.
};

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_EXECUTABLE_H_
