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
#include "common/compute/variables/variable_store.h"
#include "common/core/tensor/tensor.h"

namespace muster {

class Plan;

struct ExecutableOptions {
  // Threads that one kernel may use, the calling thread among them.
  int intra_op_thread_count = 1;
  // Plans that are kept, one for each combination of argument shapes; the one
  // unused for longest makes room. At least 1.
  int plan_count_max = 8;
  // What a plan may need for its intermediate values and results. Graphs come
  // over the network, and a few bytes of one can ask for any amount.
  int64_t plan_bytes_max = int64_t{1} << 36;
  // The other replicas of the step, which all run this graph; borrowed, and
  // outlives the executable. Null: the step runs alone, and is all replicas.
  ReplicaLink* replica_link = nullptr;
};

// A graph made ready to run on one device. The first run with new argument
// shapes makes a plan (kernels chosen, memory laid out); every later one only
// executes it, and then allocates nothing.
//
// Not thread-safe: a plan has one set of buffers. Compile() is cheap enough to
// give every thread that runs steps an Executable of its own.
class Executable {
 public:
  // `ops`, `kernels` and `variables` are borrowed and must outlive the result.
  // `variables` may be null when the graph has no variables.
  //   kInvalidArgument     the graph is malformed (VerifyGraph), an option is
  //                        out of range, or the graph has variables and there
  //                        is no store
  //   kNotFound            the store has no such variable
  static absl::StatusOr<std::unique_ptr<Executable>> Compile(
      Graph graph, const OpRegistry& ops, const KernelRegistry& kernels,
      VariableStore* variables, ExecutableOptions options = {});

  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  // Runs one step. `results` gets one tensor for each result of the graph; what
  // it holds is the caller's and no later run writes to it, unless the caller
  // hands it in again as the sole owner: then its memory is used again.
  //
  // After an error nothing is committed beyond what the store had applied when
  // it came, `results` is unspecified, and the object can run again.
  //   kInvalidArgument   the arguments do not fit the graph's parameters, or
  //                      the data does not fit an operation (an index out of
  //                      range); names the node and its op
  //   kUnimplemented     the device has no kernel for a node
  //   kResourceExhausted the step needs more than plan_bytes_max
  //   any                from the variable store, and from the replica link
  absl::Status Run(absl::Span<const Tensor> arguments,
                   const RunOptions& options, std::vector<Tensor>* results);

  // The graph as it runs: without nodes that nothing depends on.
  const Graph& graph() const { return graph_; }
  // In the order in which the session knows them.
  absl::Span<const VariableUse> variable_uses() const { return uses_; }
  int plan_count() const { return static_cast<int>(plans_.size()); }

 private:
  Executable(Graph graph, const OpRegistry& ops, const KernelRegistry& kernels,
             const ExecutableOptions& options);

  struct PlanEntry {
    std::unique_ptr<Plan> plan;
    // What the plan is for besides its own arguments: as ReplicaShapes has
    // them; empty without.
    std::vector<int64_t> replica_extents;
  };

  // The plan for arguments of these types, made when there is none.
  absl::StatusOr<Plan*> FindPlan(absl::Span<const Tensor> arguments);
  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(
      absl::Span<const Tensor> arguments) const;
  absl::Span<const int64_t> replica_extents() const;

  const Graph graph_;
  const OpRegistry& ops_;
  const KernelRegistry& kernels_;
  const ExecutableOptions options_;
  std::vector<VariableUse> uses_;
  std::unique_ptr<VariableSession> session_;  // Null without variables.
  // Null when what this replica knows of its own arguments is all it needs.
  std::unique_ptr<ReplicaShapes> replica_shapes_;
  std::list<PlanEntry> plans_;  // Last used first.
};

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_EXECUTABLE_H_
