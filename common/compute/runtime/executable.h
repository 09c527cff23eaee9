#ifndef COMMON_COMPUTE_RUNTIME_EXECUTABLE_H_
#define COMMON_COMPUTE_RUNTIME_EXECUTABLE_H_

#include <cstdint>
#include <deque>
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
class StepClock;
class StepGate;

struct ExecutableOptions {
  // Threads per kernel, including the calling thread.
  int intra_op_thread_count = 1;
  // Number of cached plans, one for each combination of argument shapes; the
  // least recently used one is evicted. At least 1.
  int plan_count_max = 8;
  // The maximum memory of a plan's intermediate values and results. The limit
  // protects against graphs from the network, of which a few bytes can request
  // any amount. 0 means nine tenths of what this process may use
  // (AvailableMemoryBytes()).
  int64_t plan_bytes_max = 0;
  // The other replicas of the step, which all run this graph; borrowed, and
  // outlives the executable. Null: the step runs on a single replica.
  ReplicaLink* replica_link = nullptr;
  // The device that runs the step; borrowed, and outlives the executable. Null:
  // the host.
  Device* device = nullptr;
  // With a device: the stream of its work, shared by executables that run one
  // after another and read each other's values; borrowed, and outlives the
  // executable. Null: each executable has its own stream.
  DeviceStream* stream = nullptr;
  // With a device: the kernels that compute constants and the ops for which the
  // device has no kernel. Borrowed; not null.
  const KernelRegistry* host_kernels = nullptr;
  // With a device: an operation without a device kernel runs on the host, and
  // its operands are copied to the host and back. This is logged once for each
  // op. If false, such an operation is an error.
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
  //                        out of range, the graph has variables and there is
  //                        no store, or a device is to run it and
  //                        ChecksNumerics()
  //   kNotFound            the store has no such variable
  static absl::StatusOr<std::unique_ptr<Executable>> Compile(
      Graph graph, const OpRegistry& ops, const KernelRegistry& kernels,
      VariableSessionFactory* variables, ExecutableOptions options = {});

  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  // Runs one step. Requires that no step of Start() is unfinished. Arguments
  // and results are on the host even if a device computes. `results` gets one
  // tensor for each result of the graph. Later runs do not change these
  // tensors, unless the caller passes them again and is their sole owner: then
  // their memory is reused.
  //
  // After an error, only those updates are committed that the store had already
  // applied, `results` is unspecified, and the object can run again.
  //   kInvalidArgument   the arguments do not fit the graph's parameters, or
  //                      the data does not fit an operation (an index out of
  //                      range), or a value is not finite and
  //                      ChecksNumerics(); names the node and its op
  //   kUnimplemented     the device has no kernel for a node
  //   kResourceExhausted the step needs more than plan_bytes_max, or more
  //                      memory than the device has left
  //   kDeadlineExceeded  the device did not finish the step in time
  //   others             from the variable store, and from the replica link
  absl::Status Run(absl::Span<const Tensor> arguments,
                   const RunOptions& options, std::vector<Tensor>* results);

  // Maximum number of steps that have begun and are not finished.
  static constexpr int kStartedMax = 2;

  // True if Start() of this executable can return before the step is done: a
  // device computes the step and decides whether its updates are applied.
  bool overlaps_steps() const { return gate_ != nullptr; }

  // Begins a step. If overlaps_steps() and no part of the step runs on the
  // host, returns once the work is enqueued, without waiting for the device.
  // The caller may then change the argument tensors, unless they are in pinned
  // memory. Otherwise returns when the step is done. Requires that fewer than
  // kStartedMax steps have begun and are not finished.
  //   errors as Run(), except errors in the data; the step has not begun, and
  //           the caller still calls Finish() for the earlier steps
  absl::Status Start(absl::Span<const Tensor> arguments,
                     const RunOptions& options);

  // Returns the results of the step that began last, for work that the caller
  // enqueues on the step's stream. Only such work may read them before
  // Finish(). Returns no results if an error of an earlier step has cancelled
  // this one. Valid until another step begins.
  absl::Span<const Tensor> StartedResults();

  // Blocks until the oldest unfinished step is done, and returns its results as
  // Run() does. The device may still be applying its updates; later work of the
  // device follows them.
  //   errors  as Run(). The steps that began after it have changed nothing and
  //           are discarded.
  absl::Status Finish(std::vector<Tensor>* results);

  int started_count() const { return static_cast<int>(started_.size()); }

  // Starts measuring for how long the device is idle between the steps of
  // Start(). Requires overlaps_steps(), and that no step is unfinished.
  absl::Status MeasureIdleTime();
  // Null before MeasureIdleTime(). Owned by this object.
  StepClock* step_clock() const { return clock_.get(); }

  // The executed graph, without dead nodes.
  const Graph& graph() const { return graph_; }
  // In the order of the session.
  absl::Span<const VariableUse> variable_uses() const { return uses_; }
  int plan_count() const { return static_cast<int>(plans_.size()); }

 private:
  Executable(Graph graph, const OpRegistry& ops, const KernelRegistry& kernels,
             const ExecutableOptions& options);

  struct PlanEntry {
    // Shared with the steps that have begun.
    std::shared_ptr<Plan> plan;
    // Extents of the arguments of all replicas for which the plan was made, as
    // in ReplicaShapes; empty if the plan depends on its own arguments only.
    std::vector<int64_t> replica_extents;
  };

  // A step that has begun and is not finished.
  struct Started {
    std::shared_ptr<Plan> plan;
    bool is_unfinished = false;   // True if Plan::Start() began it.
    std::vector<Tensor> results;  // Set if the step is already done.
  };

  absl::Status OpenSession(VariableSessionFactory* variables);
  // Blocks until the device is idle.
  absl::Status AwaitStarted();
  // Checks the arguments and returns their plan.
  absl::StatusOr<std::shared_ptr<Plan>> Prepare(
      absl::Span<const Tensor> arguments, const RunOptions& options);
  absl::Status RunPlan(Plan* plan, absl::Span<const Tensor> arguments,
                       const RunOptions& options, std::vector<Tensor>* results);
  absl::Status StartPlan(Plan* plan, absl::Span<const Tensor> arguments,
                         const RunOptions& options);
  // Returns the plan for arguments of these types; creates a missing one.
  absl::StatusOr<std::shared_ptr<Plan>> FindPlan(
      absl::Span<const Tensor> arguments);
  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(
      absl::Span<const Tensor> arguments) const;
  // Plans a subgraph for the host, which runs the subgraphs of device steps,
  // too.
  absl::StatusOr<std::unique_ptr<Plan>> MakeSubgraphPlan(
      const Graph& subgraph, absl::Span<const TensorType> parameters,
      int64_t bytes_max) const;
  // Returns an equivalent graph with fewer and larger nodes that `kernels`
  // support.
  Graph Simplified(Graph typed, const KernelRegistry& kernels) const;
  const KernelRegistry& host_kernels() const {
    return options_.device == nullptr ? kernels_ : *options_.host_kernels;
  }
  absl::Span<const int64_t> replica_extents() const;

  const Graph graph_;
  const OpRegistry& ops_;
  const KernelRegistry& kernels_;
  const ExecutableOptions options_;
  std::vector<VariableUse> uses_;
  std::unique_ptr<DeviceStream> own_stream_;  // Null if it is borrowed.
  DeviceStream* stream_ = nullptr;            // Null on the host.
  // Null on the host, and if the session does not use it.
  std::unique_ptr<StepGate> gate_;
  std::unique_ptr<StepClock> clock_;
  bool variables_on_device_ = false;
  std::unique_ptr<VariableSession> session_;  // Null without variables.
  GatedSteps* gated_ = nullptr;  // Of session_, if it uses the gate.
  // Null if the types of this replica's own arguments are sufficient.
  std::unique_ptr<ReplicaShapes> replica_shapes_;
  std::list<PlanEntry> plans_;   // Most recently used first.
  std::deque<Started> started_;  // The oldest one first.
  std::vector<Tensor> started_results_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_EXECUTABLE_H_
