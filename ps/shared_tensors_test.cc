#include "ps/shared_tensors.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/parameter_server.pb.h"
#include "ps/parameter_shard.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr size_t kSizeBytes = 1024;

class SharedTensorsTest : public testing::Test {
 protected:
  SharedTensorsTest()
      : bytes_(std::make_shared<std::vector<uint8_t>>(kSizeBytes)) {
    request_.set_segment_id(1);
  }

  ClientMemory Memory() { return {bytes_->data(), bytes_->size(), bytes_}; }

  void Add(uint64_t offset, DType dtype, std::vector<int64_t> dims) {
    request_.add_tensor_offsets(offset);
    request_.add_tensor_dtypes(static_cast<int>(dtype));
    request_.add_tensor_ranks(static_cast<int>(dims.size()));
    for (int64_t dim : dims) request_.add_tensor_dims(dim);
  }

  void ExpectRefused(absl::string_view why) {
    EXPECT_THAT(CollectTensors(request_, {}, Memory()),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(std::string(why))));
  }

  std::shared_ptr<std::vector<uint8_t>> bytes_;
  proto::ExchangeRequest request_;
};

TEST_F(SharedTensorsTest, CollectsTensorsFromMessageAndSegmentInOrder) {
  Add(64, DType::kFloat32, {2, 3});
  request_.add_tensor_offsets(0);
  Add(kSizeBytes - 8, DType::kInt64, {});
  const std::vector<ReceivedTensor> beside = {
      ReceivedTensor::FromTensor(Tensor::Zeros(DType::kBool, Shape({5})))};
  ASSERT_OK_AND_ASSIGN(const auto tensors,
                       CollectTensors(request_, beside, Memory()));
  ASSERT_EQ(tensors.size(), 3);
  EXPECT_EQ(tensors[0].type().ToString(), "float32[2,3]");
  EXPECT_EQ(tensors[0].pieces()[0].data, bytes_->data() + 64);
  EXPECT_EQ(tensors[0].size_bytes(), 24);
  EXPECT_EQ(tensors[1].type().ToString(), "bool[5]");
  EXPECT_EQ(tensors[2].type().ToString(), "int64[]");
  // The tensors keep the segment mapped.
  const std::weak_ptr<const void> watched = bytes_;
  bytes_.reset();
  EXPECT_FALSE(watched.expired());
}

TEST_F(SharedTensorsTest, TensorMayEndAtTheEndOfTheSegment) {
  Add(kSizeBytes - 64, DType::kFloat32, {16});
  EXPECT_OK(CollectTensors(request_, {}, Memory()).status());
  request_.Clear();
  Add(kSizeBytes - 64, DType::kFloat32, {17});
  ExpectRefused("is too large");
}

TEST_F(SharedTensorsTest, RejectsOffsetsBeyondTheSegment) {
  for (uint64_t offset : {uint64_t{kSizeBytes}, uint64_t{1} << 63,
                          std::numeric_limits<uint64_t>::max()}) {
    request_.Clear();
    Add(offset, DType::kFloat32, {0});
    ExpectRefused("is outside of the segment's 1024 bytes");
  }
}

TEST_F(SharedTensorsTest, RejectsSizesThatOverflow) {
  Add(64, DType::kFloat64, {int64_t{1} << 61});
  ExpectRefused("is too large");
  request_.Clear();
  Add(64, DType::kFloat64, {int64_t{1} << 40, int64_t{1} << 40});
  ExpectRefused("");
  request_.Clear();
  Add(64, DType::kFloat32, {-1});
  ExpectRefused("");
}

TEST_F(SharedTensorsTest, RejectsInvalidTypes) {
  Add(64, DType::kString, {1});
  ExpectRefused("has dtype 7");
  request_.set_tensor_dtypes(0, 99);
  ExpectRefused("has dtype 99");
  request_.set_tensor_dtypes(0, 1);
  request_.set_tensor_ranks(0, 2);
  ExpectRefused("has rank 2");
  request_.set_tensor_ranks(0, -1);
  ExpectRefused("has rank -1");
  request_.add_tensor_ranks(0);
  ExpectRefused("1 dtypes but 2 ranks");
}

TEST_F(SharedTensorsTest, TensorsAndTypesMustMatchInNumber) {
  request_.add_tensor_offsets(64);
  ExpectRefused("a tensor has no type");
  request_.Clear();
  Add(64, DType::kFloat32, {1});
  request_.add_tensor_dtypes(1);
  request_.add_tensor_ranks(0);
  ExpectRefused("more types than tensors");
  request_.clear_tensor_offsets();
  ExpectRefused("more types than tensors");
  request_.Clear();
  request_.add_tensor_offsets(0);
  ExpectRefused("was not sent beside the request");
  request_.Clear();
  Add(64, DType::kFloat32, {1});
  const std::vector<ReceivedTensor> beside = {
      ReceivedTensor::FromTensor(Tensor::Scalar(1.0f))};
  EXPECT_THAT(
      CollectTensors(request_, beside, Memory()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("than it uses")));
}

// A segment may be large and empty, so the work for a small request must be
// bounded.
TEST_F(SharedTensorsTest, ExchangeIsLimitedToTheSizeOfAMessage) {
  const ClientMemory huge = {bytes_->data(), size_t{1} << 40, bytes_};
  Add(64, DType::kUint8, {int64_t{1} << 30});
  Add(64, DType::kUint8, {int64_t{1} << 30});
  EXPECT_OK(CollectTensors(request_, {}, huge).status());
  Add(64, DType::kUint8, {1});
  EXPECT_THAT(
      CollectTensors(request_, {}, huge),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is too large")));
}

TEST_F(SharedTensorsTest, RejectsOffsetsWithoutASegment) {
  Add(64, DType::kFloat32, {1});
  request_.add_answer_offsets(64);
  EXPECT_THAT(CollectTensors(request_, {}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(CollectPlaces(request_, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(SharedTensorsTest, PlacesHaveTheirRemainingSize) {
  request_.add_answer_offsets(0);
  request_.add_answer_offsets(1000);
  ASSERT_OK_AND_ASSIGN(const auto places, CollectPlaces(request_, Memory()));
  EXPECT_EQ(places[0].data, nullptr);
  EXPECT_EQ(places[1].data, bytes_->data() + 1000);
  EXPECT_EQ(places[1].size_bytes, 24);
  request_.add_answer_offsets(kSizeBytes);
  EXPECT_THAT(CollectPlaces(request_, Memory()),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace muster
