#include "common/io/checkpoint/object_graph.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/publish_tensor_bundle.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"
#include "common/io/storage/testing/simulated_disk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/checkpoint.pb.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

const ObjectPath kKernel = {"model", "dense", "kernel"};
const ObjectPath kOdd = {"a.b/c"};
const ObjectPath kOptimizer = {"optimizer"};

class ObjectGraphTest : public testing::Test {
 protected:
  std::unique_ptr<TensorBundleReader> Write(
      absl::FunctionRef<absl::Status(TensorBundleWriter*)> write) {
    auto writer = TensorBundleWriter::Create(&disk_, "ckpt");
    EXPECT_OK(writer);
    EXPECT_OK(write(writer->get()));
    EXPECT_OK((*writer)->Finish());
    EXPECT_OK(PublishTensorBundle(&disk_, "ckpt", 1));
    auto reader = TensorBundleReader::Open(&disk_, "ckpt");
    EXPECT_OK(reader);
    return *std::move(reader);
  }

  SimulatedDisk disk_;
};

TEST_F(ObjectGraphTest, KeysMatchTensorFlow) {
  EXPECT_EQ(VariableKey(kKernel),
            "model/dense/kernel/.ATTRIBUTES/VARIABLE_VALUE");
  EXPECT_EQ(VariableKey(kOdd), "a..b.Sc/.ATTRIBUTES/VARIABLE_VALUE");
  EXPECT_EQ(SlotKey(kKernel, kOptimizer, "momentum"),
            "model/dense/kernel/.OPTIMIZER_SLOT/optimizer/momentum/"
            ".ATTRIBUTES/VARIABLE_VALUE");
}

TEST_F(ObjectGraphTest, FindsVariablesAndSlots) {
  ObjectGraphBuilder builder;
  EXPECT_THAT(builder.AddVariable(kKernel, "dense/kernel"),
              IsOkAndHolds(VariableKey(kKernel)));
  ASSERT_OK(builder.AddVariable(kOdd, "odd"));
  EXPECT_THAT(builder.AddSlot(kKernel, kOptimizer, "m", "kernel/m"),
              IsOkAndHolds(SlotKey(kKernel, kOptimizer, "m")));
  const auto reader = Write(
      [&](TensorBundleWriter* writer) { return builder.WriteTo(writer); });
  ASSERT_OK_AND_ASSIGN(const ObjectGraph graph, ObjectGraph::ReadFrom(*reader));
  EXPECT_THAT(graph.FindVariable(kKernel), IsOkAndHolds(VariableKey(kKernel)));
  EXPECT_THAT(graph.FindVariable(kOdd), IsOkAndHolds(VariableKey(kOdd)));
  EXPECT_THAT(graph.FindSlot(kKernel, kOptimizer, "m"),
              IsOkAndHolds(SlotKey(kKernel, kOptimizer, "m")));
  const std::vector<ObjectGraph::Variable> variables = graph.Variables();
  ASSERT_EQ(variables.size(), 2u);
  EXPECT_EQ(variables[0].path, kOdd);
  EXPECT_EQ(variables[1].path, kKernel);
  EXPECT_EQ(variables[1].full_name, "dense/kernel");

  constexpr auto kNotFound = absl::StatusCode::kNotFound;
  EXPECT_THAT(graph.FindVariable({"model", "conv", "kernel"}),
              StatusIs(kNotFound, HasSubstr("model has no conv")));
  EXPECT_THAT(graph.FindVariable({"model"}),
              StatusIs(kNotFound, HasSubstr("model is not a variable")));
  EXPECT_THAT(graph.FindSlot(kOdd, kOptimizer, "m"),
              StatusIs(kNotFound, HasSubstr("no slot m of a.b/c")));
}

TEST_F(ObjectGraphTest, RejectsDuplicates) {
  ObjectGraphBuilder builder;
  ASSERT_OK(builder.AddVariable(kKernel, "k"));
  ASSERT_OK(builder.AddSlot(kKernel, kOptimizer, "m", "s"));
  EXPECT_THAT(builder.AddVariable(kKernel, "l"),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(builder.AddSlot(kKernel, kOptimizer, "m", "t"),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(builder.AddSlot(kOdd, kOptimizer, "m", "t"),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(builder.AddVariable({}, "l"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(builder.AddVariable({"a", ""}, "l"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ObjectGraphTest, HandlesReferenceCycles) {
  proto::TrackableObjectGraph graph;
  auto* const root = graph.add_nodes();
  auto* const child = graph.add_nodes();
  child->add_attributes()->set_name("VARIABLE_VALUE");
  root->add_children()->set_local_name("v");
  root->mutable_children(0)->set_node_id(1);
  child->add_children()->set_local_name("root");
  const auto reader = Write([&](TensorBundleWriter* writer) {
    return writer->Add(kObjectGraphKey,
                       Tensor::Scalar<std::string>(graph.SerializeAsString()));
  });
  ASSERT_OK_AND_ASSIGN(const ObjectGraph read, ObjectGraph::ReadFrom(*reader));
  EXPECT_EQ(read.Variables().size(), 1u);
  EXPECT_OK(read.FindVariable({"v", "root", "v"}));
}

TEST_F(ObjectGraphTest, RejectsHostileGraphs) {
  const auto read = [&](const Tensor& tensor) {
    return ObjectGraph::ReadFrom(*Write([&](TensorBundleWriter* writer) {
      return writer->Add(kObjectGraphKey, tensor);
    }));
  };
  const auto encode = [](const proto::TrackableObjectGraph& graph) {
    return Tensor::Scalar<std::string>(graph.SerializeAsString());
  };
  constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
  EXPECT_THAT(read(Tensor::Scalar<int32_t>(1)), StatusIs(kDataLoss));
  EXPECT_THAT(read(Tensor::Scalar<std::string>("garbage")),
              StatusIs(kDataLoss));
  EXPECT_THAT(read(Tensor::Scalar<std::string>("")), StatusIs(kDataLoss));
  proto::TrackableObjectGraph graph;
  auto* const root = graph.add_nodes();
  root->add_children()->set_node_id(1);
  EXPECT_THAT(read(encode(graph)), StatusIs(kDataLoss));
  root->mutable_children(0)->set_node_id(-1);
  EXPECT_THAT(read(encode(graph)), StatusIs(kDataLoss));
  root->clear_children();
  root->add_slot_variables()->set_slot_variable_node_id(9);
  EXPECT_THAT(read(encode(graph)), StatusIs(kDataLoss));
  root->clear_slot_variables();
  EXPECT_OK(read(encode(graph)));
  const auto without =
      Write([](TensorBundleWriter*) { return absl::OkStatus(); });
  EXPECT_THAT(ObjectGraph::ReadFrom(*without),
              StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace muster
