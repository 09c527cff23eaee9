#include "common/learn/nn/programs/program_loss.h"

#include <cstddef>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/program_ops.h"
#include "common/compute/programs/compiled/compiled_program.h"
#include "common/compute/programs/program.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/loss_options.h"

namespace muster {
namespace {

// Runs a program of one output on values, which are cast to its dtypes.
// `encoded` is the result of Program::Decode().
Value RunOnCast(std::vector<Value> inputs,
                const absl::StatusOr<Program>& program) {
  GraphBuilder* const builder = inputs.back().builder();
  if (!program.ok()) {
    builder->ReportError(program.status());
    return Value();
  }
  const ProgramTypes& types = program->types;
  if (types.inputs.size() != inputs.size() || types.outputs.size() != 1) {
    builder->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "program ", program->name, " has ", types.inputs.size(), " inputs and ",
        types.outputs.size(), " outputs; expected ", inputs.size(), " and 1")));
    return Value();
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DType dtype = types.inputs[i].dtype;
    if (inputs[i].ok() && inputs[i].dtype() != dtype) {
      inputs[i] = Cast(inputs[i], dtype);
    }
  }
  return RunProgram(inputs, *program)[0];
}

// Returns `count` columns of the predictions of a model that computes its loss,
// from `first` on. A count of Shape::kUnknown takes all that follow.
Value ColumnsOf(Value predictions, int64_t first, int64_t count) {
  if (predictions.ok() && predictions.shape().rank() != 2) {
    predictions.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "a model that computes its loss has the output ",
        predictions.type().ToString(), "; expected a row for each example")));
    return Value();
  }
  return Slice(predictions, {0, first}, {Shape::kUnknown, count});
}

// The value of a metric from the sums of its statistics.
absl::StatusOr<std::vector<double>> Evaluate(const Program& program,
                                             absl::Span<const double> sums) {
  Tensor statistics(DType::kFloat32, {static_cast<int64_t>(sums.size())});
  for (size_t i = 0; i < sums.size(); ++i) {
    statistics.mutable_flat<float>()[i] = static_cast<float>(sums[i]);
  }
  ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                   EvaluateProgram(program, {statistics}));
  std::vector<double> values;
  for (int64_t i = 0; i < outputs.at(0).element_count(); ++i) {
    values.push_back(outputs[0].ElementAsDouble(i));
  }
  return values;
}

}  // namespace

void ProgramLossOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("program", program);
  internal::VisitReduction(visitor, reduction);
}

Loss ProgramLoss(const ProgramLossOptions& options) {
  const auto program = std::make_shared<const absl::StatusOr<Program>>(
      Program::Decode(options.program));
  return Loss(
             kProgramName,
             [program, is_column = options.program.empty()](Value y_true,
                                                            Value y_pred) {
               return is_column ? Squeeze(ColumnsOf(y_pred, 0, 1), {1})
                                : RunOnCast({y_true, y_pred}, *program);
             },
             options.reduction)
      .WithOptions(options);
}

void ProgramMetricOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("statistics_program", statistics_program);
  visitor.Visit("weighted_program", weighted_program);
  visitor.Visit("result_program", result_program);
}

Metric ProgramMetric(const ProgramMetricOptions& options) {
  const auto decode = [](const std::string& encoded) {
    return std::make_shared<const absl::StatusOr<Program>>(
        Program::Decode(encoded));
  };
  const auto statistics = decode(options.statistics_program);
  const auto weighted = decode(options.weighted_program);
  const auto result = decode(options.result_program);
  const bool takes_weights = !options.weighted_program.empty();
  const bool is_of_columns = options.statistics_program.empty();
  const auto of_batch = [=](Value y_true, Value y_pred, Value weight) {
    if (weight.builder() == nullptr) {
      return is_of_columns ? Sum(ColumnsOf(y_pred, 1, Shape::kUnknown), {0})
                           : RunOnCast({y_true, y_pred}, *statistics);
    }
    if (takes_weights) return RunOnCast({y_true, y_pred, weight}, *weighted);
    y_pred.builder()->ReportError(absl::InvalidArgumentError(
        "a metric of a program takes no sample weights and no masks"));
    return Value();
  };
  const auto values = [result](absl::Span<const double> sums) {
    auto evaluated = result->ok() ? Evaluate(**result, sums) : result->status();
    if (evaluated.ok() && !evaluated->empty()) return *std::move(evaluated);
    LOG(ERROR) << "the value of a metric: " << evaluated.status();
    return std::vector<double>{std::numeric_limits<double>::quiet_NaN()};
  };
  const bool is_list = result->ok() && (*result)->types.outputs.size() == 1 &&
                       (*result)->types.outputs[0].shape.rank() > 0;
  if (is_list) {
    return Metric(kProgramName, of_batch, Metric::Results(values))
        .WithOptions(options);
  }
  return Metric(kProgramName, of_batch,
                Metric::Result([values](absl::Span<const double> sums) {
                  return values(sums).front();
                }))
      .WithOptions(options);
}

}  // namespace muster
