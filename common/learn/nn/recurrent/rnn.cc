#include "common/learn/nn/recurrent/rnn.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/masks.h"
#include "common/learn/nn/recurrent/carried_states.h"
#include "common/learn/nn/recurrent/cell_scan.h"
#include "common/learn/nn/recurrent/rnn_cell.h"
#include "common/learn/nn/recurrent/unit_cell.h"
#include "common/learn/nn/wrapper.h"

namespace muster {
namespace {

const RNNCell* AsCell(const LayerPtr& layer) {
  return dynamic_cast<const RNNCell*>(layer.get());
}

// What a layer is that should be a cell: "Dense", "none".
std::string KindOf(const LayerPtr& layer) {
  return layer == nullptr ? "none" : layer->kind();
}

// The number of states of a cell.
int StateCount(const LayerPtr& cell) { return cell->output_count() - 1; }

// The cells of a stack, or the cell itself, if all are UnitCells; else empty.
std::vector<UnitCell*> UnitCellsOf(const LayerPtr& cell) {
  std::vector<LayerPtr> cells = {cell};
  if (dynamic_cast<const StackedRNNCellsLayer*>(cell.get()) != nullptr) {
    cells = cell->layers();
  }
  std::vector<UnitCell*> unit_cells;
  for (const LayerPtr& inner : cells) {
    unit_cells.push_back(dynamic_cast<UnitCell*>(inner.get()));
    if (unit_cells.back() == nullptr) return {};
  }
  return unit_cells;
}

// Each cell runs over the whole sequence before the next one.
internal::CellOutputs RunInTurn(absl::Span<UnitCell* const> cells,
                                const internal::CellSteps& steps,
                                const CallContext& context) {
  internal::CellOutputs outputs;
  Value x = steps.x;
  size_t next_initial = 0;
  for (UnitCell* const cell : cells) {
    const bool is_first = cell == cells.front();
    const bool is_last = cell == cells.back();
    UnitCell::Steps own{
        .x = x,
        .mask = steps.mask,
        // The outputs are in the order of the steps.
        .go_backwards = is_first && steps.go_backwards,
        .zero_output_for_mask = is_last && steps.zero_output_for_mask};
    if (!is_first && steps.go_backwards && own.mask.ok()) {
      own.mask = Reverse(own.mask, {1});
    }
    if (!steps.initial.empty()) {
      const int count = cell->output_count() - 1;
      own.initial.assign(steps.initial.begin() + next_initial,
                         steps.initial.begin() + next_initial + count);
      next_initial += count;
    }
    const RecurrenceOutputs results = cell->CallOnSteps(own, context);
    x = results.outputs;
    outputs.last_output = results.last_output;
    outputs.last.insert(outputs.last.end(), results.last.begin(),
                        results.last.end());
    if (!x.ok()) break;
  }
  outputs.outputs = x;
  return outputs;
}

}  // namespace

StackedRNNCellsLayer::StackedRNNCellsLayer(
    const std::vector<LayerPtr>& cells, const StackedRNNCellsOptions& options)
    : WrapperLayer(options.name), cells_(cells) {
  for (const LayerPtr& cell : cells_) {
    if (cell != nullptr) AddLayer(cell);
  }
}

int StackedRNNCellsLayer::output_count() const {
  int count = 1;
  for (const LayerPtr& cell : cells_) {
    if (AsCell(cell) != nullptr) count += StateCount(cell);
  }
  return count;
}

void StackedRNNCellsLayer::VisitConfig(ConfigVisitor& visitor) {
  const bool was_given = !cells_.empty();
  visitor.VisitLayers("cells", cells_);
  if (cells_.empty()) {
    return visitor.Refuse("cells", "must be at least one cell, got none");
  }
  for (const LayerPtr& cell : cells_) {
    if (AsCell(cell) == nullptr) {
      return visitor.Refuse(
          "cells", absl::StrCat("must be recurrent cells, got ", KindOf(cell)));
    }
  }
  if (was_given) return;
  for (const LayerPtr& cell : cells_) AddLayer(cell);
}

std::vector<WrapperLayer::Part> StackedRNNCellsLayer::parts() const {
  std::vector<Part> parts;
  std::map<std::string, int> counts;
  for (const LayerPtr& cell : cells_) {
    std::string name = ToSnakeCase(cell->kind());
    const int count = counts[name]++;
    if (count > 0) absl::StrAppend(&name, "_", count);
    parts.push_back({absl::StrCat("cells/", name), cell});
  }
  return parts;
}

std::vector<Shape> StackedRNNCellsLayer::StateShapes(const Shape& input) const {
  std::vector<Shape> shapes;
  Shape step = input;
  for (const LayerPtr& cell : cells_) {
    const std::vector<Shape> own = AsCell(cell)->StateShapes(step);
    shapes.insert(shapes.end(), own.begin(), own.end());
    const Shape output = AsCell(cell)->OutputShape(step);
    std::vector<int64_t> dims = {input.dim(0)};
    dims.insert(dims.end(), output.dims().begin(), output.dims().end());
    step = Shape(dims);
  }
  return shapes;
}

Shape StackedRNNCellsLayer::OutputShape(const Shape& input) const {
  Shape step = input;
  for (const LayerPtr& cell : cells_) {
    const Shape output = AsCell(cell)->OutputShape(step);
    if (cell == cells_.back()) return output;
    std::vector<int64_t> dims = {input.dim(0)};
    dims.insert(dims.end(), output.dims().begin(), output.dims().end());
    step = Shape(dims);
  }
  return step;
}

std::vector<Value> StackedRNNCellsLayer::CallMany(
    absl::Span<const Value> inputs, const CallContext& context) {
  const std::vector<Value> poisoned(output_count());
  if (static_cast<int>(inputs.size()) != output_count()) {
    inputs[0].builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat("StackedRNNCells ", name(), ": expected ",
                     output_count() - 1, " states, got ", inputs.size() - 1)));
    return poisoned;
  }
  std::vector<Value> results(1);
  Value x = inputs[0];
  absl::Span<const Value> states = inputs.subspan(1);
  for (const LayerPtr& cell : cells_) {
    const size_t count = StateCount(cell);
    std::vector<Value> own = {x};
    own.insert(own.end(), states.begin(), states.begin() + count);
    states.remove_prefix(count);
    const std::vector<Value> outputs = cell->CallAll(own, context);
    if (!outputs[0].ok()) return poisoned;
    x = outputs[0];
    results.insert(results.end(), outputs.begin() + 1, outputs.end());
  }
  results[0] = x;
  return results;
}

LayerPtr StackedRNNCells(const std::vector<LayerPtr>& cells,
                         const StackedRNNCellsOptions& options) {
  return std::make_shared<StackedRNNCellsLayer>(cells, options);
}

RNNLayer::RNNLayer(const LayerPtr& cell, const RNNOptions& options)
    : WrapperLayer(options.name), cell_(cell), options_(options) {
  if (cell_ != nullptr) AddLayer(cell_);
}

int RNNLayer::output_count() const {
  const bool has_states = options_.return_state && AsCell(cell_) != nullptr;
  return has_states ? 1 + StateCount(cell_) : 1;
}

void RNNLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("return_sequences", options_.return_sequences);
  visitor.Visit(
      Described("return_state",
                "The last states as further outputs, \"name:1\" and so on."),
      options_.return_state);
  visitor.Visit("go_backwards", options_.go_backwards);
  visitor.Visit(
      Described(
          "zero_output_for_mask",
          "The output of a masked time step is 0, not the previous output."),
      options_.zero_output_for_mask);
  visitor.Visit(Described("stateful",
                          "The states continue in the next batch. Needs "
                          "Input.batch_size and one replica."),
                options_.stateful);
  const bool was_given = cell_ != nullptr;
  visitor.Visit(
      Described("cell",
                "simple_rnn_cell, lstm_cell, gru_cell or stacked_rnn_cells."),
      cell_);
  if (AsCell(cell_) == nullptr) {
    return visitor.Refuse(
        "cell", absl::StrCat("must be a recurrent cell, got ", KindOf(cell_)));
  }
  if (!was_given) AddLayer(cell_);
}

std::vector<WrapperLayer::Part> RNNLayer::parts() const {
  if (cell_ == nullptr) return {};
  return {{"cell", cell_}};
}

void RNNLayer::BuildMany(absl::Span<const Shape> inputs) {
  const Shape& input = inputs.front();
  if (!options_.stateful || AsCell(cell_) == nullptr || input.rank() < 3) {
    return;
  }
  Shape step = input;
  step.RemoveDim(1);
  for (Shape shape : AsCell(cell_)->StateShapes(step)) {
    shape.InsertDim(0, input.dim(0));
    carried_.push_back(AddState(
        internal::CarriedStateName(static_cast<int>(carried_.size())), shape));
  }
}

std::vector<Value> RNNLayer::CallMany(absl::Span<const Value> inputs,
                                      const CallContext& context) {
  const std::vector<Value> poisoned(output_count());
  if (AsCell(cell_) == nullptr) {
    inputs[0].builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "RNN ", name(), ": the cell must be a recurrent cell, got ",
        KindOf(cell_))));
    return poisoned;
  }
  internal::CellSteps steps{
      .return_sequences = options_.return_sequences,
      .go_backwards = options_.go_backwards,
      .zero_output_for_mask = options_.zero_output_for_mask};
  if (!internal::ParseInputs(*this, inputs, StateCount(cell_), context,
                             &steps)) {
    return poisoned;
  }
  if (steps.initial.empty()) {
    for (const Weight& carried : carried_) {
      steps.initial.push_back(Cast(carried, cell_->dtype_policy().compute));
    }
  }
  const std::vector<UnitCell*> unit_cells = UnitCellsOf(cell_);
  const internal::CellOutputs outputs =
      unit_cells.empty() ? internal::ScanCell(*cell_, steps, context)
                         : RunInTurn(unit_cells, steps, context);
  if (!outputs.last_output.ok()) return poisoned;
  internal::Carry(outputs.last, carried_);
  std::vector<Value> results = {
      options_.return_sequences ? outputs.outputs : outputs.last_output};
  if (options_.return_sequences) context.masks->Set(results[0], steps.mask);
  if (options_.return_state) {
    results.insert(results.end(), outputs.last.begin(), outputs.last.end());
  }
  return results;
}

LayerPtr RNN(const LayerPtr& cell, const RNNOptions& options) {
  return std::make_shared<RNNLayer>(cell, options);
}

}  // namespace muster
