#include "common/dataset/sample_stages.h"

#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/dataset/combine_stages.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

class SampledElements final : public ElementStream {
 public:
  SampledElements(std::vector<std::unique_ptr<ElementStream>> inputs,
                  std::vector<double> weights, bool stop_on_empty_dataset,
                  uint64_t key)
      : inputs_(std::move(inputs)),
        stop_on_empty_dataset_(stop_on_empty_dataset),
        weights_(std::move(weights)),
        random_(key) {}

  absl::StatusOr<bool> Next(Element* element) override {
    while (!has_ended_) {
      const size_t drawn = Draw();
      if (drawn == weights_.size()) break;
      ASSIGN_OR_RETURN(const bool more, inputs_[drawn]->Next(element));
      if (more) return true;
      weights_[drawn] = 0;
      has_ended_ = stop_on_empty_dataset_;
    }
    return false;
  }

 private:
  // Returns the index of an input; their number if all have ended.
  size_t Draw() {
    const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
    const double position =
        static_cast<double>(random_.Next64() >> 11) * 0x1p-53 * sum;
    double end = 0;
    size_t drawn = weights_.size();
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (weights_[i] == 0) continue;
      // Rounding may leave the last sum below `position`.
      drawn = i;
      end += weights_[i];
      if (position < end) break;
    }
    return drawn;
  }

  const std::vector<std::unique_ptr<ElementStream>> inputs_;
  const bool stop_on_empty_dataset_;
  std::vector<double> weights_;  // 0: the input has ended.
  RandomStream random_;
  bool has_ended_ = false;
};

// `weights` has one for each input.
int64_t CardinalityOf(const std::vector<NodePointer>& inputs,
                      const std::vector<double>& weights,
                      bool stop_on_empty_dataset) {
  std::vector<NodePointer> drawn;
  bool are_infinite = true;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (weights[i] == 0) continue;
    drawn.push_back(inputs[i]);
    are_infinite &= inputs[i]->cardinality() == Dataset::kInfinite;
  }
  if (are_infinite) return Dataset::kInfinite;
  return stop_on_empty_dataset ? Dataset::kUnknownCardinality
                               : SumOfCardinalities(drawn);
}

class SampleNode final : public DatasetNode {
 public:
  SampleNode(std::vector<NodePointer> inputs, std::vector<TensorType> types,
             SampleOptions options)
      : DatasetNode(std::move(types),
                    CardinalityOf(inputs, options.weights,
                                  options.stop_on_empty_dataset),
                    inputs[0]->component_names()),
        inputs_(std::move(inputs)),
        options_(std::move(options)) {}

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const override {
    std::vector<std::unique_ptr<ElementStream>> streams;
    for (const NodePointer& input : inputs_) {
      ASSIGN_OR_RETURN(streams.emplace_back(), input->MakeElements(context));
    }
    const uint64_t key =
        FoldIn(options_.seed, options_.rerandomize_each_iteration
                                  ? static_cast<uint64_t>(context.epoch)
                                  : 0);
    return std::make_unique<SampledElements>(
        std::move(streams), options_.weights, options_.stop_on_empty_dataset,
        key);
  }

  StageKind kind() const override {
    return options_.stop_on_empty_dataset ? StageKind::kCount
                                          : StageKind::kElements;
  }
  std::vector<NodePointer> inputs() const override { return inputs_; }
  absl::StatusOr<NodePointer> WithInputs(
      std::vector<NodePointer> inputs) const override {
    return MakeSample(std::move(inputs), options_);
  }

  absl::Status Encode(proto::Dataset* encoded) const override {
    for (const NodePointer& input : inputs_) {
      RETURN_IF_ERROR(input->Encode(encoded));
    }
    proto::DatasetStage::SampleFromDatasets* const sample =
        encoded->add_stages()->mutable_sample_from_datasets();
    sample->set_input_count(static_cast<int>(inputs_.size()));
    sample->mutable_weights()->Add(options_.weights.begin(),
                                   options_.weights.end());
    sample->set_seed(options_.seed);
    sample->set_stop_on_empty_dataset(options_.stop_on_empty_dataset);
    sample->set_same_order_each_iteration(!options_.rerandomize_each_iteration);
    return absl::OkStatus();
  }

 private:
  const std::vector<NodePointer> inputs_;
  const SampleOptions options_;  // With a weight for each input.
};

absl::Status CheckWeights(const std::vector<double>& weights,
                          size_t input_count) {
  if (weights.size() != input_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("SampleFromDatasets: ", weights.size(), " weights for ",
                     input_count, " datasets; expected one for each"));
  }
  double sum = 0;
  for (const double weight : weights) {
    sum += weight;
    if (weight >= 0 && std::isfinite(sum)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("SampleFromDatasets: a weight is ", weight,
                     "; expected at least 0, and a finite sum"));
  }
  if (sum > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "SampleFromDatasets: all weights are 0; expected a positive one");
}

}  // namespace

absl::StatusOr<NodePointer> MakeSample(std::vector<NodePointer> inputs,
                                       const SampleOptions& options) {
  RETURN_IF_ERROR(CheckCombinedInputs("SampleFromDatasets", inputs));
  ASSIGN_OR_RETURN(std::vector<TensorType> types,
                   CommonTypes("SampleFromDatasets", inputs));
  SampleOptions weighted = options;
  if (weighted.weights.empty()) weighted.weights.assign(inputs.size(), 1);
  RETURN_IF_ERROR(CheckWeights(weighted.weights, inputs.size()));
  return std::make_shared<SampleNode>(std::move(inputs), std::move(types),
                                      std::move(weighted));
}

}  // namespace muster
