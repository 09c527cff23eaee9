// A wide and deep model of clicks: a linear part and a deep network over the
// same categorical features. Its tables are partitioned over the parameter
// servers. A step transfers only the rows that its batch looks up.
//
//   launch --workers=2 --ps=2 --program=wide_and_deep

#include <cmath>
#include <cstdint>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/core/base/random.h"
#include "muster.h"

namespace {

using namespace muster;  // NOLINT: as in a user's program.

constexpr int64_t kFeatures = 4;  // Categorical, one id each.
constexpr int64_t kIdsPerFeature = 500;
constexpr int64_t kRows = kFeatures * kIdsPerFeature;
constexpr int64_t kEmbedding = 8;
constexpr int64_t kExamples = 20'000;

class WideAndDeep : public Layer {
 public:
  void Build(const Shape&) override {
    wide_ = AddWeight("wide", {kRows, 1}, Zeros());
    deep_ = AddWeight("deep", {kRows, kEmbedding},
                      RandomUniform({.minval = -0.05, .maxval = 0.05}));
  }

  // `ids` is int64 [batch, kFeatures]; each feature has its own range of rows.
  Value Call(Value ids, const CallContext& context) override {
    const Value wide = Sum(wide_.Rows(ids), {1});
    Value deep = Reshape(deep_.Rows(ids), {-1, kFeatures * kEmbedding});
    deep = (*hidden_)(deep, context);
    return wide + (*output_)(deep, context);
  }

 private:
  Weight wide_;
  Weight deep_;
  LayerPtr hidden_ = AddLayer(Dense(16, {.activation = Activation::kRelu}));
  LayerPtr output_ = AddLayer(Dense(1));
};

// Returns examples whose label depends on a hidden weight of every id, and on
// the joint effect of two features.
Dataset Clicks(uint64_t key) {
  Tensor ids(DType::kInt64, {kExamples, kFeatures});
  Tensor clicked(DType::kFloat32, {kExamples, 1});
  RandomStream random(key);
  for (int64_t i = 0; i < kExamples; ++i) {
    double score = 0;
    std::vector<double> id_weights;
    for (int64_t feature = 0; feature < kFeatures; ++feature) {
      const uint64_t row =
          feature * kIdsPerFeature + random.Below(kIdsPerFeature);
      ids.mutable_flat<int64_t>()[i * kFeatures + feature] = row;
      id_weights.push_back(UnitFloat(Philox(11, row)[0]) * 2 - 1);
    }
    score = 3 * id_weights[0] + 2 * id_weights[1] +
            4 * id_weights[2] * id_weights[3];
    clicked.mutable_flat<float>()[i] = score > 0 ? 1 : 0;
  }
  return Dataset::FromTensorSlices({ids, clicked});
}

absl::Status Train(Task& task) {
  ASSIGN_OR_RETURN(std::unique_ptr<Partitioner> halves,
                   MakeFixedShardsPartitioner(2));
  ASSIGN_OR_RETURN(auto strategy,
                   ParameterServerStrategy::Create(
                       task, {.partitioner = std::move(halves)}));

  Model model(std::make_shared<WideAndDeep>());
  RETURN_IF_ERROR(model.Compile(
      *strategy, {.optimizer = Adagrad({.learning_rate = 0.1}),
                  .loss = BinaryCrossentropy({.from_logits = true}),
                  .metrics = {BinaryAccuracy({.threshold = 0})}}));
  RETURN_IF_ERROR(model
                      .Fit(Clicks(1).Shuffle(kExamples, {.seed = 3}).Batch(128),
                           {.epochs = 8})
                      .status());
  ASSIGN_OR_RETURN(const Logs test, model.Evaluate(Clicks(2).Batch(500)));
  const double accuracy = test.at("binary_accuracy");
  std::cout << "accuracy on the test set: " << accuracy << std::endl;
  if (accuracy < 0.75) {
    return absl::InternalError("the accuracy is too low");
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) { return muster::RunTask(argc, argv, Train); }
