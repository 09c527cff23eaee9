// Tests losses and metrics that are passed to Compile() by name.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/initializers.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/loss.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/strategy/strategies/default_strategy.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/progress_bar.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kExamples = 12;

// Three outputs: a price, one of three classes, and whether it was sold.
Model ThreeHeads() {
  const LayerOutput x = Input({3}, {.name = "x"});
  const auto head = [&](int64_t units, Activation activation,
                        const std::string& name) {
    return Dense(units, {.activation = activation,
                         .kernel_initializer = GlorotUniform(7),
                         .name = name})(x);
  };
  return Model({x}, {head(1, Activation::kLinear, "price"),
                     head(3, Activation::kSoftmax, "kind"),
                     head(1, Activation::kSigmoid, "sold")});
}

Dataset Data() {
  Tensor x(DType::kFloat32, {kExamples, 3});
  Tensor price(DType::kFloat32, {kExamples, 1});
  Tensor kind(DType::kInt64, {kExamples});
  Tensor sold(DType::kFloat32, {kExamples, 1});
  for (int64_t i = 0; i < kExamples; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      x.mutable_flat<float>()[3 * i + j] =
          static_cast<float>((i * (j + 2)) % 7) / 3 - 1;
    }
    price.mutable_flat<float>()[i] = static_cast<float>(i % 5);
    kind.mutable_flat<int64_t>()[i] = i % 3;
    sold.mutable_flat<float>()[i] = static_cast<float>(i % 2);
  }
  return Dataset::FromTensorSlices({x, price, kind, sold}).Batch(4);
}

CompileOptions ByName() {
  return {
      .optimizer = Sgd({.learning_rate = 0.1}),
      .losses = {"mse", "crossentropy", "binary_crossentropy"},
      .output_metrics = {{"mae"}, {"accuracy", "acc"}, {"accuracy", "AUC"}}};
}

absl::StatusOr<History> Train(const CompileOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Strategy> strategy,
                   DefaultStrategy::Create({.thread_count = 1}));
  Model model = ThreeHeads();
  RETURN_IF_ERROR(model.Compile(*strategy, options));
  return model.Fit(Data(), {.epochs = 2, .verbose = Verbosity::kSilent});
}

absl::Status Compile(const CompileOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Strategy> strategy,
                   DefaultStrategy::Create({.thread_count = 1}));
  return ThreeHeads().Compile(*strategy, options);
}

TEST(CompileNames, NameWhatTheFunctionsMake) {
  ASSERT_OK_AND_ASSIGN(const History named, Train(ByName()));
  CompileOptions options = ByName();
  options.losses = {MeanSquaredError(), SparseCategoricalCrossentropy(),
                    BinaryCrossentropy()};
  options.output_metrics = {{MeanAbsoluteError()},
                            {SparseCategoricalAccuracy()},
                            {BinaryAccuracy(), Auc()}};
  ASSERT_OK_AND_ASSIGN(const History made, Train(options));
  for (const auto& [name, function] :
       {std::pair<std::string, std::string>{"loss", "loss"},
        {"price_mae", "price_mean_absolute_error"},
        {"kind_accuracy", "kind_sparse_categorical_accuracy"},
        {"kind_acc", "kind_sparse_categorical_accuracy"},
        {"sold_accuracy", "sold_binary_accuracy"},
        {"sold_AUC", "sold_auc"}}) {
    ASSERT_TRUE(named.history.contains(name)) << name;
    EXPECT_EQ(named.history.at(name), made.history.at(function)) << name;
  }
}

TEST(CompileNames, UnknownOnesHaveCandidates) {
  CompileOptions options = ByName();
  options.losses[1] = "categorical_crosentropy";
  EXPECT_THAT(Compile(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Compile, losses: Muster has no loss "
                                 "categorical_crosentropy; did you mean")));
  options = ByName();
  options.output_metrics[0] = {"mean_absolute_eror"};
  EXPECT_THAT(Compile(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Compile, output_metrics: Muster has no "
                                 "metric mean_absolute_eror")));
}

TEST(CompileNames, OnlyCompileLooksThemUp) {
  EXPECT_TRUE(Loss("mse"));
  EXPECT_TRUE(Loss("mse").is_name());
  EXPECT_FALSE(MeanSquaredError().is_name());
  EXPECT_FALSE(Loss().is_name());
  GraphBuilder builder(&BuiltinOps(), "test");
  const Value x = builder.Constant(Tensor::Scalar<float>(1));
  builder.AddResult(Loss("mse")(x, x));
  EXPECT_THAT(std::move(builder).Build(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("only Compile() looks up")));
}

}  // namespace
}  // namespace muster
