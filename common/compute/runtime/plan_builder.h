#ifndef COMMON_COMPUTE_RUNTIME_PLAN_BUILDER_H_
#define COMMON_COMPUTE_RUNTIME_PLAN_BUILDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/cuda/step_gate.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/runtime/placement.h"
#include "common/compute/runtime/plan.h"
#include "common/compute/runtime/replica_link.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/base/arena_planner.h"
#include "common/core/device/device.h"
#include "common/core/device/device_memory.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Makes the Plan of one typed graph: picks kernels, computes what depends on
// constants only, lays the values into memory by their lifetimes, and links it
// all into an array of steps. Used once.
class PlanBuilder {
 public:
  struct Options {
    const OpRegistry& ops;
    const KernelRegistry& kernels;       // Of the device, if there is one.
    const KernelRegistry& host_kernels;  // Without a device: the same.
    int intra_op_thread_count = 1;
    absl::Span<const VariableUse> uses;  // As the session knows them.
    ReplicaLink* link = nullptr;         // Null: the step runs alone.
    int64_t bytes_max = 0;               // Of each arena.
    // The device of the step, and its stream; borrowed, and outlive the plan.
    // Null on the host.
    Device* device = nullptr;
    DeviceStream* stream = nullptr;
    // Holds the updates of steps with invalid data; borrowed, and outlives the
    // plan. Null: the host does.
    StepGate* gate = nullptr;
    GatedSteps* gated = nullptr;  // Of the session, if it uses the gate.
    // With a device: of the nodes of the graph, from PlaceNodes().
    absl::Span<const NodePlace> places;
    // Makes the plan of a subgraph for parameters of these types. It runs on
    // the host and holds at most `bytes_max`.
    std::function<absl::StatusOr<std::unique_ptr<Plan>>(
        const Graph& subgraph, absl::Span<const TensorType> parameters,
        int64_t bytes_max)>
        plan_subgraph;
  };

  // `typed_graph` and `options` are borrowed for the call; kernels and the
  // memory of constants outlive the plan.
  //   kUnimplemented      the device has no kernel for a node
  //   kResourceExhausted  the values need more than bytes_max, or more than the
  //                       device has left
  static absl::StatusOr<std::unique_ptr<Plan>> Build(const Graph& typed_graph,
                                                     const Options& options);

 private:
  // Where the memory of a value comes from. A view has that of what it views.
  enum class Storage {
    kConstant,  // The graph's, or computed while planning.
    kArgument,  // The caller's.
    kVariable,  // The store's, from its read to its last use.
    kArena,
    kOwn,     // The slot's: strings.
    kResult,  // Handed out, one per run.
  };

  PlanBuilder(const Graph& graph, const Options& options);

  absl::Status CheckSizes() const;
  absl::Status ChooseKernels();
  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(int node);
  absl::Status CompileSubgraphs(int node, KernelSpec* spec);
  void FoldConstant(int node);
  absl::Status UploadConstant(int node);
  absl::StatusOr<std::shared_ptr<Buffer>> AllocateOnDevice(
      size_t size_bytes, absl::string_view what) const;
  absl::Status AllocateArenas();
  void FindStorage(int node);
  void FindLastUses();
  void LayOutArena();
  bool ReuseInputBlock(int node);
  absl::Status FillStaticSlots();
  absl::Status MakeSteps();
  absl::Status MakeVariableStep(int node, Plan::Step* step);
  // The value of the device of which a value of the host is a copy; node -1: it
  // is none.
  NodeOutput DeviceSourceOf(NodeOutput value) const;
  void MakeResults();
  bool CanStart() const;
  // Gives each of the steps that may be under way memory of its own.
  absl::Status PrepareStarts();
  absl::Status PrepareArguments();

  int SlotOf(NodeOutput output) const {
    return first_slots_[output.node] + output.output;
  }
  int RootOf(NodeOutput output) const { return roots_[SlotOf(output)]; }
  bool IsStatic(int root) const {
    return storages_[root] == Storage::kConstant ||
           storages_[root] == Storage::kArena ||
           storages_[root] == Storage::kOwn;
  }
  bool IsFolded(int node) const;
  bool IsOnDevice(int node) const {
    return !options_.places.empty() &&
           options_.places[node] == NodePlace::kDevice;
  }
  bool ReadsCopies(const Node& node) const;
  bool IsCopy(const Node& node) const {
    return node.op == kCopyToDeviceOp || node.op == kCopyToHostOp;
  }
  // The arena of a node's outputs and scratch.
  ArenaPlanner& ArenaOf(int node) {
    return IsOnDevice(node) ? device_arena_ : arena_;
  }

  static constexpr int kNever = -1;

  const Graph& graph_;
  const Options& options_;
  std::unique_ptr<Plan> plan_;

  absl::flat_hash_map<std::string, int> variables_;  // Position in the uses.
  std::vector<const OpSchema*> schemas_;             // By node; never null.
  std::vector<int> first_slots_;                     // By node.
  std::vector<Kernel*> kernels_;  // By node; null where none runs.
  std::vector<ArenaPlanner::Block> scratch_blocks_;  // By node.
  // By slot.
  std::vector<bool> is_result_;
  std::vector<int> roots_;         // The slot whose memory it looks into.
  std::vector<Storage> storages_;  // Of roots.
  std::vector<int> last_uses_;     // Of roots: a node, or the node count.
  std::vector<ArenaPlanner::Block> blocks_;  // Of roots in the arena.
  std::vector<bool> is_block_taken_over_;
  std::vector<int> nodes_of_slots_;
  int64_t subgraph_bytes_ = 0;  // That the plans of subgraphs hold.
  ArenaPlanner arena_;
  ArenaPlanner device_arena_{DeviceMemory::kAlignmentBytes};
};

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_PLAN_BUILDER_H_
