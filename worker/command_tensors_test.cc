#include "worker/command_tensors.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/worker.pb.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CommandTensorsTest : public testing::Test {
 protected:
  CommandTensorsTest() {
    for (size_t i = 0; i < floats_->size(); ++i) {
      (*floats_)[i] = static_cast<float>(i);
    }
  }

  ClientMemory memory() const {
    return {reinterpret_cast<uint8_t*>(floats_->data()),
            floats_->size() * sizeof(float), floats_};
  }
  proto::SharedTensor* Add(uint32_t position, uint64_t offset,
                           std::vector<int64_t> dims) {
    proto::SharedTensor* const shared = command_.add_shared_tensors();
    shared->set_position(position);
    shared->set_offset(offset);
    shared->set_dtype(static_cast<int>(DType::kFloat32));
    shared->mutable_dims()->Add(dims.begin(), dims.end());
    return shared;
  }
  void ExpectRefused(const std::string& why) {
    EXPECT_THAT(
        CollectCommandTensors(command_, {Tensor::Scalar(1.0f)}, memory()),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
    command_.clear_shared_tensors();
  }

  const std::shared_ptr<std::vector<float>> floats_ =
      std::make_shared<std::vector<float>>(64);
  proto::WorkerCommand command_;
};

TEST_F(CommandTensorsTest, AreInTheOrderOfTheirPositions) {
  Add(0, 16, {2});
  Add(2, 32, {1, 2});
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> tensors,
      CollectCommandTensors(
          command_, {Tensor::Scalar(-1.0f), Tensor::Scalar(-2.0f)}, memory()));
  ASSERT_EQ(tensors.size(), 4u);
  EXPECT_THAT(tensors[0].flat<float>(), ElementsAre(4, 5));
  EXPECT_EQ(tensors[1].scalar<float>(), -1);
  EXPECT_THAT(tensors[2].flat<float>(), ElementsAre(8, 9));
  EXPECT_EQ(tensors[2].shape(), Shape({1, 2}));
  EXPECT_EQ(tensors[3].scalar<float>(), -2);
  // The tensors are not copied, and they keep the segment mapped.
  EXPECT_EQ(tensors[0].raw_data(), memory().data + 16);
  EXPECT_GT(floats_.use_count(), 2);
}

TEST_F(CommandTensorsTest, WithoutSharedTensorsNothingIsLookedUp) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> tensors,
      CollectCommandTensors(command_, {Tensor::Scalar(3.0f)}, {}));
  ASSERT_EQ(tensors.size(), 1u);
}

TEST_F(CommandTensorsTest, WhatCannotBeIsRefused) {
  Add(0, 256, {1});
  ExpectRefused("offset 256 is no place");
  Add(0, 2, {1});
  ExpectRefused("offset 2 is no place");
  Add(0, 128, {33});
  ExpectRefused("33 elements at offset 128 is too large");
  Add(0, 16, {int64_t{1} << 40, int64_t{1} << 40});
  ExpectRefused("shared memory");
  Add(0, 16, {-1});
  ExpectRefused("shared memory");
  Add(2, 16, {1});
  ExpectRefused("position 2");
  Add(0, 16, {1});
  Add(0, 16, {1});
  ExpectRefused("position 0");
  // Integers are rejected: indices could change after they were checked.
  Add(0, 16, {1})->set_dtype(static_cast<int>(DType::kInt64));
  ExpectRefused("has dtype");
  Add(0, 16, {1})->set_dtype(99);
  ExpectRefused("has dtype 99");
}

TEST_F(CommandTensorsTest, AnUnknownSegmentIsRefused) {
  Add(0, 16, {1});
  command_.set_segment_id(7);
  EXPECT_THAT(CollectCommandTensors(command_, {}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("segment 7 is not shared here")));
}

}  // namespace
}  // namespace muster
