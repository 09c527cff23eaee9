#include "common/learn/nn/layers/einsum_dense.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"

namespace muster {
namespace {

constexpr absl::string_view kEllipsis = "...";

// The letters of the axes.
struct Labels {
  std::string input;
  std::string kernel;
  std::string output;
  std::string elided;  // Those that "..." stood for.
};

// What follows from the equation for an input.
struct Analysis {
  std::string equation;  // Without "...".
  Shape kernel;
  Shape bias;
};

bool Has(absl::string_view labels, char label) {
  return absl::StrContains(labels, label);
}

bool AreDistinctLetters(absl::string_view labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(labels[i])) == 0 ||
        Has(labels.substr(i + 1), labels[i])) {
      return false;
    }
  }
  return !labels.empty();
}

// Returns `count` letters that are not in `taken`.
std::string FreeLetters(int64_t count, absl::string_view taken) {
  std::string letters;
  for (char letter = 'A'; letter <= 'z'; ++letter) {
    if (static_cast<int64_t>(letters.size()) == count) break;
    const bool is_letter =
        std::isalpha(static_cast<unsigned char>(letter)) != 0;
    if (is_letter && !Has(taken, letter)) letters.push_back(letter);
  }
  return letters;
}

absl::StatusOr<Labels> ParseEquation(const std::string& equation, int rank) {
  const absl::Status error = absl::InvalidArgumentError(
      "expected an equation like \"abc,cd->abd\", with each letter once in "
      "input, kernel and output, or with \"...\" at the same end of input and "
      "output");
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  const std::vector<std::string> operands = absl::StrSplit(sides[0], ',');
  if (sides.size() != 2 || operands.size() != 2) return error;
  Labels labels{operands[0], operands[1], sides[1], ""};
  const bool leads = absl::StartsWith(labels.input, kEllipsis);
  if (leads || absl::EndsWith(labels.input, kEllipsis)) {
    const int64_t letters = labels.input.size() - kEllipsis.size();
    labels.elided = FreeLetters(std::max<int64_t>(rank - letters, 0), equation);
    for (std::string* const side : {&labels.input, &labels.output}) {
      const bool is_there = leads ? absl::StartsWith(*side, kEllipsis)
                                  : absl::EndsWith(*side, kEllipsis);
      if (!is_there) return error;
      side->replace(leads ? 0 : side->size() - kEllipsis.size(),
                    kEllipsis.size(), labels.elided);
    }
  }
  if (!AreDistinctLetters(labels.input) || !AreDistinctLetters(labels.kernel) ||
      !AreDistinctLetters(labels.output)) {
    return error;
  }
  for (const char label : labels.kernel + labels.output) {
    if (Has(labels.input, label)) continue;
    if (!Has(labels.kernel, label) || !Has(labels.output, label)) return error;
  }
  return labels;
}

// Returns the extent of each axis of the output.
absl::StatusOr<std::vector<int64_t>> OutputExtents(
    const Labels& labels, const Shape& input,
    const std::vector<int64_t>& output_shape) {
  // The first axis is the batch, whether a letter stands for it or "...".
  const auto is_given = [&](size_t axis) {
    return axis > 0 && !Has(labels.elided, labels.output[axis]);
  };
  size_t expected_count = 0;
  for (size_t i = 0; i < labels.output.size(); ++i) {
    if (is_given(i)) ++expected_count;
  }
  if (output_shape.size() != expected_count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "output_shape must have ", expected_count,
        " extents, without those of the batch and of \"...\", got ",
        output_shape.size()));
  }
  std::vector<int64_t> extents;
  auto given = output_shape.begin();
  for (size_t i = 0; i < labels.output.size(); ++i) {
    const char label = labels.output[i];
    int64_t extent = is_given(i) ? *given++ : Shape::kUnknown;
    const size_t axis = labels.input.find(label);
    if (axis != std::string::npos) {
      const int64_t of_input = input.dim(static_cast<int>(axis));
      if (extent != Shape::kUnknown && extent != of_input) {
        return absl::InvalidArgumentError(
            absl::StrCat("axis ", std::string(1, label), " is ", of_input,
                         " in the input and ", extent, " in output_shape"));
      }
      extent = of_input;
    }
    extents.push_back(extent);
  }
  return extents;
}

absl::StatusOr<Analysis> Analyze(const std::string& equation,
                                 const std::vector<int64_t>& output_shape,
                                 const std::string& bias_axes,
                                 const Shape& input) {
  ASSIGN_OR_RETURN(const Labels labels, ParseEquation(equation, input.rank()));
  if (static_cast<int>(labels.input.size()) != input.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected an input of rank ", labels.input.size()));
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> output,
                   OutputExtents(labels, input, output_shape));
  Analysis analysis;
  analysis.equation =
      absl::StrCat(labels.input, ",", labels.kernel, "->", labels.output);
  for (const char label : labels.kernel) {
    const size_t axis = labels.output.find(label);
    const int64_t extent =
        axis != std::string::npos
            ? output[axis]
            : input.dim(static_cast<int>(labels.input.find(label)));
    if (extent < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "axis ", std::string(1, label), " of the kernel has no extent"));
    }
    analysis.kernel.AddDim(extent);
  }
  for (size_t i = 0; i < labels.output.size(); ++i) {
    const bool is_biased = Has(bias_axes, labels.output[i]);
    if (!is_biased && analysis.bias.rank() == 0) continue;
    analysis.bias.AddDim(is_biased ? output[i] : 1);
  }
  const bool are_axes =
      bias_axes.empty() ||
      std::all_of(bias_axes.begin(), bias_axes.end(),
                  [&](char label) { return Has(labels.output, label); });
  if (!are_axes || !analysis.bias.IsFullyKnown()) {
    return absl::InvalidArgumentError(
        "bias_axes must be axes of the output, of known extents");
  }
  return analysis;
}

}  // namespace

void EinsumDenseLayer::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit(
      Described("equation",
                "\"abc,cd->abd\": the axes of input, kernel and output."),
      equation_);
  visitor.VisitExtents(Described("output_shape",
                                 "Without the batch and what \"...\" stands "
                                 "for. -1: as in the input."),
                       output_shape_);
  visitor.Visit("activation", options_.activation);
  std::optional<std::string> bias_axes;
  if (!options_.bias_axes.empty()) bias_axes = options_.bias_axes;
  visitor.Visit(Described("bias_axes", "Of the output; absent: no bias."),
                bias_axes);
  options_.bias_axes = bias_axes.value_or("");
  visitor.VisitWeight("kernel", options_.kernel_initializer,
                      options_.kernel_regularizer, options_.kernel_constraint);
  visitor.VisitWeight("bias", options_.bias_initializer,
                      options_.bias_regularizer, options_.bias_constraint);
}

// Call() reports what is wrong.
void EinsumDenseLayer::Build(const Shape& input) {
  const absl::StatusOr<Analysis> analysis =
      Analyze(equation_, output_shape_, options_.bias_axes, input);
  if (!analysis.ok()) return;
  kernel_ = AddWeight("kernel", analysis->kernel, options_.kernel_initializer,
                      {.regularizer = options_.kernel_regularizer,
                       .constraint = options_.kernel_constraint});
  if (options_.bias_axes.empty()) return;
  bias_ = AddWeight("bias", analysis->bias, options_.bias_initializer,
                    {.regularizer = options_.bias_regularizer,
                     .constraint = options_.bias_constraint});
}

Value EinsumDenseLayer::Call(Value x, const CallContext&) {
  const absl::StatusOr<Analysis> analysis =
      Analyze(equation_, output_shape_, options_.bias_axes, x.shape());
  if (!analysis.ok()) {
    x.builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat("EinsumDense ", name(), ": ", analysis.status().message(),
                     "; the equation is \"", equation_, "\", the input ",
                     x.type().ToString())));
    return Value();
  }
  Value y = Einsum(analysis->equation, x, kernel_);
  if (!options_.bias_axes.empty()) y = y + bias_;
  return Activate(options_.activation, y);
}

LayerPtr EinsumDense(const std::string& equation,
                     const std::vector<int64_t>& output_shape,
                     const EinsumDenseOptions& options) {
  return std::make_shared<EinsumDenseLayer>(equation, output_shape, options);
}

}  // namespace muster
