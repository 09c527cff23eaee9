// Exports each layer of the golden cases, and compares the results of
// onnxruntime with the predictions of Muster.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/layers.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/job/job_model.h"
#include "common/learn/train/job/testing/parse_job_message.h"
#include "common/learn/train/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job_model.pb.h"
#include "tests/golden/drawn_values.h"
#include "tests/golden/golden_data.h"
#include "tests/onnx/onnx_runs.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

absl::StatusOr<LayerPtr> Build(const std::string& text) {
  proto::JobLayer job;
  if (!ParseJobMessage(text, &job)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot parse ", text));
  }
  return BuildJobLayer(job);
}

std::vector<Tensor> InputsOf(const GoldenCase& golden) {
  if (golden.inputs.contains("x")) return {golden.inputs.at("x")};
  std::vector<Tensor> inputs;
  while (true) {
    const auto next = golden.inputs.find(absl::StrCat("x", inputs.size()));
    if (next == golden.inputs.end()) return inputs;
    inputs.push_back(next->second);
  }
}

// Sets the weights of the case; other weights keep their initial values.
absl::Status SetWeights(Model& model, const GoldenCase& golden) {
  ASSIGN_OR_RETURN(std::vector<Tensor> values, model.GetWeights());
  const std::vector<Weight> weights = model.weights();
  for (size_t i = 0; i < weights.size(); ++i) {
    for (const auto& [name, value] : golden.inputs) {
      const bool is_its = weights[i].name() == name ||
                          absl::EndsWith(weights[i].name(), "/" + name);
      if (is_its) values[i] = value;
    }
  }
  return model.SetWeights(values);
}

// Layers of strings, of tables and of histograms of tiles, which ONNX does not
// have, and cells, which only other layers call.
const std::set<std::string>& KindsLeftOut() {
  static const auto& kKinds = *new std::set<std::string>(
      {"contrast_limited_adaptive_histogram_equalization", "hashed_crossing",
       "hashing", "integer_lookup", "string_lookup", "text_vectorization",
       "gru_cell", "lstm_cell", "simple_rnn_cell", "stacked_rnn_cells"});
  return kKinds;
}

// Returns a job's layer without constraints, which have an effect in training
// only. Constraints in the cases have axes that not every weight has.
std::string WithoutConstraints(std::string job) {
  const std::string name = "_constraint {";
  for (size_t at = job.find(name); at != job.npos; at = job.find(name)) {
    size_t end = at + name.size();
    for (int depth = 1; depth > 0 && end < job.size(); ++end) {
      depth += job[end] == '{' ? 1 : job[end] == '}' ? -1 : 0;
    }
    const size_t begin = job.rfind(' ', at) + 1;
    job.erase(begin, end - begin);
  }
  return job;
}

// Returns the kind of the layer in the case: the name of the field in its job.
std::string KindOf(const GoldenCase& golden) {
  const std::string job = golden.config.at("job");
  return job.substr(0, job.find(' '));
}

// Returns shapes that all configurations of a kind accept, for kinds that do
// not accept [batch, 5, 4].
std::vector<Shape> ShapesOf(const std::string& kind) {
  static const auto& kShapes = *new std::map<std::string, std::vector<Shape>>(
      {{"auto_contrast", {{2, 7, 6, 3}}},
       {"center_crop", {{2, 7, 6, 3}}},
       {"conv_lstm1d", {{2, 3, 5, 4}}},
       {"conv_lstm2d", {{2, 3, 7, 6, 4}}},
       {"conv_lstm3d", {{2, 2, 7, 6, 5, 4}}},
       {"dense", {{2, 4}}},
       {"dot", {{2, 5, 3}, {2, 3, 4}}},
       {"group_normalization", {{2, 3, 32}}},
       {"normalization", {{2, 2}}},
       {"prelu", {{2, 7, 6, 3}}},
       {"repeat_vector", {{2, 4}}},
       {"rescaling", {{2, 7, 6, 3}}},
       {"resizing", {{2, 7, 6, 3}}},
       {"rms_normalization", {{2, 4}}}});
  if (const auto found = kShapes.find(kind); found != kShapes.end()) {
    return found->second;
  }
  if (absl::StrContains(kind, "random_")) return {{2, 7, 6, 3}};
  if (absl::StrContains(kind, "2d")) return {{2, 7, 6, 4}};
  if (absl::StrContains(kind, "3d")) return {{2, 7, 6, 5, 4}};
  if (absl::EndsWith(kind, "attention")) return {{2, 3, 4}, {2, 5, 4}};
  for (const char* const merge : {"add", "average", "concatenate", "maximum",
                                  "minimum", "multiply", "subtract"}) {
    if (kind == merge) return {{2, 5, 4}, {2, 5, 4}};
  }
  return {{2, 5, 4}};
}

std::vector<Tensor> DrawnInputs(const std::string& kind) {
  if (kind == "embedding" || kind == "reversible_embedding" ||
      kind == "category_encoding") {
    return {Tensor::FromValues<int64_t>({2, 3}, {0, 2, 1, 1, 0, 2})};
  }
  std::vector<Tensor> inputs;
  for (const Shape& shape : ShapesOf(kind)) {
    inputs.push_back(
        DrawnTensor(static_cast<uint32_t>(inputs.size() + 1), shape, 0, 2));
  }
  return inputs;
}

absl::Status AddRun(const GoldenCase& golden, const std::vector<Tensor>& inputs,
                    OnnxRuns* runs) {
  ASSIGN_OR_RETURN(const LayerPtr layer,
                   Build(WithoutConstraints(golden.config.at("job"))));
  LayerOutputs symbols;
  for (const Tensor& input : inputs) {
    symbols.push_back(Input(Shape(input.shape().dims().subspan(1)),
                            {.dtype = input.dtype()}));
  }
  Model model(symbols, layer.CallAll(symbols));
  RETURN_IF_ERROR(model.Compile({}));
  RETURN_IF_ERROR(SetWeights(model, golden));
  ASSIGN_OR_RETURN(const std::vector<Tensor> outputs,
                   model.PredictAll(Element(inputs)));
  RETURN_IF_ERROR(model.Export(runs->NextPath()));
  runs->Add(absl::StrCat(golden.name, " (",
                         golden.config.at("job").get<std::string>(), ")"),
            inputs, outputs);
  return absl::OkStatus();
}

TEST(OnnxLayersTest, ComputesWhatMusterComputes) {
  if (!HasOnnxruntime()) GTEST_SKIP() << kNoOnnxruntime;
  OnnxRuns runs;
  std::set<std::string> kinds = KindsLeftOut();
  for (const GoldenCase& golden : ReadGoldenCases("job_layers.json")) {
    const std::string kind = KindOf(golden);
    const std::string job = golden.config.at("job");
    // A layer without boundaries must be adapted to data first.
    const bool needs_data = absl::StartsWith(job, "discretization { num_bins");
    // ONNX has no variables in which to carry states.
    const bool carries_states = absl::StrContains(job, "stateful: true");
    if (KindsLeftOut().contains(kind) || needs_data || carries_states) continue;
    const std::vector<Tensor> inputs =
        golden.inputs.empty() ? DrawnInputs(kind) : InputsOf(golden);
    EXPECT_OK(AddRun(golden, inputs, &runs)) << job;
    kinds.insert(kind);
  }
  EXPECT_THAT(runs.Run(), ElementsAre());
  for (const LayerKind& kind : kLayerKinds) {
    EXPECT_TRUE(kinds.contains(std::string(kind.name)))
        << kind.name << " is neither tried nor refused";
  }
}

}  // namespace
}  // namespace muster
