#include "common/learn/nn/programs/program_layer.h"

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/program_ops.h"
#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initializer.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/initializers.h"
#include "google/protobuf/text_format.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

// Checks the numbers of a program's inputs and outputs.
absl::StatusOr<Program> DecodeFor(const ProgramLayerOptions& options,
                                  bool training) {
  ASSIGN_OR_RETURN(Program program,
                   Program::Decode(training ? options.training_program
                                            : options.inference_program));
  const size_t input_count = options.input_count + options.weight_types.size() +
                             (training ? options.seed_count : 0);
  const bool has_gradients =
      program.gradient.has_value() && program.gradient->is_of_loss;
  const size_t output_count =
      (has_gradients ? program.gradient->inputs.size() : 0) +
      options.output_count + (options.adds_loss ? 1 : 0) +
      (training ? options.updated_weights.size() : 0);
  if (program.types.inputs.size() == input_count &&
      program.types.outputs.size() == output_count) {
    return program;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "program ", program.name, " has ", program.types.inputs.size(),
      " inputs and ", program.types.outputs.size(), " outputs; expected ",
      input_count, " and ", output_count));
}

// Parses an entry of weight_constraints.
absl::StatusOr<proto::Constraint> ParseConstraint(const std::string& text) {
  proto::Constraint constraint;
  if (!google::protobuf::TextFormat::ParseFromString(text, &constraint)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", text.substr(0, 100), "\" is no constraint in text form"));
  }
  RETURN_IF_ERROR(CheckConstraint(constraint));
  return constraint;
}

void ReportError(absl::Span<const Value> inputs, absl::string_view layer,
                 const absl::Status& status) {
  inputs.front().builder()->ReportError(absl::Status(
      status.code(), absl::StrCat("layer ", layer, ": ", status.message())));
}

}  // namespace

ProgramLayer::ProgramLayer(ProgramLayerOptions options)
    : Layer(options.name), options_(std::move(options)) {}

void ProgramLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("training_program", options_.training_program);
  visitor.Visit("inference_program", options_.inference_program);
  visitor.VisitPositive("input_count", options_.input_count);
  visitor.VisitPositive("output_count", options_.output_count);
  visitor.Visit("weight_names", options_.weight_names);
  visitor.Visit("weight_types", options_.weight_types);
  visitor.Visit("trainable_count", options_.trainable_count);
  visitor.Visit("weight_constraints", options_.weight_constraints);
  visitor.Visit("updated_weights", options_.updated_weights);
  visitor.Visit("seed_count", options_.seed_count);
  visitor.Visit("adds_loss", options_.adds_loss);
  const auto count = static_cast<int64_t>(options_.weight_types.size());
  if (options_.weight_names.size() != options_.weight_types.size()) {
    visitor.Refuse("weight_names", absl::StrCat("must be one for each of the ",
                                                count, " weight_types, got ",
                                                options_.weight_names.size()));
  }
  for (const std::string& type : options_.weight_types) {
    const auto parsed = ParseTensorType(type);
    if (!parsed.ok()) visitor.Refuse("weight_types", parsed.status().message());
  }
  const size_t constraint_count = options_.weight_constraints.size();
  if (constraint_count != 0 &&
      constraint_count != options_.weight_types.size()) {
    visitor.Refuse("weight_constraints",
                   absl::StrCat("must be one for each of the ", count,
                                " weight_types, got ", constraint_count));
  }
  for (const std::string& text : options_.weight_constraints) {
    const auto parsed = ParseConstraint(text);
    if (!parsed.ok()) {
      visitor.Refuse("weight_constraints", parsed.status().message());
    }
  }
  if (options_.trainable_count < 0 || options_.trainable_count > count) {
    visitor.Refuse("trainable_count",
                   absl::StrCat("must be 0 to ", count, ", got ",
                                options_.trainable_count));
  }
  for (const int64_t index : options_.updated_weights) {
    if (index >= 0 && index < count) continue;
    visitor.Refuse("updated_weights", absl::StrCat("must be indices of ", count,
                                                   " weights, got ", index));
  }
  if (options_.seed_count < 0) {
    visitor.Refuse("seed_count", absl::StrCat("must be at least 0, got ",
                                              options_.seed_count));
  }
}

void ProgramLayer::BuildMany(absl::Span<const Shape>) {
  for (size_t i = 0; i < options_.weight_types.size(); ++i) {
    // VisitConfig() has checked the types of a file.
    const auto type = ParseTensorType(options_.weight_types[i]);
    if (!type.ok()) continue;
    const bool is_trainable =
        static_cast<int64_t>(i) < options_.trainable_count;
    Constraint constraint;
    if (i < options_.weight_constraints.size()) {
      // VisitConfig() has checked the constraints of a file.
      const auto parsed = ParseConstraint(options_.weight_constraints[i]);
      if (!parsed.ok()) continue;
      constraint = Constraint(*parsed);
    }
    weights_.push_back(
        AddWeight(options_.weight_names[i], type->shape, Zeros(),
                  {.trainable = is_trainable,
                   .dtype = type->dtype,
                   .aggregation = is_trainable ? proto::AGGREGATION_NONE
                                  : IsFloating(type->dtype)
                                      ? proto::AGGREGATION_MEAN
                                      : proto::AGGREGATION_ONLY_FIRST_REPLICA,
                   .constraint = constraint}));
  }
}

std::vector<Value> ProgramLayer::Arguments(absl::Span<const Value> inputs,
                                           const Program& program,
                                           const CallContext& context) const {
  std::vector<Value> arguments;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DType dtype = program.types.inputs[i].dtype;
    arguments.push_back(inputs[i].dtype() == dtype ? inputs[i]
                                                   : Cast(inputs[i], dtype));
  }
  for (const Weight& weight : weights_) arguments.push_back(weight);
  if (!context.training) return arguments;
  for (int64_t i = 0; i < options_.seed_count; ++i) {
    const uint64_t seed = FoldIn(FoldIn(context.seed, path()), i);
    arguments.push_back(
        ProgramSeed(inputs.front(), static_cast<int64_t>(seed)));
  }
  return arguments;
}

std::vector<Value> ProgramLayer::CallMany(absl::Span<const Value> inputs,
                                          const CallContext& context) {
  const absl::StatusOr<Program> program = DecodeFor(options_, context.training);
  if (!program.ok() || weights_.size() != options_.weight_types.size()) {
    ReportError(inputs, name(),
                program.ok()
                    ? absl::InvalidArgumentError("invalid weight_types")
                    : program.status());
    return std::vector<Value>(options_.output_count);
  }
  std::vector<Value> outputs =
      RunProgram(Arguments(inputs, *program, context), *program);
  size_t next = options_.output_count;
  if (options_.adds_loss) {
    if (context.losses != nullptr) context.losses->push_back(outputs[next]);
    ++next;
  }
  if (context.training) {
    for (const int64_t index : options_.updated_weights) {
      weights_[index].AssignAdd(StopGradient(outputs[next++]));
    }
  }
  outputs.resize(options_.output_count);
  return outputs;
}

LayerPtr MakeProgramLayer(ProgramLayerOptions options) {
  return std::make_shared<ProgramLayer>(std::move(options));
}

}  // namespace muster
