#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/base/check.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/metrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_data.h"
#include "tests/golden/keras_config_reader.h"
#include "tests/golden/run_graph.h"

namespace muster {
namespace {

Metric MakeMetric(const nlohmann::json& config) {
  // Mean() and Sum() take no labels, so no file can name them.
  if (config.at("class_name") == "Mean") return MeanOfPredictions();
  if (config.at("class_name") == "Sum") return SumOfPredictions();
  const MetricKind* const kind = FindKerasKind(kMetricKinds, config);
  MUSTER_CHECK(kind != nullptr);
  KerasConfigReader reader(config);
  return kind->make(reader);
}

// Returns the statistics of one batch.
Tensor StatisticsOfBatch(const Metric& metric, const GoldenCase& golden,
                         int64_t batch) {
  const auto input = [&](const char* name) {
    const auto found = golden.inputs.find(absl::StrCat(name, "_", batch));
    return found == golden.inputs.end() ? Tensor() : found->second;
  };
  // Mean() and Sum() take values and no labels.
  const bool has_labels = input("y_true").IsValid();
  std::vector<Tensor> arguments =
      has_labels ? std::vector<Tensor>{input("y_true"), input("y_pred")}
                 : std::vector<Tensor>{input("values"), input("values")};
  const Tensor weight = input("sample_weight");
  if (weight.IsValid()) arguments.push_back(weight);
  return RunTraced(
             arguments, {},
             [&](absl::Span<const Value> values) {
               return std::vector<Value>{
                   values.size() == 3
                       ? metric.StatisticsOf(values[0], values[1], values[2])
                       : metric.StatisticsOf(values[0], values[1])};
             })
      .front();
}

TEST(MetricsGoldenTest, MatchKerasAfterEveryBatch) {
  absl::flat_hash_set<std::string> compared;
  for (const GoldenCase& golden : ReadGoldenCases("metrics.json")) {
    SCOPED_TRACE(golden.name);
    const Metric metric = MakeMetric(golden.config);
    compared.insert(metric.name());
    const Tensor& expected = golden.outputs.at("result");
    std::vector<double> sums;
    // One number or a list of numbers per batch.
    const int64_t batch_count = expected.shape().dim(0);
    const int64_t value_count = expected.element_count() / batch_count;
    EXPECT_EQ(metric.is_list(), expected.shape().rank() == 2);
    for (int64_t batch = 0; batch < batch_count; ++batch) {
      const Tensor statistics = StatisticsOfBatch(metric, golden, batch);
      sums.resize(statistics.element_count());
      for (size_t i = 0; i < sums.size(); ++i) {
        sums[i] += statistics.flat<float>()[i];
      }
      const std::vector<double> results = metric.ResultsOf(sums);
      ASSERT_EQ(static_cast<int64_t>(results.size()), value_count);
      for (int64_t i = 0; i < value_count; ++i) {
        const double value = expected.flat<float>()[batch * value_count + i];
        EXPECT_NEAR(results[i], value, 2e-6 * std::max(1.0, std::abs(value)))
            << "value " << i << " after batch " << batch;
      }
    }
  }
  for (const MetricKind& kind : kMetricKinds) {
    EXPECT_TRUE(compared.contains(kind.name))
        << "metrics.json has no case for " << kind.name;
  }
}

}  // namespace
}  // namespace muster
