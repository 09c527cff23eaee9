#include "common/compute/ops/einsum.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/compute/ops/apply.h"
#include "common/compute/ops/matmul.h"
#include "common/compute/ops/reduction.h"
#include "common/compute/ops/shape_ops.h"
#include "common/core/tensor/shape.h"

namespace muster {
namespace {

// An operand and the labels of its axes.
struct Labelled {
  Value x;
  std::string labels;
};

bool AreDistinctLetters(absl::string_view labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(labels[i])) == 0 ||
        labels.find(labels[i], i + 1) != absl::string_view::npos) {
      return false;
    }
  }
  return true;
}

// Returns the labels of `from` for which `wanted` returns true.
template <typename Wanted>
std::string Where(absl::string_view from, Wanted wanted) {
  std::string labels;
  for (const char label : from) {
    if (wanted(label)) labels.push_back(label);
  }
  return labels;
}

Labelled Transposed(const Labelled& operand, const std::string& labels) {
  if (operand.labels == labels) return operand;
  std::vector<int64_t> permutation;
  for (const char label : labels) {
    permutation.push_back(static_cast<int64_t>(operand.labels.find(label)));
  }
  return {Transpose(operand.x, std::move(permutation)), labels};
}

// Sums over the axes whose labels are not in `kept`.
Labelled Reduced(const Labelled& operand, absl::string_view kept) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < operand.labels.size(); ++i) {
    if (!absl::StrContains(kept, operand.labels[i])) {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  if (axes.empty()) return operand;
  return {Sum(operand.x, std::move(axes)),
          Where(operand.labels,
                [&](char label) { return absl::StrContains(kept, label); })};
}

int64_t ExtentOf(const Labelled& operand, char label) {
  return operand.x.shape().dim(static_cast<int>(operand.labels.find(label)));
}

// Returns the extents of `labels`. An unknown one is -1, of which Reshape
// accepts one.
std::vector<int64_t> ExtentsOf(const Labelled& operand,
                               absl::string_view labels) {
  std::vector<int64_t> extents;
  for (const char label : labels) extents.push_back(ExtentOf(operand, label));
  return extents;
}

int64_t ProductOf(const std::vector<int64_t>& extents) {
  const bool is_known = std::find(extents.begin(), extents.end(),
                                  Shape::kUnknown) == extents.end();
  return is_known ? std::accumulate(extents.begin(), extents.end(), int64_t{1},
                                    std::multiplies<>())
                  : Shape::kUnknown;
}

// Joins the axes after the batch to one axis of rows and one of columns.
Value AsMatrices(const Labelled& operand, absl::string_view batch,
                 absl::string_view rows, absl::string_view columns) {
  if (rows.size() == 1 && columns.size() == 1) return operand.x;
  std::vector<int64_t> shape = ExtentsOf(operand, batch);
  shape.push_back(ProductOf(ExtentsOf(operand, rows)));
  shape.push_back(ProductOf(ExtentsOf(operand, columns)));
  return Reshape(operand.x, std::move(shape));
}

Value Multiply(const Labelled& a, const Labelled& b,
               const std::string& output) {
  const auto in = [](const std::string& labels) {
    return [&labels](char label) { return absl::StrContains(labels, label); };
  };
  const std::string shared = Where(a.labels, in(b.labels));
  const std::string batch = Where(shared, in(output));
  const std::string summed = Where(
      shared, [&](char label) { return !absl::StrContains(output, label); });
  const auto own = [&](const Labelled& operand) {
    return Where(operand.labels,
                 [&](char label) { return !absl::StrContains(shared, label); });
  };
  const std::string rows = own(a);
  const std::string columns = own(b);
  const Labelled left = Transposed(a, absl::StrCat(batch, rows, summed));
  const Labelled right = Transposed(b, absl::StrCat(batch, summed, columns));
  Value product = MatMul(AsMatrices(left, batch, rows, summed),
                         AsMatrices(right, batch, summed, columns));
  if (rows.size() != 1 || columns.size() != 1) {
    std::vector<int64_t> shape = ExtentsOf(left, batch + rows);
    const std::vector<int64_t> rest = ExtentsOf(right, columns);
    shape.insert(shape.end(), rest.begin(), rest.end());
    product = Reshape(product, std::move(shape));
  }
  return Transposed({product, absl::StrCat(batch, rows, columns)}, output).x;
}

}  // namespace

Value Einsum(absl::string_view equation, Value a, Value b) {
  const auto refuse = [&](absl::string_view why) {
    return internal::ReportInvalidArgument(
        {a, b}, absl::StrCat("Einsum(\"", equation, "\"): ", why));
  };
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  const std::vector<std::string> operands = absl::StrSplit(sides[0], ',');
  if (sides.size() != 2 || operands.size() != 2) {
    return refuse("expected two operands and an output, as \"ij,jk->ik\"");
  }
  const std::string& output = sides[1];
  for (const std::string& labels : {operands[0], operands[1], output}) {
    if (!AreDistinctLetters(labels)) {
      return refuse("expected labels that are letters, each once");
    }
  }
  if (!a.ok() || !b.ok()) return refuse("an operand is not of this graph");
  if (a.shape().rank() != static_cast<int>(operands[0].size()) ||
      b.shape().rank() != static_cast<int>(operands[1].size())) {
    return refuse(absl::StrCat("the operands are ", a.type().ToString(),
                               " and ", b.type().ToString(),
                               "; expected a label for each axis"));
  }
  for (const char label : output) {
    if (!absl::StrContains(sides[0], label)) {
      return refuse("the output has a label that no operand has");
    }
  }
  return Multiply(Reduced({a, operands[0]}, operands[1] + output),
                  Reduced({b, operands[1]}, operands[0] + output), output);
}

}  // namespace muster
