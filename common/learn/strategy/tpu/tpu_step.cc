#include "common/learn/strategy/tpu/tpu_step.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/runtime/graph_rewrites.h"
#include "common/compute/runtime/typed_graph.h"
#include "common/compute/runtime/variable_uses.h"
#include "common/compute/stablehlo/graph_translator.h"
#include "common/compute/stablehlo/step_program.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

int64_t RowsOf(const Tensor& argument) {
  return argument.shape().rank() == 0 ? -1 : argument.shape().dim(0);
}

// Returns the elements of all tensors, one tensor behind the other.
Tensor Joined(const std::vector<Tensor>& parts, const Shape& shape) {
  Tensor all(parts[0].dtype(), shape);
  uint8_t* next = all.mutable_raw_data();
  for (const Tensor& part : parts) {
    std::memcpy(next, part.raw_data(), part.size_bytes());
    next += part.size_bytes();
  }
  return all;
}

// Joins along the rows.
Tensor ConcatRows(const std::vector<Tensor>& parts) {
  Shape shape = parts[0].shape();
  int64_t rows = 0;
  for (const Tensor& part : parts) rows += part.shape().dim(0);
  shape.set_dim(0, rows);
  return Joined(parts, shape);
}

// Joins along a new axis in front.
Tensor StackTensors(const std::vector<Tensor>& parts) {
  Shape shape = parts[0].shape();
  shape.InsertDim(0, static_cast<int64_t>(parts.size()));
  return Joined(parts, shape);
}

// The opposite of StackTensors(); shares the memory.
Tensor ElementOf(const Tensor& stacked, int index) {
  Shape shape = stacked.shape();
  shape.RemoveDim(0);
  return stacked.SliceRows(index, index + 1).Reshaped(shape);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TpuStep>> TpuStep::Create(
    const Graph& step, std::shared_ptr<TpuSystem> system,
    TpuVariableStore* variables, Results results) {
  Graph live = DropDeadNodes(step, BuiltinOps());
  RETURN_IF_ERROR(CheckTranslatable(live));
  std::vector<VariableUse> uses = FindVariableUses(live, BuiltinOps());
  for (const VariableUse& use : uses) {
    RETURN_IF_ERROR(variables->Describe(use.name).status());
  }
  return absl::WrapUnique(new TpuStep(std::move(live), std::move(uses),
                                      std::move(system), variables, results));
}

TpuStep::TpuStep(Graph step, std::vector<VariableUse> uses,
                 std::shared_ptr<TpuSystem> system, TpuVariableStore* variables,
                 Results results)
    : step_(std::move(step)),
      uses_(std::move(uses)),
      system_(std::move(system)),
      variables_(*variables),
      results_(results) {}

bool TpuStep::changes_variables() const {
  return std::any_of(uses_.begin(), uses_.end(),
                     [](const VariableUse& use) { return use.is_updated; });
}

int TpuStep::started_step_count() const {
  int count = 0;
  for (const Started& step : started_) count += step.step_count;
  return count;
}

bool TpuStep::Divides(const Element& element) const {
  const int64_t rows = element.empty() ? -1 : RowsOf(element[0]);
  if (rows <= 0 || rows % system_->device_count() != 0) return false;
  return std::all_of(element.begin(), element.end(),
                     [&](const Tensor& part) { return RowsOf(part) == rows; });
}

absl::StatusOr<std::vector<TpuStep::Buffers>> TpuStep::CopyArguments(
    absl::Span<const Element> elements, bool divides_batch) const {
  const int replica_count = system_->device_count();
  std::vector<Buffers> copies(replica_count);
  for (int replica = 0; replica < replica_count; ++replica) {
    for (size_t i = 0; i < elements[0].size(); ++i) {
      std::vector<Tensor> parts;
      for (const Element& element : elements) {
        const int64_t rows =
            divides_batch ? RowsOf(element[i]) / replica_count : 0;
        parts.push_back(
            divides_batch
                ? element[i].SliceRows(replica * rows, (replica + 1) * rows)
                : element[i]);
      }
      ASSIGN_OR_RETURN(
          std::unique_ptr<PjrtBuffer> buffer,
          system_->client().CopyToDevice(
              parts.size() == 1 ? parts[0] : StackTensors(parts), replica));
      copies[replica].push_back(std::move(buffer));
    }
  }
  return copies;
}

absl::StatusOr<const PjrtExecutable*> TpuStep::FindProgram(
    const Element& element, const Started& step,
    const TpuVariableStore::StepState& state) {
  const int replica_count = system_->device_count();
  std::vector<TensorType> types;
  std::string key = absl::StrCat(step.step_count, " ", state.structure);
  for (const Tensor& argument : element) {
    TensorType& type = types.emplace_back(argument.type());
    if (step.divides_batch) {
      type.shape.set_dim(0, type.shape.dim(0) / replica_count);
    }
    absl::StrAppend(&key, type.ToString(), step.divides_batch ? "/" : " ");
  }
  std::unique_ptr<PjrtExecutable>& program = programs_[key];
  if (program != nullptr) return program.get();
  if (types.size() != step_.parameters.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the step has ", step_.parameters.size(),
                     " parameters and got ", types.size(), " arguments"));
  }
  const bool has_rows = !types.empty() && types[0].shape.rank() > 0;
  // Collectives of the graph see all replicas.
  const std::vector<std::vector<TensorType>> of_replicas(
      step.divides_batch ? replica_count : 1, types);
  ASSIGN_OR_RETURN(const Graph typed,
                   WithTypes(step_, BuiltinOps(), of_replicas, 0));
  ASSIGN_OR_RETURN(
      const std::string module,
      MakeStepProgram(typed, state.variables,
                      {.replica_count = replica_count,
                       .divides_batch = step.divides_batch,
                       .rows_per_replica = has_rows ? types[0].shape.dim(0) : 0,
                       .step_count = step.step_count,
                       .sums_results = results_ == Results::kSummed}));
  ASSIGN_OR_RETURN(program, system_->client().Compile(
                                module, {.replica_count = replica_count}));
  return program.get();
}

absl::StatusOr<std::vector<TpuStep::Buffers>> TpuStep::Execute(
    const PjrtExecutable& program, const TpuVariableStore::StepState& state,
    uint64_t step_seed, Started* step) const {
  const int64_t count = static_cast<int64_t>(state.coefficients.size());
  const Shape shape = step->step_count == 1
                          ? Shape({count})
                          : Shape({step->step_count, count / step->step_count});
  const Tensor coefficients =
      Tensor::FromSpan<float>(shape, absl::MakeConstSpan(state.coefficients));
  const Tensor seed = Tensor::Scalar<int64_t>(static_cast<int64_t>(step_seed));
  std::vector<std::vector<const PjrtBuffer*>> all(system_->device_count());
  for (int replica = 0; replica < system_->device_count(); ++replica) {
    std::vector<const PjrtBuffer*>& of_replica = all[replica];
    Buffers& arguments = step->arguments[replica];
    for (const auto& buffer : arguments) of_replica.push_back(buffer.get());
    of_replica.insert(of_replica.end(), state.arguments[replica].begin(),
                      state.arguments[replica].end());
    for (const Tensor& tensor : {coefficients, seed}) {
      ASSIGN_OR_RETURN(std::unique_ptr<PjrtBuffer> buffer,
                       system_->client().CopyToDevice(tensor, replica));
      of_replica.push_back(buffer.get());
      arguments.push_back(std::move(buffer));
    }
  }
  return program.ExecuteOnAll(all);
}

absl::Status TpuStep::Start(absl::Span<const Element> elements,
                            uint64_t step_seed) {
  Started step = {.step_count = static_cast<int>(elements.size()),
                  .divides_batch = Divides(elements[0])};
  ASSIGN_OR_RETURN(step.arguments, CopyArguments(elements, step.divides_batch));
  ASSIGN_OR_RETURN(
      step.results,
      variables_.RunSteps(uses_, step.step_count,
                          [&](const TpuVariableStore::StepState& state)
                              -> absl::StatusOr<std::vector<Buffers>> {
                            ASSIGN_OR_RETURN(
                                const PjrtExecutable* const program,
                                FindProgram(elements[0], step, state));
                            return Execute(*program, state, step_seed, &step);
                          }));
  started_.push_back(std::move(step));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<Tensor>>> TpuStep::Finish() {
  const Started step = std::move(started_.front());
  started_.pop_front();
  const absl::Time deadline = absl::Now() + kTpuTimeout;
  const bool is_concatenated =
      results_ == Results::kConcatenated && step.divides_batch;
  const int source_count = is_concatenated ? system_->device_count() : 1;
  std::vector<std::vector<Tensor>> by_step(step.step_count);
  for (size_t i = 0; i < step_.results.size(); ++i) {
    std::vector<Tensor> sources;
    for (int replica = 0; replica < source_count; ++replica) {
      ASSIGN_OR_RETURN(Tensor source,
                       step.results[replica][i]->ToHost(deadline));
      sources.push_back(std::move(source));
    }
    for (int index = 0; index < step.step_count; ++index) {
      std::vector<Tensor> parts = sources;
      if (step.step_count > 1) {
        for (Tensor& part : parts) part = ElementOf(part, index);
      }
      if (parts.size() > 1 && parts[0].shape().rank() == 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("result ", i,
                         " is a scalar; results of replicas are "
                         "put one behind the other, so they are rows"));
      }
      by_step[index].push_back(parts.size() == 1 ? parts[0]
                                                 : ConcatRows(parts));
    }
  }
  return by_step;
}

}  // namespace muster
