#include "common/learn/nn/preprocessing/hashed_crossing.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/string_ops.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/config_visitor.h"

namespace muster {
namespace {

bool IsColumn(const Shape& shape) {
  return shape.rank() == 1 || (shape.rank() == 2 && shape.dim(1) == 1);
}

}  // namespace

void HashedCrossingLayer::VisitConfig(ConfigVisitor& visitor) {
  // Keras refuses indices of the default dtype.
  static constexpr absl::string_view kDTypes[] = {"float32", "int64", "int32"};
  visitor.VisitPositive("num_bins", num_bins_);
  visitor.Visit(Described("output_mode", "INT or ONE_HOT."), output_mode_,
                kCategoryOutputNames);
  int dtype = output_mode_ == CategoryOutput::kInt ? 1 : 0;
  visitor.VisitChoice({"", "dtype"}, dtype, kDTypes);
  if (output_mode_ != CategoryOutput::kInt &&
      output_mode_ != CategoryOutput::kOneHot) {
    visitor.Refuse("output_mode", "must be int or one_hot");
  }
}

std::vector<Value> HashedCrossingLayer::CallMany(absl::Span<const Value> inputs,
                                                 const CallContext&) {
  if (inputs.size() < 2 || num_bins_ < 1 || !IsColumn(inputs[0].shape())) {
    inputs[0].builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "HashedCrossing ", name(),
        ": expected num_bins of at least 1 and two inputs or more of the shape "
        "[batch] or [batch, 1], got ",
        num_bins_, " and ", inputs.size(), ", the first one ",
        inputs[0].type().ToString())));
    return {Value()};
  }
  const Value bins = CrossHash(inputs, num_bins_);
  if (output_mode_ == CategoryOutput::kInt) return {bins};
  return {EncodeCategories(bins, output_mode_, num_bins_)};
}

LayerPtr HashedCrossing(int64_t num_bins,
                        const HashedCrossingOptions& options) {
  return std::make_shared<HashedCrossingLayer>(num_bins, options);
}

}  // namespace muster
