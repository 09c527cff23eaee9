#include "common/learn/nn/iou_metrics.h"

#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/loss_options.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/sample_weights.h"

namespace muster {
namespace {

// Returns what is wrong with the options; empty if nothing is.
std::string WhatIsWrong(const IoUOptions& options) {
  if (options.num_classes < 1) {
    return absl::StrCat("num_classes is ", options.num_classes,
                        ", expected at least 1");
  }
  if (options.target_class_ids.empty()) {
    return "target_class_ids is empty, expected at least one class";
  }
  for (const int64_t id : options.target_class_ids) {
    if (id < 0 || id >= options.num_classes) {
      return absl::StrCat("target_class_ids has ", id, ", expected classes in ",
                          "[0, ", options.num_classes, ")");
    }
  }
  if (options.axis != -1) {
    return absl::StrCat("axis is ", options.axis,
                        ", expected -1: transpose the labels or predictions");
  }
  return "";
}

std::vector<int64_t> AllClasses(int64_t num_classes) {
  std::vector<int64_t> ids(num_classes > 0 ? num_classes : 0);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

Value IsIn(Value x, int64_t num_classes) {
  return LogicalAnd(x >= 0.0, x < static_cast<double>(num_classes));
}

// [num_classes, num_classes]: the weight of labels of class i that were
// predicted to be of class j. Labels and predictions are int64 of one size.
Value ConfusionMatrix(Value labels, Value predictions, Value sample_weight,
                      const IoUOptions& options) {
  Value counts = LogicalAnd(IsIn(labels, options.num_classes),
                            IsIn(predictions, options.num_classes));
  if (options.ignore_class.has_value()) {
    counts = LogicalAnd(
        counts, NotEqual(labels, static_cast<double>(*options.ignore_class)));
  }
  labels = Select(counts, labels, ZerosLike(labels));
  predictions = Select(counts, predictions, ZerosLike(predictions));
  Value weights = Cast(counts, DType::kFloat32);
  if (internal::HasWeights(sample_weight)) {
    weights = weights *
              BroadcastLike(Reshape(Cast(sample_weight, DType::kFloat32), {-1}),
                            weights);
  }
  const Value label_rows =
      OneHot(labels, options.num_classes) * ExpandDims(weights, -1);
  return MatMul(Transpose(label_rows),
                OneHot(predictions, options.num_classes));
}

Value StatisticsOf(absl::string_view metric, Value y_true, Value y_pred,
                   Value sample_weight, const IoUOptions& options) {
  if (!y_true.ok() || !y_pred.ok()) return Value();
  const std::string wrong = WhatIsWrong(options);
  if (!wrong.empty()) {
    y_pred.builder()->ReportError(
        absl::InvalidArgumentError(absl::StrCat(metric, ": ", wrong)));
    return Value();
  }
  const auto classes = [](Value x, bool is_sparse) {
    return Reshape(is_sparse ? Cast(x, DType::kInt64) : ArgMax(x, -1), {-1});
  };
  return ConfusionMatrix(classes(y_true, options.sparse_y_true),
                         classes(y_pred, options.sparse_y_pred), sample_weight,
                         options);
}

double MeanIoUOf(absl::Span<const double> matrix, const IoUOptions& options) {
  const int64_t size = options.num_classes;
  double sum = 0;
  double count = 0;
  for (const int64_t id : options.target_class_ids) {
    const double overlap = matrix[id * size + id];
    double both = -overlap;
    for (int64_t i = 0; i < size; ++i) {
      both += matrix[id * size + i] + matrix[i * size + id];
    }
    if (both <= 1e-9) continue;
    sum += overlap / (both + internal::kEpsilon);
    count += 1;
  }
  return sum / (count + internal::kEpsilon);
}

Metric Make(absl::string_view name, const IoUOptions& options) {
  return Metric(
             name,
             [name = std::string(name), options](Value y_true, Value y_pred,
                                                 Value sample_weight) {
               return StatisticsOf(name, y_true, y_pred, sample_weight,
                                   options);
             },
             [options](absl::Span<const double> matrix) {
               return MeanIoUOf(matrix, options);
             })
      .IgnoringMasks();
}

template <typename Options>
void VisitClasses(ConfigVisitor& visitor, Options& options) {
  visitor.VisitPositive("num_classes", options.num_classes);
  visitor.Visit("ignore_class", options.ignore_class);
  visitor.Visit("sparse_y_pred", options.sparse_y_pred);
  visitor.Visit("axis", options.axis);
  if (options.axis != -1) {
    visitor.Refuse("axis", absl::StrCat("must be -1, got ", options.axis));
  }
}

}  // namespace

void IoUOptions::VisitConfig(ConfigVisitor& visitor) {
  VisitClasses(visitor, *this);
  visitor.Visit("target_class_ids", target_class_ids);
  visitor.Visit("sparse_y_true", sparse_y_true);
}

void MeanIoUOptions::VisitConfig(ConfigVisitor& visitor) {
  VisitClasses(visitor, *this);
  visitor.Visit("sparse_y_true", sparse_y_true);
}

void BinaryIoUOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("target_class_ids", target_class_ids);
  visitor.Visit("threshold", threshold);
}

void OneHotIoUOptions::VisitConfig(ConfigVisitor& visitor) {
  VisitClasses(visitor, *this);
  visitor.Visit("target_class_ids", target_class_ids);
}

void OneHotMeanIoUOptions::VisitConfig(ConfigVisitor& visitor) {
  VisitClasses(visitor, *this);
}

Metric IoU(const IoUOptions& options) {
  return Make("io_u", options).WithOptions(options);
}

Metric MeanIoU(const MeanIoUOptions& options) {
  return Make("mean_io_u", {.num_classes = options.num_classes,
                            .target_class_ids = AllClasses(options.num_classes),
                            .ignore_class = options.ignore_class,
                            .sparse_y_true = options.sparse_y_true,
                            .sparse_y_pred = options.sparse_y_pred,
                            .axis = options.axis})
      .WithOptions(options);
}

Metric BinaryIoU(const BinaryIoUOptions& options) {
  const IoUOptions classes = {.num_classes = 2,
                              .target_class_ids = options.target_class_ids};
  const Metric metric = Make("binary_io_u", classes);
  return Metric(
             metric.name(),
             [metric, threshold = options.threshold](Value y_true, Value y_pred,
                                                     Value sample_weight) {
               if (!y_pred.ok()) return Value();
               return metric.StatisticsOf(
                   y_true, Cast(y_pred >= threshold, DType::kFloat32),
                   sample_weight);
             },
             [metric](absl::Span<const double> matrix) {
               return metric.ResultOf(matrix);
             })
      .IgnoringMasks()
      .WithOptions(options);
}

Metric OneHotIoU(const OneHotIoUOptions& options) {
  return Make("one_hot_io_u", {.num_classes = options.num_classes,
                               .target_class_ids = options.target_class_ids,
                               .ignore_class = options.ignore_class,
                               .sparse_y_true = false,
                               .sparse_y_pred = options.sparse_y_pred,
                               .axis = options.axis})
      .WithOptions(options);
}

Metric OneHotMeanIoU(const OneHotMeanIoUOptions& options) {
  return Make("one_hot_mean_io_u",
              {.num_classes = options.num_classes,
               .target_class_ids = AllClasses(options.num_classes),
               .ignore_class = options.ignore_class,
               .sparse_y_true = false,
               .sparse_y_pred = options.sparse_y_pred,
               .axis = options.axis})
      .WithOptions(options);
}

}  // namespace muster
