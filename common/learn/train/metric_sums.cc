#include "common/learn/train/metric_sums.h"

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/metric.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/log_lists.h"
#include "common/learn/train/base/step_results.h"

namespace muster {

MetricSums::MetricSums(StepResults results)
    : results_(std::move(results)),
      sums_(results_.losses.size() + results_.metrics.size()) {}

void MetricSums::Reset() {
  for (std::vector<double>& sums : sums_) sums.clear();
}

absl::Status MetricSums::Add(absl::Span<const Tensor> results) {
  const size_t expected = sums_.size() + (results_.has_loss_scale ? 1 : 0);
  if (results.size() != expected) {
    return absl::InternalError(absl::StrCat("a step returned ", results.size(),
                                            " results, expected ", expected));
  }
  if (results_.has_loss_scale) {
    RETURN_IF_ERROR(TakeLossScale(results.back()));
    results.remove_suffix(1);
  }
  const size_t loss_count = results_.losses.size();
  for (size_t i = 0; i < loss_count; ++i) {
    RETURN_IF_ERROR(AddLoss(results[i], &sums_[i]));
  }
  for (size_t i = loss_count; i < results.size(); ++i) {
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

absl::Status MetricSums::TakeLossScale(const Tensor& scale) {
  if (scale.dtype() != DType::kFloat32 || scale.element_count() != 2) {
    return absl::InternalError(absl::StrCat("the scale of the loss is ",
                                            scale.type().ToString(),
                                            ", expected float32[2]"));
  }
  // The result is a sum over the replicas that had data.
  const absl::Span<const float> fields = scale.flat<float>();
  if (fields[1] > 0) loss_scale_ = fields[0] / fields[1];
  return absl::OkStatus();
}

absl::Status MetricSums::AddLoss(const Tensor& loss,
                                 std::vector<double>* sums) {
  if (loss.dtype() != DType::kFloat32 || loss.element_count() != 3) {
    return absl::InternalError(absl::StrCat("the loss of a step is ",
                                            loss.type().ToString(),
                                            ", expected float32[3]"));
  }
  const absl::Span<const float> fields = loss.flat<float>();
  const double mean_over = fields[1];
  const double example_count = fields[2];
  const double value = mean_over > 0 ? fields[0] / mean_over : fields[0];
  // As in Keras' loss tracker, each step is weighted by its number of examples.
  sums->resize(2);
  (*sums)[0] += value * example_count;
  (*sums)[1] += example_count;
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
  for (size_t i = 0; i < results_.losses.size(); ++i) {
    const std::string& name = results_.losses[i];
    if (!name.empty()) logs[name] = MeanResult(sums_[i]);
  }
  for (size_t i = 0; i < results_.metrics.size(); ++i) {
    const Metric& metric = results_.metrics[i];
    const std::vector<double>& sums = sums_[results_.losses.size() + i];
    if (!metric.is_list()) {
      logs[metric.name()] = metric.ResultOf(sums);
      continue;
    }
    const std::vector<double> values = metric.ResultsOf(sums);
    for (size_t k = 0; k < values.size(); ++k) {
      logs[LogEntryName(metric.name(), k)] = values[k];
    }
  }
  return logs;
}

std::optional<std::pair<std::string, double>> MetricSums::NonFinite() const {
  const size_t loss_count = results_.losses.size();
  for (size_t i = 0; i < sums_.size(); ++i) {
    for (const double sum : sums_[i]) {
      if (std::isfinite(sum)) continue;
      if (i >= loss_count) {
        return std::pair(results_.metrics[i - loss_count].name(), sum);
      }
      const std::string& name = results_.losses[i];
      return std::pair(name.empty() ? "loss" : name, sum);
    }
  }
  return std::nullopt;
}

}  // namespace muster
