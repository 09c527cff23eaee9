#include "common/core/tensor/tensor.h"

#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/float16.h"
#include "common/core/tensor/place.h"
#include "common/core/tensor/tensor_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/graph.pb.h"
#include "proto/tensor.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ShapeTest, BroadcastFollowsNumpy) {
  EXPECT_THAT(BroadcastShapes({2, 1, 3}, {4, 1}), IsOkAndHolds(Shape{2, 4, 3}));
  EXPECT_THAT(BroadcastShapes({-1, 3}, {3}), IsOkAndHolds(Shape{-1, 3}));
  EXPECT_THAT(BroadcastShapes({-1}, {5}), IsOkAndHolds(Shape{5}));
  EXPECT_THAT(
      BroadcastShapes({2}, {3}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[2] and [3]")));
}

TEST(ShapeTest, HostileExtentsAreRejected) {
  const int64_t huge = std::numeric_limits<int64_t>::max() / 2;
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{
           {huge, 3}, {0, huge, 3}, {-2}, {-1}, {1, 1, 1, 1, 1, 1, 1, 1, 1}}) {
    EXPECT_THAT(Shape::Create(dims, /*allow_unknown=*/false),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(TensorTest, SlicesAndReshapesShareMemory) {
  Tensor tensor = Tensor::FromValues<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  Tensor rows = tensor.SliceRows(1, 3);
  EXPECT_THAT(rows.flat<float>(), ElementsAre(3, 4, 5, 6));
  rows.mutable_flat<float>()[0] = 9;
  EXPECT_EQ(tensor.Reshaped({6}).flat<float>()[2], 9);
  EXPECT_FALSE(tensor.IsSoleOwner());
  EXPECT_TRUE(tensor.Clone().IsSoleOwner());
}

std::string Printed(const Tensor& tensor) {
  std::ostringstream out;
  out << tensor;
  return out.str();
}

Tensor TensorAt(Place place, std::vector<float>* memory) {
  return Tensor(DType::kFloat32, {static_cast<int64_t>(memory->size())},
                Buffer::Wrap(
                    memory->data(), memory->size() * sizeof(float),
                    /*release=*/[] {}, place));
}

TEST(TensorTest, PinnedMemoryIsMemoryOfTheHost) {
  std::vector<float> memory = {1, 2};
  const Tensor pinned = TensorAt({.kind = PlaceKind::kPinnedHost}, &memory);
  EXPECT_TRUE(pinned.is_on_host());
  EXPECT_THAT(pinned.flat<float>(), ElementsAre(1, 2));
}

TEST(TensorDeathTest, HostAccessToMemoryOfADeviceTerminates) {
  std::vector<float> memory = {1, 2};
  Tensor tensor = TensorAt({.kind = PlaceKind::kDevice, .device = 3}, &memory);
  EXPECT_EQ(tensor.place().device, 3);
  EXPECT_EQ(tensor.address(), reinterpret_cast<uint8_t*>(memory.data()));
  EXPECT_EQ(tensor.DebugString(), "float32[2] on a device");
  EXPECT_EQ(tensor.SliceRows(1, 2).address() - tensor.address(), 4);
  EXPECT_DEATH(tensor.raw_data(), "check failed: is_on_host_");
  EXPECT_DEATH(tensor.mutable_raw_data(), "is_on_host_");
  EXPECT_DEATH(tensor.flat<float>(), "is_on_host_");
  EXPECT_DEATH(tensor.SliceRows(1, 2).scalar<float>(), "is_on_host_");
  EXPECT_DEATH(tensor.Reshaped({1, 2}).mutable_flat<float>(), "is_on_host_");
  EXPECT_DEATH(tensor.ElementAsDouble(0), "is_on_host_");
  EXPECT_DEATH(tensor.Clone(), "is_on_host_");
  EXPECT_DEATH(BitwiseEqual(tensor, tensor), "is_on_host_");
}

TEST(TensorTest, PrintsAsNumPyDoes) {
  EXPECT_EQ(Printed(Tensor()), "invalid tensor");
  EXPECT_EQ(Printed(Tensor::Scalar<float>(1.5)), "float32[] 1.5");
  EXPECT_EQ(Printed(Tensor::Scalar<int64_t>(9007199254740993)),
            "int64[] 9007199254740993");
  EXPECT_EQ(Printed(Tensor::FromValues<std::string>({2}, {"a\n", ""})),
            "string[2] [\"a\\n\", \"\"]");
  EXPECT_EQ(Printed(Tensor::FromValues<bool>({2, 1}, {true, false})),
            "bool[2,1] [[true],\n [false]]");
  EXPECT_EQ(Printed(Tensor::FromValues<int32_t>({2, 1, 2}, {1, 2, 3, 4})),
            "int32[2,1,2] [[[1, 2]],\n\n [[3, 4]]]");
  EXPECT_EQ(Printed(Tensor::Zeros(DType::kFloat32, {0, 2})), "float32[0,2] []");
  Tensor large = Tensor::Zeros(DType::kFloat32, {1001});
  large.mutable_flat<float>()[1000] = 7;
  EXPECT_EQ(Printed(large), "float32[1001] [0, 0, 0, ..., 0, 0, 7]");
}

TEST(TensorTest, CodecRoundTripsEveryDType) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64,
        DType::kUint8, DType::kBool, DType::kBfloat16, DType::kFloat16}) {
    const Tensor tensor = Tensor::Full(dtype, {2, 3}, 1);
    ASSERT_OK_AND_ASSIGN(const Tensor decoded,
                         DecodeTensor(EncodeTensor(tensor)));
    EXPECT_TRUE(BitwiseEqual(tensor, decoded)) << DTypeName(dtype);
  }
  const Tensor strings = Tensor::FromValues<std::string>({2}, {"a", "bc"});
  ASSERT_OK_AND_ASSIGN(const Tensor decoded,
                       DecodeTensor(EncodeTensor(strings)));
  EXPECT_TRUE(BitwiseEqual(strings, decoded));
}

TEST(TensorTest, ContentOfTheWrongLengthIsRejected) {
  proto::Tensor encoded = EncodeTensor(Tensor::Scalar<float>(1));
  encoded.mutable_shape()->add_dim(2);
  EXPECT_THAT(DecodeTensor(encoded),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("float32[2] holds 2 elements, but its content "
                                 "is 4 bytes")));
  encoded.set_dtype(static_cast<proto::DataType>(99));
  EXPECT_THAT(DecodeTensor(encoded),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("99")));
}

TEST(AttributesTest, CodecRoundTripsEveryKind) {
  const Attributes attributes = {
      {"int", int64_t{7}},
      {"float", 0.5},
      {"bool", true},
      {"string", std::string("relu")},
      {"list", std::vector<int64_t>{1, -1}},
      {"dtype", DType::kBfloat16},
      {"shape", Shape{2, -1}},
      {"tensor", Tensor::Scalar<int32_t>(3)},
  };
  for (const auto& [name, attribute] : attributes.values()) {
    ASSERT_OK_AND_ASSIGN(const Attribute decoded,
                         DecodeAttribute(EncodeAttribute(attribute)));
    EXPECT_EQ(AttributeToString(decoded), AttributeToString(attribute)) << name;
  }
  EXPECT_THAT(
      attributes.Get<int64_t>("absent"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("absent")));
  EXPECT_THAT(attributes.Get<int64_t>("bool"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("kind")));
}

TEST(Float16Test, EveryPatternSurvivesTheRoundTrip) {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    float16 half;
    half.bits = static_cast<uint16_t>(bits);
    bfloat16 brain;
    brain.bits = half.bits;
    const float from_half = static_cast<float>(half);
    const float from_brain = static_cast<float>(brain);
    if (std::isnan(from_half)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(float16(from_half))));
    } else {
      ASSERT_EQ(float16(from_half).bits, half.bits);
    }
    if (std::isnan(from_brain)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16(from_brain))));
    } else {
      ASSERT_EQ(bfloat16(from_brain).bits, brain.bits);
    }
  }
}

TEST(Float16Test, RoundsToNearestEven) {
  EXPECT_EQ(static_cast<float>(bfloat16(1.00390625f)), 1.0f);  // Tie, even.
  EXPECT_EQ(static_cast<float>(bfloat16(1.01171875f)), 1.015625f);  // Tie, odd.
  EXPECT_EQ(static_cast<float>(float16(65519.0f)), 65504.0f);
  EXPECT_TRUE(std::isinf(static_cast<float>(float16(65520.0f))));
  EXPECT_EQ(static_cast<float>(float16(0x1.0p-25f)), 0.0f);
}

}  // namespace
}  // namespace muster
