#include "common/learn/train/base/metric_direction.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/confusion_metrics.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metric.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/train/base/step_results.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr auto kUp = MetricDirection::kUp;
constexpr auto kDown = MetricDirection::kDown;

// Leaves all options at their defaults.
class Defaults final : public ConfigVisitor {
 public:
  using ConfigVisitor::Visit;
  void Visit(ConfigName, bool&) override {}
  void Visit(ConfigName, int64_t&) override {}
  void Visit(ConfigName, double&) override {}
  void Visit(ConfigName, uint64_t&) override {}
  void Visit(ConfigName, std::string&) override {}
  void Visit(ConfigName, std::vector<int64_t>&) override {}
  void Visit(ConfigName, std::vector<double>&) override {}
  void Visit(ConfigName, std::vector<std::string>&) override {}
  void Visit(ConfigName, Initializer&) override {}
  void Visit(ConfigName, Regularizer&) override {}
  void Visit(ConfigName, Constraint&) override {}
  void Visit(ConfigName, LayerPtr&) override {}
  void VisitLayers(ConfigName, std::vector<LayerPtr>&) override {}
  void VisitChoice(ConfigName, int&,
                   absl::Span<const absl::string_view>) override {}
  void VisitPairs(ConfigName, std::vector<int64_t>&) override {}
  bool IsPresent(ConfigName, bool is_set) override { return is_set; }
  void Refuse(ConfigName, absl::string_view) override {}
};

// keras.metrics.<class>._direction of Keras 3.15.1, by the names of the table.
std::optional<MetricDirection> DirectionInKeras(absl::string_view name) {
  static const std::map<absl::string_view, MetricDirection> directions = {
      {"accuracy", kUp},
      {"binary_accuracy", kUp},
      {"categorical_accuracy", kUp},
      {"sparse_categorical_accuracy", kUp},
      {"top_k_categorical_accuracy", kUp},
      {"sparse_top_k_categorical_accuracy", kUp},
      {"auc", kUp},
      {"mean_squared_error", kDown},
      {"mean_absolute_error", kDown},
      {"mean_absolute_percentage_error", kDown},
      {"mean_squared_logarithmic_error", kDown},
      {"poisson", kDown},
      {"kl_divergence", kDown},
      {"hinge", kDown},
      {"squared_hinge", kDown},
      {"categorical_hinge", kDown},
      {"logcosh", kDown},
      {"root_mean_squared_error", kDown},
      {"cosine_similarity", kUp},
      {"pearson_correlation", kUp},
      {"concordance_correlation", kUp},
      {"r2_score", kUp},
      {"binary_crossentropy", kDown},
      {"categorical_crossentropy", kDown},
      {"sparse_categorical_crossentropy", kDown},
      {"precision", kUp},
      {"recall", kUp},
      {"sensitivity_at_specificity", kUp},
      {"specificity_at_sensitivity", kUp},
      {"precision_at_recall", kUp},
      {"recall_at_precision", kUp},
      {"f1_score", kUp},
      {"fbeta_score", kUp},
      {"io_u", kUp},
      {"mean_io_u", kUp},
      {"binary_io_u", kUp},
      {"one_hot_io_u", kUp},
      {"one_hot_mean_io_u", kUp},
  };
  const auto found = directions.find(name);
  if (found == directions.end()) return std::nullopt;
  return found->second;
}

TEST(MetricDirectionTest, EveryMetricHasThatOfKeras) {
  for (const MetricKind& kind : kMetricKinds) {
    Defaults defaults;
    const Metric metric = kind.make(defaults);
    EXPECT_EQ(DirectionOf(metric), DirectionInKeras(kind.name)) << kind.name;
    EXPECT_EQ(DirectionOf(metric.Named("other")), DirectionInKeras(kind.name))
        << kind.name;
  }
}

TEST(MetricDirectionTest, OfLogsIsThatOfTheMetricWhateverItsName) {
  const StepResults results = {
      .losses = {"loss", "out_loss", ""},
      .metrics = {BinaryAccuracy().Named("error_free"),
                  Metric(MeanAbsoluteError()).Named("accuracy_lost"),
                  TruePositives(), BinaryAccuracy().Named("out_loss_free")}};
  EXPECT_EQ(DirectionOf(results, "loss"), kDown);
  EXPECT_EQ(DirectionOf(results, "out_loss"), kDown);
  EXPECT_EQ(DirectionOf(results, "error_free"), kUp);
  EXPECT_EQ(DirectionOf(results, "accuracy_lost"), kDown);
  EXPECT_EQ(DirectionOf(results, "true_positives"), std::nullopt);
  EXPECT_EQ(DirectionOf(results, "accuracy"), std::nullopt);
  EXPECT_EQ(DirectionOf(StepResults(), "loss"), kDown);
  // One entry of a list.
  EXPECT_EQ(DirectionOf(results, "error_free[1]"), kUp);
}

}  // namespace
}  // namespace muster
