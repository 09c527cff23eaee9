#include "common/compute/runtime/plan_builder.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/compute/runtime/copy_kernel.h"
#include "common/compute/runtime/graph_rewrites.h"
#include "common/compute/runtime/planned_subgraph.h"
#include "common/compute/runtime/replica_kernels.h"
#include "common/compute/runtime/typed_graph.h"
#include "common/compute/runtime/variable_uses.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/trace.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/check_numerics.h"
#include "common/core/tensor/dtype.h"

namespace muster {
namespace {

size_t SizeBytes(const TensorType& type) {
  return type.shape.element_count() * SizeOf(type.dtype);
}

std::string Describe(const Node& node) {
  return absl::StrCat(node.op, " \"", node.name, "\"");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Plan>> PlanBuilder::Build(
    const Graph& typed_graph, const Options& options) {
  PlanBuilder builder(typed_graph, options);
  RETURN_IF_ERROR(builder.CheckSizes());
  RETURN_IF_ERROR(builder.ChooseKernels());
  builder.FindLastUses();
  builder.LayOutArena();
  const size_t arena_bytes =
      std::max(builder.arena_.size_bytes() + builder.subgraph_bytes_,
               builder.device_arena_.size_bytes());
  if (arena_bytes > static_cast<size_t>(options.bytes_max)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "graph \"", typed_graph.name, "\" needs ", arena_bytes,
        " bytes for its values; ", "the limit is ", options.bytes_max));
  }
  RETURN_IF_ERROR(builder.FillStaticSlots());
  RETURN_IF_ERROR(builder.MakeSteps());
  builder.MakeResults();
  RETURN_IF_ERROR(builder.PrepareStarts());
  return std::move(builder.plan_);
}

PlanBuilder::PlanBuilder(const Graph& graph, const Options& options)
    : graph_(graph), options_(options), plan_(new Plan) {
  int slot_count = 0;
  for (const Node& node : graph_.nodes) {
    schemas_.push_back(&options_.ops.FindOrPlain(node.op));
    first_slots_.push_back(slot_count);
    slot_count += static_cast<int>(node.outputs.size());
    nodes_of_slots_.resize(slot_count,
                           static_cast<int>(first_slots_.size()) - 1);
  }
  plan_->device_ = options_.device;
  plan_->stream_ = options_.stream;
  plan_->gate_ = options_.gate;
  plan_->gated_ = options_.gated;
  plan_->graph_name_ = graph_.name;
  plan_->checks_numerics_ = ChecksNumerics();
  plan_->trace_name_ = InternTraceName(graph_.name);
  kernels_.resize(graph_.nodes.size(), nullptr);
  scratch_blocks_.resize(graph_.nodes.size());
  roots_.resize(slot_count);
  storages_.resize(slot_count, Storage::kArena);
  last_uses_.resize(slot_count, kNever);
  blocks_.resize(slot_count);
  is_block_taken_over_.resize(slot_count, false);
  // The last slot stays invalid; it stands for "no indices".
  plan_->slots_.resize(slot_count + 1);
  is_result_.resize(slot_count, false);
  for (const NodeOutput& result : graph_.results) {
    is_result_[SlotOf(result)] = true;
  }
  for (size_t i = 0; i < options_.uses.size(); ++i) {
    variables_[options_.uses[i].name] = static_cast<int>(i);
  }
  for (const int parameter : graph_.parameters) {
    plan_->argument_types_.push_back(graph_.nodes[parameter].outputs[0]);
  }
}

absl::Status PlanBuilder::CheckSizes() const {
  int64_t results_bytes = 0;
  for (const Node& node : graph_.nodes) {
    for (const TensorType& type : node.outputs) {
      if (type.dtype != DType::kInvalid &&
          type.shape.element_count() <=
              options_.bytes_max / static_cast<int64_t>(SizeOf(type.dtype))) {
        continue;
      }
      return absl::ResourceExhaustedError(
          absl::StrCat(Describe(node), " gives ", type.ToString(),
                       "; a step may hold ", options_.bytes_max, " bytes"));
    }
  }
  for (const NodeOutput& result : graph_.results) {
    results_bytes += static_cast<int64_t>(SizeBytes(graph_.TypeOf(result)));
    if (results_bytes <= options_.bytes_max) continue;
    return absl::ResourceExhaustedError(
        absl::StrCat("graph \"", graph_.name, "\" returns more than ",
                     options_.bytes_max, " bytes"));
  }
  return absl::OkStatus();
}

absl::Status PlanBuilder::ChooseKernels() {
  for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
    const Node& node = graph_.nodes[i];
    if (IsProductWithOne(node)) {
      schemas_[i] = &options_.ops.FindOrPlain("Identity");
    }
    FindStorage(i);
    if (schemas_[i]->is_view || !schemas_[i]->has_kernel()) continue;
    auto kernel = MakeKernel(i);
    if (!kernel.ok()) {
      return absl::Status(
          kernel.status().code(),
          absl::StrCat(Describe(node), ": ", kernel.status().message()));
    }
    kernels_[i] = kernel->get();
    if (kernels_[i]->AllocatesOutputs()) UseMemoryOfKernel(i);
    plan_->kernels_.push_back(*std::move(kernel));
    if (IsOnDevice(i)) {
      RETURN_IF_ERROR(UploadConstant(i));
    } else {
      FoldConstant(i);
    }
  }
  return absl::OkStatus();
}

// The gradient of a mean often has a factor that is only known to be 1 when the
// number of examples is.
bool PlanBuilder::IsProductWithOne(const Node& node) const {
  if (node.op != "Mul" || options_.device != nullptr ||
      node.outputs[0] != graph_.TypeOf(node.inputs[0])) {
    return false;
  }
  const NodeOutput factor = node.inputs[1];
  const Tensor& value = plan_->slots_[SlotOf(factor)];
  return storages_[RootOf(factor)] == Storage::kConstant &&
         value.element_count() == 1 && value.ElementAsDouble(0) == 1;
}

void PlanBuilder::FindStorage(int node_index) {
  const Node& node = graph_.nodes[node_index];
  for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i) {
    const int slot = first_slots_[node_index] + i;
    Tensor& value = plan_->slots_[slot];
    roots_[slot] = slot;
    if (node.op == kParameterOp) {
      storages_[slot] = Storage::kArgument;
    } else if (node.op == kConstantOp) {
      storages_[slot] = Storage::kConstant;
      value = node.attributes.GetOr<Tensor>("value", Tensor());
    } else if (schemas_[node_index]->is_view) {
      roots_[slot] = RootOf(node.inputs[0]);
      if (storages_[roots_[slot]] == Storage::kConstant) {
        value = plan_->slots_[SlotOf(node.inputs[0])].Reshaped(
            node.outputs[i].shape);
      }
    } else if (node.op == kReadVariableOp) {
      storages_[slot] = Storage::kVariable;
    } else if (is_result_[slot] && node.op != kCopyToHostOp) {
      storages_[slot] = Storage::kResult;
    } else if (node.outputs[i].dtype == DType::kString) {
      storages_[slot] = Storage::kOwn;
    }
  }
}

void PlanBuilder::UseMemoryOfKernel(int node) {
  const int output_count = static_cast<int>(graph_.nodes[node].outputs.size());
  for (int i = 0; i < output_count; ++i) {
    storages_[first_slots_[node] + i] = Storage::kKernel;
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> PlanBuilder::MakeKernel(
    int node_index) {
  const Node& node = graph_.nodes[node_index];
  const OpSchema& schema = *schemas_[node_index];
  if (IsCopy(node)) return std::make_unique<CopyKernel>();
  KernelSpec spec = SpecOf(graph_, node, schema);
  RETURN_IF_ERROR(CompileSubgraphs(node_index, &spec));
  if (options_.link != nullptr && schema.reads == OpReads::kReplicas) {
    return MakeReplicaKernel(spec, node.name, options_.link);
  }
  const KernelRegistry& kernels =
      IsOnDevice(node_index) ? options_.kernels : options_.host_kernels;
  return kernels.Create(spec, options_.intra_op_thread_count);
}

absl::Status PlanBuilder::CompileSubgraphs(int node_index, KernelSpec* spec) {
  const Node& node = graph_.nodes[node_index];
  if (node.subgraphs.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      const std::vector<TensorType> parameters,
      schemas_[node_index]->subgraph_rule({.inputs = spec->inputs,
                                           .attributes = node.attributes,
                                           .subgraphs = node.subgraphs}));
  for (const auto& subgraph : node.subgraphs) {
    ASSIGN_OR_RETURN(
        std::unique_ptr<Plan> plan,
        options_.plan_subgraph(*subgraph, parameters,
                               options_.bytes_max - subgraph_bytes_));
    // A loop keeps the results of two iterations at a time.
    subgraph_bytes_ +=
        static_cast<int64_t>(plan->arena_bytes() + 2 * plan->result_bytes());
    spec->subgraphs.push_back(
        std::make_shared<PlannedSubgraph>(std::move(plan)));
  }
  return absl::OkStatus();
}

// Constants are copied to the device once.
absl::Status PlanBuilder::UploadConstant(int node_index) {
  const Node& node = graph_.nodes[node_index];
  if (node.op != kCopyToDeviceOp ||
      storages_[RootOf(node.inputs[0])] != Storage::kConstant) {
    return absl::OkStatus();
  }
  const Tensor& constant = plan_->slots_[SlotOf(node.inputs[0])];
  ASSIGN_OR_RETURN(
      std::shared_ptr<Buffer> buffer,
      AllocateOnDevice(constant.size_bytes(), "constant of graph"));
  const int slot = first_slots_[node_index];
  Tensor& uploaded = plan_->slots_[slot];
  uploaded = Tensor(constant.dtype(), constant.shape(), std::move(buffer));
  storages_[slot] = Storage::kConstant;
  return options_.stream->Copy(constant, &uploaded);
}

absl::StatusOr<std::shared_ptr<Buffer>> PlanBuilder::AllocateOnDevice(
    size_t size_bytes, absl::string_view what) const {
  DeviceMemory& memory = options_.device->memory();
  ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer,
                   memory.Allocate(size_bytes, {what, graph_.name}));
  memory.NoteUse(*buffer, options_.stream);
  return buffer;
}

void PlanBuilder::FoldConstant(int node_index) {
  const Node& node = graph_.nodes[node_index];
  if (IsCopy(node) || !ReadsInputsOnly(*schemas_[node_index], node)) return;
  std::vector<const Tensor*> inputs;
  for (const NodeOutput& input : node.inputs) {
    if (storages_[RootOf(input)] != Storage::kConstant) return;
    inputs.push_back(&plan_->slots_[SlotOf(input)]);
  }
  size_t output_bytes = 0;
  for (const TensorType& type : node.outputs) output_bytes += SizeBytes(type);
  if (output_bytes > kFoldedBytesMax) return;
  std::vector<Tensor> values;
  std::vector<Tensor*> outputs;
  values.reserve(node.outputs.size());
  for (const TensorType& type : node.outputs) {
    values.emplace_back(type.dtype, type.shape);
    outputs.push_back(&values.back());
  }
  Kernel& kernel = *kernels_[node_index];
  const auto scratch = Buffer::Allocate(kernel.scratch_bytes());
  // The run that executes the node reports its error.
  if (!kernel
           .Run({.inputs = inputs,
                 .outputs = outputs,
                 .scratch = {scratch->data(), scratch->size_bytes()}})
           .ok()) {
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const int slot = first_slots_[node_index] + static_cast<int>(i);
    storages_[slot] = Storage::kConstant;
    plan_->slots_[slot] = std::move(values[i]);
  }
}

bool PlanBuilder::IsFolded(int node) const {
  return kernels_[node] != nullptr && !graph_.nodes[node].outputs.empty() &&
         storages_[first_slots_[node]] == Storage::kConstant;
}

void PlanBuilder::FindLastUses() {
  const int end = static_cast<int>(graph_.nodes.size());
  for (int i = 0; i < end; ++i) {
    const Node& node = graph_.nodes[i];
    if (IsFolded(i)) continue;
    // A view itself does not read the value; its readers do.
    if (schemas_[i]->is_view) continue;
    // The session may read an update's tensors until Commit() returns. The plan
    // reads the weight of gradients, and the device reads the source of a copy,
    // until the device has completed the step.
    const bool is_late = schemas_[i]->effect == OpEffect::kUpdateVariable ||
                         schemas_[i]->effect == OpEffect::kDescribeStep ||
                         node.op == kCopyToDeviceOp;
    for (const NodeOutput& input : node.inputs) {
      int& last_use = last_uses_[RootOf(input)];
      last_use = is_late ? end : std::max(last_use, i);
    }
    // The device reads the weight at the point where the host would.
    if (schemas_[i]->effect != OpEffect::kDescribeStep) continue;
    for (const NodeOutput& input : node.inputs) {
      const NodeOutput source = DeviceSourceOf(input);
      if (source.node < 0) continue;
      int& last_use = last_uses_[RootOf(source)];
      last_use = std::max(last_use, i);
    }
  }
  for (const NodeOutput& result : graph_.results) {
    last_uses_[RootOf(result)] = end;
  }
}

void PlanBuilder::LayOutArena() {
  const int node_count = static_cast<int>(graph_.nodes.size());
  std::vector<std::vector<int>> dying_roots(node_count + 1);
  for (int i = 0; i < node_count; ++i) {
    const Node& node = graph_.nodes[i];
    if (schemas_[i]->is_view) continue;
    const int output_count = static_cast<int>(node.outputs.size());
    for (int k = 0; k < output_count; ++k) {
      const int slot = first_slots_[i] + k;
      if (storages_[slot] != Storage::kArena) continue;
      if (k > 0 || !ReuseInputBlock(i)) {
        blocks_[slot] = ArenaOf(i).Allocate(SizeBytes(node.outputs[k]));
      }
      dying_roots[last_uses_[slot] == kNever ? i : last_uses_[slot]].push_back(
          slot);
    }
    if (kernels_[i] != nullptr && kernels_[i]->scratch_bytes() > 0) {
      scratch_blocks_[i] = ArenaOf(i).Allocate(kernels_[i]->scratch_bytes());
      ArenaOf(i).Free(scratch_blocks_[i]);
    }
    for (const int root : dying_roots[i]) {
      if (is_block_taken_over_[root]) continue;
      ArenaOf(nodes_of_slots_[root]).Free(blocks_[root]);
    }
  }
}

// Reuses the memory of an input that is last read by this node for output 0.
bool PlanBuilder::ReuseInputBlock(int node_index) {
  const Node& node = graph_.nodes[node_index];
  if (kernels_[node_index] == nullptr) return false;
  for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
    const int root = RootOf(node.inputs[i]);
    const auto reads_root = [&](const NodeOutput& input) {
      return RootOf(input) == root;
    };
    if (storages_[root] != Storage::kArena || last_uses_[root] != node_index ||
        IsOnDevice(nodes_of_slots_[root]) != IsOnDevice(node_index) ||
        SizeBytes(graph_.TypeOf(node.inputs[i])) !=
            SizeBytes(node.outputs[0]) ||
        // Otherwise another input would change while it is read.
        std::count_if(node.inputs.begin(), node.inputs.end(), reads_root) > 1 ||
        !kernels_[node_index]->MayShareOutputWithInput(i)) {
      continue;
    }
    blocks_[first_slots_[node_index]] = blocks_[root];
    is_block_taken_over_[root] = true;
    return true;
  }
  return false;
}

absl::Status PlanBuilder::AllocateArenas() {
  plan_->arena_bytes_ =
      arena_.size_bytes() + device_arena_.size_bytes() + subgraph_bytes_;
  if (options_.device == nullptr) {
    plan_->arena_ = Buffer::Allocate(arena_.size_bytes());
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(plan_->arena_, options_.device->pinned_memory().Allocate(
                                      arena_.size_bytes()));
  ASSIGN_OR_RETURN(
      plan_->device_arena_,
      AllocateOnDevice(device_arena_.size_bytes(), "arena of graph"));
  return absl::OkStatus();
}

absl::Status PlanBuilder::FillStaticSlots() {
  RETURN_IF_ERROR(AllocateArenas());
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const int slot = first_slots_[i] + static_cast<int>(k);
      const TensorType& type = node.outputs[k];
      Tensor& value = plan_->slots_[slot];
      if (!IsStatic(roots_[slot]) || value.IsValid()) continue;
      if (roots_[slot] != slot) {
        value = plan_->slots_[SlotOf(node.inputs[0])].Reshaped(type.shape);
      } else if (storages_[slot] == Storage::kArena) {
        const int node_index = static_cast<int>(i);
        value = Tensor(
            type.dtype, type.shape,
            IsOnDevice(node_index) ? plan_->device_arena_ : plan_->arena_,
            blocks_[slot].offset_bytes);
      } else {
        value = Tensor(type.dtype, type.shape);
      }
    }
  }
  return absl::OkStatus();
}

// True if the host reads a copy from the device when the node runs. Kernels of
// the host and sessions do.
bool PlanBuilder::ReadsCopies(const Node& node) const {
  if (node.op == kCopyToDeviceOp) return false;
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [this](const NodeOutput& input) {
                       const int source = nodes_of_slots_[RootOf(input)];
                       return graph_.nodes[source].op == kCopyToHostOp;
                     });
}

absl::Status PlanBuilder::MakeSteps() {
  std::vector<std::vector<int>> releases(graph_.nodes.size() + 1);
  std::vector<int> step_of_node(graph_.nodes.size(), kNever);
  for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
    const Node& node = graph_.nodes[i];
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const int slot = first_slots_[i] + static_cast<int>(k);
      const int root = roots_[slot];
      const bool is_owned =
          root == slot && (storages_[root] == Storage::kResult ||
                           storages_[root] == Storage::kKernel);
      if (!IsStatic(root) && !is_owned) {
        plan_->borrowed_slots_.push_back(slot);
      }
      if (storages_[root] == Storage::kVariable) {
        releases[std::max(last_uses_[root], i)].push_back(slot);
      }
    }
    Plan::Step step;
    step.description = Describe(node);
    step.trace_name = InternTraceName(node.op);
    for (const NodeOutput& input : node.inputs) {
      step.inputs.push_back(&plan_->slots_[SlotOf(input)]);
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      step.outputs.push_back(&plan_->slots_[first_slots_[i] + k]);
    }
    const OpSchema& schema = *schemas_[i];
    if (schema.uses_variable()) {
      RETURN_IF_ERROR(MakeVariableStep(i, &step));
    } else if (schema.effect == OpEffect::kDescribeStep) {
      if (options_.uses.empty()) continue;  // No session to inform.
      step.kind = Plan::StepKind::kSetLossDenominator;
      const NodeOutput source = DeviceSourceOf(node.inputs[0]);
      if (source.node >= 0) step.device_weight = &plan_->slots_[SlotOf(source)];
    } else if (schema.is_view) {
      if (IsStatic(roots_[first_slots_[i]])) continue;
      step.kind = Plan::StepKind::kView;
      step.type = node.outputs[0];
    } else if (kernels_[i] != nullptr && !IsFolded(i)) {
      step.kernel = kernels_[i];
      if (IsOnDevice(i) || IsCopy(node)) step.stream = options_.stream;
      if (const size_t bytes = kernels_[i]->scratch_bytes(); bytes > 0) {
        const Buffer& arena =
            IsOnDevice(i) ? *plan_->device_arena_ : *plan_->arena_;
        step.scratch = {arena.data() + scratch_blocks_[i].offset_bytes, bytes};
      }
    } else {
      continue;
    }
    step.needs_copies = ReadsCopies(node);
    step_of_node[i] = static_cast<int>(plan_->steps_.size());
    plan_->steps_.push_back(std::move(step));
  }
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (step_of_node[i] == kNever) continue;
    for (const int slot : releases[i]) {
      plan_->steps_[step_of_node[i]].releases.push_back(&plan_->slots_[slot]);
    }
  }
  return absl::OkStatus();
}

NodeOutput PlanBuilder::DeviceSourceOf(NodeOutput value) const {
  const Node& copy = graph_.nodes[nodes_of_slots_[RootOf(value)]];
  return copy.op == kCopyToHostOp ? copy.inputs[0] : NodeOutput{-1, 0};
}

absl::Status PlanBuilder::MakeVariableStep(int node_index, Plan::Step* step) {
  const Node& node = graph_.nodes[node_index];
  const std::string variable = VariableOf(node);
  absl::StrAppend(&step->description, " of variable \"", variable, "\"");
  step->variable = variables_.at(variable);
  if (node.op == kReadVariableOp) {
    step->kind = Plan::StepKind::kRead;
    step->type = node.outputs[0];
    return absl::OkStatus();
  }
  if (node.op == kGatherVariableOp) {
    step->kind = Plan::StepKind::kGather;
    step->type = node.outputs[0];
    return absl::OkStatus();
  }
  const VariableUpdateOp update = *FindVariableUpdateOp(node.op);
  const int input_count = static_cast<int>(node.inputs.size());
  if (std::max(update.value_input, update.indices_input) >= input_count) {
    return absl::InvalidArgumentError(
        absl::StrCat(step->description, " has only ", input_count, " inputs"));
  }
  step->kind = Plan::StepKind::kUpdate;
  step->update_kind = update.kind;
  const int indices_slot = update.indices_input < 0
                               ? static_cast<int>(plan_->slots_.size()) - 1
                               : SlotOf(node.inputs[update.indices_input]);
  step->inputs = {&plan_->slots_[SlotOf(node.inputs[update.value_input])],
                  &plan_->slots_[indices_slot]};
  return absl::OkStatus();
}

void PlanBuilder::MakeResults() {
  for (const int parameter : graph_.parameters) {
    const int slot = first_slots_[parameter];
    plan_->argument_slots_.push_back(last_uses_[slot] == kNever ? -1 : slot);
  }
  std::vector<bool> is_repeated(roots_.size(), false);
  for (const NodeOutput& output : graph_.results) {
    const int slot = SlotOf(output);
    const Storage storage = storages_[roots_[slot]];
    auto kind = Plan::ResultKind::kCopy;
    if (storage == Storage::kArgument || storage == Storage::kConstant ||
        storage == Storage::kKernel) {
      kind = Plan::ResultKind::kShare;
    } else if (storage == Storage::kResult && roots_[slot] == slot) {
      kind = is_repeated[slot] ? Plan::ResultKind::kShare
                               : Plan::ResultKind::kMove;
      is_repeated[slot] = true;
    }
    plan_->results_.push_back({kind, slot, graph_.TypeOf(output)});
  }
}

}  // namespace muster
