#include "common/learn/train/predict_run.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/step_graphs.h"

namespace muster {
absl::StatusOr<Tensor> ConcatenateRows(absl::Span<const Tensor> batches) {
  if (batches.empty()) {
    return absl::InvalidArgumentError("no batches to predict from");
  }
  Shape shape = batches.front().shape();
  int64_t row_count = 0;
  for (const Tensor& batch : batches) row_count += batch.shape().dim(0);
  shape.set_dim(0, row_count);
  Tensor all(batches.front().dtype(), shape);
  if (all.dtype() == DType::kString) {
    auto next = all.mutable_flat<std::string>().begin();
    for (const Tensor& batch : batches) {
      const auto strings = batch.flat<std::string>();
      next = std::copy(strings.begin(), strings.end(), next);
    }
    return all;
  }
  uint8_t* next = all.mutable_raw_data();
  for (const Tensor& batch : batches) {
    if (batch.size_bytes() == 0) continue;
    std::memcpy(next, batch.raw_data(), batch.size_bytes());
    next += batch.size_bytes();
  }
  return all;
}

absl::StatusOr<std::vector<Tensor>> PredictAll(const CompiledModel& model,
                                               const Dataset& data) {
  if (data.Cardinality() == Dataset::kInfinite) {
    return absl::InvalidArgumentError(
        "cannot predict for data that never ends; use Take()");
  }
  ASSIGN_OR_RETURN(const Graph step,
                   TracePredictStep(model.layer(), data.element_types()));
  ASSIGN_OR_RETURN(
      std::unique_ptr<StepLoop> loop,
      model.strategy()->CreateLoop(step, data, LoopKind::kPredict));

  std::vector<std::vector<Tensor>> batches(step.results.size());
  const auto keep = [&](absl::Span<const Tensor> results) {
    for (size_t i = 0; i < results.size(); ++i) {
      batches[i].push_back(results[i].Clone());
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(
      loop->Run(std::numeric_limits<int64_t>::max(), keep).status());
  std::vector<Tensor> predictions;
  for (const std::vector<Tensor>& output : batches) {
    ASSIGN_OR_RETURN(Tensor whole, ConcatenateRows(output));
    predictions.push_back(std::move(whole));
  }
  return predictions;
}

}  // namespace muster
