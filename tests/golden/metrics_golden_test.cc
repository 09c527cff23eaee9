#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/base/check.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/metrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_data.h"
#include "tests/golden/run_graph.h"

namespace muster {
namespace {

AucOptions AucOptionsFrom(const nlohmann::json& config) {
  AucOptions options{.num_thresholds = config.at("num_thresholds"),
                     .from_logits = config.at("from_logits")};
  if (config.at("curve") == "PR") options.curve = AucCurve::kPr;
  const std::string method = config.at("summation_method");
  if (method == "minoring") options.summation_method = AucSummation::kMinoring;
  if (method == "majoring") options.summation_method = AucSummation::kMajoring;
  return options;
}

Metric MakeMetric(const nlohmann::json& config) {
  const std::string name = config.at("class_name");
  if (name == "Mean") return MeanOfPredictions();
  if (name == "MeanSquaredError") return MeanSquaredError();
  if (name == "MeanAbsoluteError") return MeanAbsoluteError();
  if (name == "BinaryAccuracy") {
    return BinaryAccuracy({.threshold = config.at("threshold")});
  }
  if (name == "CategoricalAccuracy") return CategoricalAccuracy();
  if (name == "SparseCategoricalAccuracy") return SparseCategoricalAccuracy();
  if (name == "TopKCategoricalAccuracy") {
    return TopKCategoricalAccuracy({.k = config.at("k")});
  }
  if (name == "SparseTopKCategoricalAccuracy") {
    return SparseTopKCategoricalAccuracy({.k = config.at("k")});
  }
  MUSTER_CHECK(name == "AUC");
  return Auc(AucOptionsFrom(config));
}

// Returns the statistics of one batch.
Tensor StatisticsOfBatch(const Metric& metric, const GoldenCase& golden,
                         int64_t batch) {
  const auto input = [&](const char* name) {
    const auto found = golden.inputs.find(absl::StrCat(name, "_", batch));
    return found == golden.inputs.end() ? Tensor() : found->second;
  };
  // Mean() takes values and no labels.
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
  for (const GoldenCase& golden : ReadGoldenCases("metrics.json")) {
    SCOPED_TRACE(golden.name);
    const Metric metric = MakeMetric(golden.config);
    const Tensor& expected = golden.outputs.at("result");
    std::vector<double> sums;
    for (int64_t batch = 0; batch < expected.element_count(); ++batch) {
      const Tensor statistics = StatisticsOfBatch(metric, golden, batch);
      sums.resize(statistics.element_count());
      for (size_t i = 0; i < sums.size(); ++i) {
        sums[i] += statistics.flat<float>()[i];
      }
      EXPECT_NEAR(metric.ResultOf(sums), expected.flat<float>()[batch], 2e-6)
          << "after batch " << batch;
    }
  }
}

TEST(MetricsTest, HaveKerasNames) {
  EXPECT_EQ(BinaryAccuracy().name(), "binary_accuracy");
  EXPECT_EQ(CategoricalAccuracy().name(), "categorical_accuracy");
  EXPECT_EQ(SparseCategoricalAccuracy().name(), "sparse_categorical_accuracy");
  EXPECT_EQ(TopKCategoricalAccuracy().name(), "top_k_categorical_accuracy");
  EXPECT_EQ(SparseTopKCategoricalAccuracy().name(),
            "sparse_top_k_categorical_accuracy");
  EXPECT_EQ(Auc().name(), "auc");
  EXPECT_EQ(Metric(MeanSquaredError()).name(), "mean_squared_error");
  EXPECT_EQ(Metric(MeanAbsoluteError()).name(), "mean_absolute_error");
}

}  // namespace
}  // namespace muster
