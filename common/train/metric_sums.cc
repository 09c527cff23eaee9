#include "common/train/metric_sums.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/nn/metric.h"
#include "common/tensor/dtype.h"
#include "common/tensor/tensor.h"
#include "common/train/history.h"

namespace muster {

MetricSums::MetricSums(std::vector<Metric> metrics)
    : metrics_(std::move(metrics)), sums_(metrics_.size() + 1) {}

void MetricSums::Reset() {
  for (std::vector<double>& sums : sums_) sums.clear();
}

absl::Status MetricSums::Add(absl::Span<const Tensor> results) {
  if (results.size() != sums_.size()) {
    return absl::InternalError(absl::StrCat(
        "a step gave ", results.size(), " results, expected ", sums_.size()));
  }
  RETURN_IF_ERROR(AddLoss(results[0]));
  for (size_t i = 1; i < results.size(); ++i) {
    std::vector<double>& sums = sums_[i];
    const Tensor& statistics = results[i];
    if (sums.empty()) sums.resize(statistics.element_count());
    const bool fits =
        statistics.dtype() == DType::kFloat32 &&
        sums.size() == static_cast<size_t>(statistics.element_count());
    if (!fits) {
      return absl::InternalError(absl::StrCat(
          "result ", i, " of a step is ", statistics.type().ToString(),
          ", expected ", sums.size(), " float32 as in the step before"));
    }
    const absl::Span<const float> values = statistics.flat<float>();
    for (size_t j = 0; j < sums.size(); ++j) sums[j] += values[j];
  }
  return absl::OkStatus();
}

absl::Status MetricSums::AddLoss(const Tensor& loss) {
  if (loss.dtype() != DType::kFloat32 || loss.element_count() != 3) {
    return absl::InternalError(absl::StrCat("the loss of a step is ",
                                            loss.type().ToString(),
                                            ", expected float32[3]"));
  }
  const absl::Span<const float> fields = loss.flat<float>();
  const double mean_over = fields[1];
  const double example_count = fields[2];
  const double value = mean_over > 0 ? fields[0] / mean_over : fields[0];
  // As Keras' loss tracker: each step counts by its examples.
  std::vector<double>& sums = sums_[0];
  sums.resize(2);
  sums[0] += value * example_count;
  sums[1] += example_count;
  return absl::OkStatus();
}

absl::Status MetricSums::Restore(std::vector<std::vector<double>> sums) {
  bool fits = sums.size() == sums_.size() && !sums.empty() &&
              (sums[0].empty() || sums[0].size() == 2);
  for (const std::vector<double>& each : sums) {
    fits = fits && each.empty() == sums[0].empty();
  }
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the checkpoint has sums of ", sums.size(),
        " metrics, the loss among them, and the model has ", sums_.size(),
        "; compile it with the metrics it was saved with"));
  }
  sums_ = std::move(sums);
  return absl::OkStatus();
}

Logs MetricSums::Values() const {
  Logs logs;
  if (sums_[0].empty()) return logs;
  logs["loss"] = MeanResult(sums_[0]);
  for (size_t i = 0; i < metrics_.size(); ++i) {
    logs[metrics_[i].name()] = metrics_[i].ResultOf(sums_[i + 1]);
  }
  return logs;
}

}  // namespace muster
