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

  // Runs one step; none has begun by Start(). Arguments and results are on the
  // host, also if a device computes. `results` gets one tensor for each result
  // of the graph. The caller owns their content: later runs do not write to it,
  // unless the caller passes a tensor again as its sole owner, in which case
  // its memory is reused.
  //
  // After an error, nothing is committed beyond what the store had already
  // applied, `results` is unspecified, and the object can run again.
  //   kInvalidArgument   the arguments do not fit the graph's parameters, or
  //                      the data does not fit an operation (an index out of
  //                      range), or a value is not finite and
  //                      ChecksNumerics(); names the node and its op
  //   kUnimplemented     the device has no kernel for a node
  //   kResourceExhausted the step needs more than plan_bytes_max, or more
  //                      memory than the device has left
  //   kDeadlineExceeded  the device did not finish the step in time
  //   any                from the variable store, and from the replica link
  absl::Status Run(absl::Span<const Tensor> arguments,
                   const RunOptions& options, std::vector<Tensor>* results);

  // How many steps may have begun without being finished.
  static constexpr int kStartedMax = 2;

  // True if Start() of this executable can return before the step is done: a
  // device computes, and decides itself whether the updates are applied.
  bool overlaps_steps() const { return gate_ != nullptr; }

  // Begins a step. If overlaps_steps(), and the host has no part in the step,
  // it returns when the work is enqueued, without waiting for the device; the
  // argument tensors may be changed then, unless they are in pinned memory.
  // Otherwise it returns when the step is done. Fewer than kStartedMax steps
  // have begun and are not finished.
  //   errors  as Run(), but for errors in the data; the step has not begun, and
  //           Finish() is due for the steps before
  absl::Status Start(absl::Span<const Tensor> arguments,
                     const RunOptions& options);

  // The results of the last step that has begun, for work that is enqueued on
  // the stream of the step behind it: only such work may read them before
  // Finish(). None if an error of an earlier step has ended this one. Valid
  // until another step begins.
  absl::Span<const Tensor> StartedResults();

  // Blocks until the first step that has begun is done, and returns its results
  // as Run() does. Updates of the device may still be under way; its later work
  // sees them.
  //   errors  as Run(). The steps that began after it have changed nothing, and
  //           count as not begun.
  absl::Status Finish(std::vector<Tensor>* results);

  int started_count() const { return static_cast<int>(started_.size()); }

  // Measures from now on for how long the device is idle between the steps of
  // Start(). With overlaps_steps(), and no step begun.
  absl::Status MeasureIdleTime();
  // Null before MeasureIdleTime(). Owned by this.
  StepClock* step_clock() const { return clock_.get(); }

  // The graph that is executed: without nodes on which nothing depends.
  const Graph& graph() const { return graph_; }
  // In the session's order.
  absl::Span<const VariableUse> variable_uses() const { return uses_; }
  int plan_count() const { return static_cast<int>(plans_.size()); }

 private:
  Executable(Graph graph, const OpRegistry& ops, const KernelRegistry& kernels,
             const ExecutableOptions& options);

  struct PlanEntry {
    // Shared with the steps that have begun.
    std::shared_ptr<Plan> plan;
    // The types for which the plan was made in addition to its own arguments,
    // as in ReplicaShapes; empty if there are none.
    std::vector<int64_t> replica_extents;
  };

  // A step that has begun.
  struct Started {
    std::shared_ptr<Plan> plan;
    bool is_under_way = false;    // By Plan::Start().
    std::vector<Tensor> results;  // Unless it is under way.
  };

  absl::Status OpenSession(VariableSessionFactory* variables);
  // Blocks until the device is idle.
  absl::Status AwaitStarted();
  // Checks the arguments, and returns the plan for them.
  absl::StatusOr<std::shared_ptr<Plan>> Prepare(
      absl::Span<const Tensor> arguments, const RunOptions& options);
  absl::Status RunPlan(Plan* plan, absl::Span<const Tensor> arguments,
                       const RunOptions& options, std::vector<Tensor>* results);
  absl::Status StartPlan(Plan* plan, absl::Span<const Tensor> arguments,
                         const RunOptions& options);
  // Returns the plan for arguments of these types; makes it if there is none.
  absl::StatusOr<std::shared_ptr<Plan>> FindPlan(
      absl::Span<const Tensor> arguments);
  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(
      absl::Span<const Tensor> arguments) const;
  // For the host, which also runs the subgraphs of steps on a device.
  absl::StatusOr<std::unique_ptr<Plan>> MakeSubgraphPlan(
      const Graph& subgraph, absl::Span<const TensorType> parameters,
      int64_t bytes_max) const;
  // Returns the graph with fewer and larger nodes, which `kernels` have.
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
  std::deque<Started> started_;  // The first one first.
  std::vector<Tensor> started_results_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_EXECUTABLE_H_
