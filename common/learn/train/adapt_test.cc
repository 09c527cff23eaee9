#include "common/learn/train/adapt.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layers/dense.h"
#include "common/learn/nn/layers/normalization.h"
#include "common/learn/nn/preprocessing/discretization.h"
#include "common/learn/nn/preprocessing/lookup.h"
#include "common/learn/nn/preprocessing/text_vectorization.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/strategy/worker_agreement.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Dataset Words() {
  return Dataset::FromTensorSlices(
             {Tensor::FromSpan<std::string>({4}, {"b", "a", "b", "c"})})
      .Batch(3);
}

TEST(AdaptTest, EachInputGoesToTheLayersBehindIt) {
  const LayerOutput word = Input({1}, {.dtype = DType::kString, .name = "w"});
  const LayerOutput number = Input({1}, {.name = "n"});
  const auto lookup = MakeLayer<StringLookupLayer>(StringLookupOptions());
  const auto bins =
      MakeLayer<DiscretizationLayer>(DiscretizationOptions{.num_bins = 2});
  const auto model = Functional({word, number}, {lookup(word), bins(number)});
  const Dataset data =
      Dataset::FromTensorSlices(
          {Tensor::FromSpan<std::string>({4}, {"b", "a", "b", "c"}),
           Tensor::FromSpan<float>({4}, {1, 2, 3, 4})})
          .Batch(2);
  EXPECT_TRUE(NeedsDataBesideWeights(model));
  ASSERT_OK(Adapt(model, data));
  EXPECT_FALSE(NeedsDataBesideWeights(model));
  EXPECT_THAT(lookup->vocabulary().tokens(), ElementsAre("b", "c", "a"));
  EXPECT_THAT(bins->bin_boundaries(), ElementsAre(2));
}

TEST(AdaptTest, LayersWithAStateKeepIt) {
  const auto lookup =
      MakeLayer<StringLookupLayer>(StringLookupOptions{.vocabulary = {"z"}});
  ASSERT_OK(Adapt(Sequential({lookup}), Words()));
  EXPECT_THAT(lookup->vocabulary().tokens(), ElementsAre("z"));
}

TEST(AdaptTest, SaysWhatDoesNotFit) {
  const auto text =
      MakeLayer<TextVectorizationLayer>(TextVectorizationOptions());
  EXPECT_THAT(
      Adapt(Sequential({text}), Words().Repeat()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("never ends")));
  EXPECT_THAT(Adapt(Sequential({text}), Words().Take(0)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no data to adapt TextVectorization")));
  const Dataset numbers =
      Dataset::FromTensorSlices({Tensor::FromSpan<float>({2}, {1, 2})})
          .Batch(2);
  EXPECT_THAT(Adapt(Sequential({text}), numbers),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expected string[batch]")));
  const Dataset rows =
      Dataset::FromTensorSlices({Tensor::FromSpan<float>({2, 1}, {1, 2})})
          .Batch(2);
  const auto norm = MakeLayer<NormalizationLayer>();
  EXPECT_THAT(
      Adapt(Sequential({Input({1}), Dense(2), norm}), rows),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("stands behind")));
}

// Passes the chief's bytes to another process.
class Handover final : public WorkerAgreement {
 public:
  Handover(bool is_chief, std::string* bytes)
      : is_chief_(is_chief), bytes_(*bytes) {}

  bool is_chief() const override { return is_chief_; }
  std::optional<uint64_t> shared_seed() const override { return std::nullopt; }
  absl::StatusOr<std::string> FromChief(absl::string_view,
                                        std::string bytes) const override {
    if (is_chief_) bytes_ = std::move(bytes);
    return bytes_;
  }
  absl::StatusOr<bool> AgreeToStop(bool wants_stop) const override {
    return wants_stop;
  }

 private:
  const bool is_chief_;
  std::string& bytes_;
};

struct Layers {
  LayerPtrTo<StringLookupLayer> lookup = MakeLayer<StringLookupLayer>(
      StringLookupOptions{.output_mode = CategoryOutput::kTfIdf});
  LayerPtr model = Sequential({lookup});
};

TEST(AdaptTest, OthersReceiveTheStatesOfTheChief) {
  std::string bytes;
  Layers chief;
  ASSERT_OK(AdaptOnChief(chief.model, Words(), Handover(true, &bytes)));
  // The other process has no data.
  Layers other;
  ASSERT_OK(
      AdaptOnChief(other.model, Words().Take(0), Handover(false, &bytes)));
  EXPECT_THAT(other.lookup->vocabulary().tokens(), ElementsAre("b", "c", "a"));
  EXPECT_TRUE(BitwiseEqual(other.lookup->vocabulary().idf_weights(),
                           chief.lookup->vocabulary().idf_weights()));
}

TEST(AdaptTest, OthersReceiveTheErrorOfTheChief) {
  std::string bytes;
  Layers chief;
  EXPECT_THAT(
      AdaptOnChief(chief.model, Words().Take(0), Handover(true, &bytes)),
      StatusIs(absl::StatusCode::kInvalidArgument));
  Layers other;
  EXPECT_THAT(AdaptOnChief(other.model, Words(), Handover(false, &bytes)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no data to adapt StringLookup")));
}

TEST(AdaptTest, RefusesTheStateOfAnotherLayer) {
  std::string bytes;
  Layers chief;
  ASSERT_OK(AdaptOnChief(chief.model, Words(), Handover(true, &bytes)));
  const LayerPtr bins = Sequential({Discretization({.num_bins = 2})});
  EXPECT_THAT(AdaptOnChief(bins, Words(), Handover(false, &bytes)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the state of another layer")));
}

}  // namespace
}  // namespace muster
