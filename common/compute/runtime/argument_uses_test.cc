#include "common/compute/runtime/argument_uses.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/compute/graph/graph.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using Use = StepArguments::Use;
using ::testing::ElementsAre;

constexpr int64_t kMany = StepArguments::kUploadBytesMin / 4;

class ArgumentUsesTest : public ::testing::Test {
 protected:
  int AddParameter(const TensorType& type) {
    const int node = Add("Parameter", {}, type);
    graph_.parameters.push_back(node);
    return node;
  }

  int Add(std::string op, std::vector<int> inputs, const TensorType& type) {
    Node node;
    node.op = std::move(op);
    for (const int input : inputs) node.inputs.push_back({input, 0});
    node.outputs = {type};
    graph_.nodes.push_back(std::move(node));
    return static_cast<int>(graph_.nodes.size()) - 1;
  }

  std::vector<Use> Uses() const {
    return UsesOfArguments(graph_, BuiltinOps());
  }

  Graph graph_;
};

TEST_F(ArgumentUsesTest, LargeArgumentsOfTheDeviceAreUploaded) {
  const TensorType large = {DType::kFloat32, {kMany}};
  const TensorType small = {DType::kFloat32, {kMany - 1}};
  const int uploaded = AddParameter(large);
  const int copied = AddParameter(small);
  AddParameter(large);
  Add("CopyToDevice", {uploaded}, large);
  Add("CopyToDevice", {copied}, small);
  EXPECT_THAT(Uses(), ElementsAre(Use::kUpload, Use::kHost, Use::kNone));
}

TEST_F(ArgumentUsesTest, WhatTheHostReadsStaysThere) {
  const TensorType large = {DType::kFloat32, {kMany}};
  const TensorType reshaped = {DType::kFloat32, {1, kMany}};
  for (int i = 0; i < 3; ++i) {
    const int argument = AddParameter(large);
    const int view = Add("Reshape", {argument}, reshaped);
    Add("CopyToDevice", {view}, reshaped);
    if (i == 1) Add("Neg", {view}, reshaped);
    if (i == 2) graph_.results.push_back({view, 0});
  }
  EXPECT_THAT(Uses(), ElementsAre(Use::kUpload, Use::kHost, Use::kHost));
}

}  // namespace
}  // namespace muster
