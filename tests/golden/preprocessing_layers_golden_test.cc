#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/ops/control.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/adaptable_layer.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/preprocessing/discretization.h"
#include "common/learn/nn/preprocessing/lookup.h"
#include "common/learn/nn/preprocessing/text_vectorization.h"
#include "common/learn/train/job/job_model.h"
#include "common/learn/train/job/testing/parse_job_message.h"
#include "gtest/gtest.h"
#include "proto/job_model.pb.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/run_graph.h"

namespace muster {
namespace {

template <typename T>
Tensor ListOf(absl::Span<const T> values) {
  return Tensor::FromSpan<T>({static_cast<int64_t>(values.size())}, values);
}

// Returns the tokens or boundaries of a layer; an invalid tensor if it has
// none.
Tensor StateOf(const Layer& layer) {
  if (const auto* strings = dynamic_cast<const StringLookupLayer*>(&layer)) {
    return ListOf(strings->vocabulary().tokens());
  }
  if (const auto* integers = dynamic_cast<const IntegerLookupLayer*>(&layer)) {
    return ListOf(integers->vocabulary().tokens());
  }
  if (const auto* text = dynamic_cast<const TextVectorizationLayer*>(&layer)) {
    return ListOf(text->vocabulary().tokens());
  }
  if (const auto* bins = dynamic_cast<const DiscretizationLayer*>(&layer)) {
    const std::vector<float> boundaries(bins->bin_boundaries().begin(),
                                        bins->bin_boundaries().end());
    return ListOf<float>(boundaries);
  }
  return Tensor();
}

void AdaptTo(const GoldenCase& golden, Layer* layer) {
  auto* const adaptable = dynamic_cast<AdaptableLayer*>(layer);
  int count = 0;
  while (true) {
    const auto data = golden.inputs.find(absl::StrCat("data_", count));
    if (data == golden.inputs.end()) break;
    ASSERT_NE(adaptable, nullptr);
    ASSERT_TRUE(adaptable->NeedsData());
    ASSERT_OK(adaptable->Observe(data->second));
    ++count;
  }
  if (count > 0) {
    ASSERT_OK(adaptable->FinishObserving());
  }
}

class PreprocessingLayersTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(PreprocessingLayersTest, MatchesKeras) {
  const GoldenCase& golden = GetParam();
  SCOPED_TRACE(golden.name);
  proto::JobLayer job;
  ASSERT_TRUE(ParseJobMessage(golden.config.at("job"), &job));
  ASSERT_OK_AND_ASSIGN(const LayerPtr layer, BuildJobLayer(job));
  layer->SetPath("layer");
  AdaptTo(golden, layer.get());
  std::vector<Tensor> inputs;
  for (const auto& [name, value] : golden.inputs) {
    if (name[0] == 'x') inputs.push_back(value);
  }
  const std::vector<Tensor> results =
      RunTraced(inputs, {}, [&](absl::Span<const Value> x) {
        return std::vector<Value>{Identity((*layer)(x, kInference))};
      });
  EXPECT_EQ(DescribeDifference(results.at(0), golden.outputs.at("y"), 1e-6),
            "");
  for (const char* name : {"vocabulary", "bin_boundaries"}) {
    const auto state = golden.outputs.find(name);
    if (state == golden.outputs.end()) continue;
    EXPECT_EQ(DescribeDifference(StateOf(*layer), state->second, 1e-6), "")
        << name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Golden, PreprocessingLayersTest,
    ::testing::ValuesIn(ReadGoldenCases("preprocessing_layers.json")));

}  // namespace
}  // namespace muster
