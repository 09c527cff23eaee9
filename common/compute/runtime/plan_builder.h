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

// Builds the Plan of one typed graph: selects kernels, computes what depends on
// constants only, assigns memory to values by their lifetimes, and links
// everything into an array of steps. Used once.
class PlanBuilder {
 public:
  struct Options {
    const OpRegistry& ops;
    const KernelRegistry& kernels;       // Of the device, if any.
    const KernelRegistry& host_kernels;  // The same without a device.
    int intra_op_thread_count = 1;
    absl::Span<const VariableUse> uses;  // In the order of the session.
    ReplicaLink* link = nullptr;         // Null for a single replica.
    int64_t bytes_max = 0;               // Of each arena.
    // The device of the step, and its stream; borrowed, and outlive the plan.
    // Null on the host.
    Device* device = nullptr;
    DeviceStream* stream = nullptr;
    // Suppresses the updates of steps with invalid data; borrowed, and outlives
    // the plan. Null: the host checks the data before updates.
    StepGate* gate = nullptr;
    GatedSteps* gated = nullptr;  // Of the session, if it uses the gate.
    // With a device: the places of the graph's nodes, from PlaceNodes().
    absl::Span<const NodePlace> places;
    // Builds the plan of a subgraph for parameters of these types. It runs on
    // the host and uses at most `bytes_max` of memory.
    std::function<absl::StatusOr<std::unique_ptr<Plan>>(
        const Graph& subgraph, absl::Span<const TensorType> parameters,
        int64_t bytes_max)>
        plan_subgraph;
  };

  // `typed_graph` and `options` are borrowed during the call; kernels and the
  // memory of constants must outlive the plan.
  //   kUnimplemented      the device has no kernel for a node
  //   kResourceExhausted  the values need more than bytes_max, or more memory
  //                       than the device has left
  static absl::StatusOr<std::unique_ptr<Plan>> Build(const Graph& typed_graph,
                                                     const Options& options);

 private:
  // The origin of a value's memory. A view has the memory of the value that it
  // views.
  enum class Storage {
    kConstant,  // In the graph, or computed while planning.
    kArgument,  // Owned by the caller.
    kVariable,  // Owned by the store, from the read to the last use.
    kArena,
    kOwn,     // Owned by the slot: strings.
    kKernel,  // Owned by the slot, which a kernel fills in each run.
    kResult,  // Returned to the caller, one for each run.
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
  // True if a node multiplies its first input by the constant 1.
  bool IsProductWithOne(const Node& node) const;
  void FindStorage(int node);
  void UseMemoryOfKernel(int node);
  void FindLastUses();
  void LayOutArena();
  bool ReuseInputBlock(int node);
  absl::Status FillStaticSlots();
  absl::Status MakeSteps();
  absl::Status MakeVariableStep(int node, Plan::Step* step);
  // Returns the device value that a host value is a copy of; node -1 if there
  // is none.
  NodeOutput DeviceSourceOf(NodeOutput value) const;
  void MakeResults();
  bool CanStart() const;
  // Gives each of the concurrent steps its own memory.
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
  // Returns the arena of a node's outputs and scratch memory.
  ArenaPlanner& ArenaOf(int node) {
    return IsOnDevice(node) ? device_arena_ : arena_;
  }

  static constexpr int kNever = -1;

  const Graph& graph_;
  const Options& options_;
  std::unique_ptr<Plan> plan_;

  // By name: position in the uses.
  absl::flat_hash_map<std::string, int> variables_;
  std::vector<const OpSchema*> schemas_;  // By node; never null.
  std::vector<int> first_slots_;          // By node.
  std::vector<Kernel*> kernels_;          // By node; null if no kernel runs.
  std::vector<ArenaPlanner::Block> scratch_blocks_;  // By node.
  // By slot.
  std::vector<bool> is_result_;
  // By slot: the slot whose memory it refers to.
  std::vector<int> roots_;
  std::vector<Storage> storages_;  // Of roots.
  std::vector<int> last_uses_;     // By root: a node, or the node count.
  std::vector<ArenaPlanner::Block> blocks_;  // Of roots in the arena.
  std::vector<bool> is_block_taken_over_;
  std::vector<int> nodes_of_slots_;
  int64_t subgraph_bytes_ = 0;  // Held by the plans of subgraphs.
  ArenaPlanner arena_;
  ArenaPlanner device_arena_{DeviceMemory::kAlignmentBytes};
};

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_PLAN_BUILDER_H_
