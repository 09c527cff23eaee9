#include "common/compute/variables/initial_value.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using proto::Initializer;
using Scaling = Initializer::VarianceScaling;
using ::testing::Each;
using ::testing::HasSubstr;

proto::VariableSpec Spec(DType dtype, const Shape& shape,
                         const Initializer& initializer) {
  proto::VariableSpec spec;
  spec.set_name("w");
  spec.set_dtype(EncodeDType(dtype));
  *spec.mutable_shape() = EncodeShape(shape);
  *spec.mutable_initializer() = initializer;
  return spec;
}

Initializer ConstantOf(double value) {
  Initializer initializer;
  initializer.mutable_constant()->set_value(value);
  return initializer;
}

Initializer UniformOf(double minimum, double maximum) {
  Initializer initializer;
  initializer.mutable_uniform()->set_minimum(minimum);
  initializer.mutable_uniform()->set_maximum(maximum);
  return initializer;
}

Initializer NormalOf(double mean, double deviation, bool truncated) {
  Initializer initializer;
  initializer.mutable_normal()->set_mean(mean);
  initializer.mutable_normal()->set_standard_deviation(deviation);
  initializer.mutable_normal()->set_truncated(truncated);
  return initializer;
}

Initializer ScalingOf(double scale, Scaling::Mode mode,
                      Scaling::Distribution distribution) {
  Initializer initializer;
  initializer.mutable_variance_scaling()->set_scale(scale);
  initializer.mutable_variance_scaling()->set_mode(mode);
  initializer.mutable_variance_scaling()->set_distribution(distribution);
  return initializer;
}

Initializer OrthogonalOf(double gain) {
  Initializer initializer;
  initializer.mutable_orthogonal()->set_gain(gain);
  return initializer;
}

Tensor Whole(const proto::VariableSpec& spec) {
  Tensor value;
  const int64_t rows = spec.shape().dim_size() == 0 ? 1 : spec.shape().dim(0);
  EXPECT_OK(FillInitialValue(spec, 0, rows, &value));
  return value;
}

struct Moments {
  double mean = 0, deviation = 0, minimum = 0, maximum = 0;
};

Moments MomentsOf(absl::Span<const float> values) {
  Moments moments{.minimum = values[0], .maximum = values[0]};
  for (const float value : values) moments.mean += value / values.size();
  for (const float value : values) {
    moments.deviation += std::pow(value - moments.mean, 2) / values.size();
    moments.minimum = std::min<double>(moments.minimum, value);
    moments.maximum = std::max<double>(moments.maximum, value);
  }
  moments.deviation = std::sqrt(moments.deviation);
  return moments;
}

TEST(Initializer, NoInitializerMeansZero) {
  EXPECT_THAT(Whole(Spec(DType::kInt32, {3}, Initializer())).flat<int32_t>(),
              Each(0));
}

TEST(Initializer, ConstantsSuitEveryDtype) {
  EXPECT_EQ(Whole(Spec(DType::kInt64, {}, ConstantOf(7))).scalar<int64_t>(), 7);
  EXPECT_THAT(
      Whole(Spec(DType::kFloat64, {2, 2}, ConstantOf(0.1))).flat<double>(),
      Each(0.1));
  EXPECT_EQ(
      Whole(Spec(DType::kBfloat16, {1}, ConstantOf(1.5))).ElementAsDouble(0),
      1.5);
  EXPECT_TRUE(Whole(Spec(DType::kBool, {}, ConstantOf(1))).scalar<bool>());
}

TEST(Initializer, DistributionsHaveTheirMoments) {
  const Shape shape = {400, 250};
  const Moments uniform = MomentsOf(
      Whole(Spec(DType::kFloat32, shape, UniformOf(-1, 3))).flat<float>());
  EXPECT_NEAR(uniform.mean, 1, 0.02);
  EXPECT_NEAR(uniform.deviation, 4 / std::sqrt(12.0), 0.02);
  EXPECT_GE(uniform.minimum, -1);
  EXPECT_LE(uniform.maximum, 3);

  const Moments normal =
      MomentsOf(Whole(Spec(DType::kFloat32, shape, NormalOf(2, 0.5, false)))
                    .flat<float>());
  EXPECT_NEAR(normal.mean, 2, 0.01);
  EXPECT_NEAR(normal.deviation, 0.5, 0.01);
  EXPECT_GT(normal.maximum, 3.5);

  const Moments truncated =
      MomentsOf(Whole(Spec(DType::kFloat32, shape, NormalOf(2, 0.5, true)))
                    .flat<float>());
  EXPECT_NEAR(truncated.mean, 2, 0.01);
  EXPECT_NEAR(truncated.deviation, 0.5 * 0.8796, 0.01);
  EXPECT_GE(truncated.minimum, 1);
  EXPECT_LE(truncated.maximum, 3);
}

TEST(Initializer, VarianceScalingHasTheVarianceOfItsFan) {
  const struct {
    Shape shape;
    Scaling::Mode mode;
    double fan;
  } cases[] = {
      {{300, 200}, Scaling::FAN_IN, 300},
      {{300, 200}, Scaling::FAN_OUT, 200},
      {{300, 200}, Scaling::FAN_AVG, 250},
      {{50'000}, Scaling::FAN_AVG, 50'000},
      {{5, 5, 40, 60}, Scaling::FAN_IN, 5 * 5 * 40},
      {{5, 5, 40, 60}, Scaling::FAN_OUT, 5 * 5 * 60},
  };
  for (const auto& [shape, mode, fan] : cases) {
    for (const auto distribution :
         {Scaling::TRUNCATED_NORMAL, Scaling::UNTRUNCATED_NORMAL,
          Scaling::UNIFORM}) {
      const Moments moments = MomentsOf(
          Whole(Spec(DType::kFloat32, shape, ScalingOf(2, mode, distribution)))
              .flat<float>());
      const double expected = std::sqrt(2 / fan);
      EXPECT_NEAR(moments.deviation, expected, 0.02 * expected)
          << shape << " mode " << mode << " distribution " << distribution;
      EXPECT_NEAR(moments.mean, 0, 0.02 * expected);
      if (distribution == Scaling::UNIFORM) {
        EXPECT_LE(moments.maximum, std::sqrt(3.0) * expected * 1.0001);
      }
    }
  }
}

TEST(Initializer, SlicesAreTheRowsOfTheWhole) {
  const Tensor fixed = Tensor::FromValues<float>(
      {7, 3}, {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
               12, 13, 14, 15, 16, 17, 18, 19, 20, 21});
  Initializer value;
  *value.mutable_value() = EncodeTensor(fixed);
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kBfloat16, DType::kFloat16}) {
    for (Initializer initializer :
         {ConstantOf(3), UniformOf(0, 1), NormalOf(0, 1, false),
          NormalOf(0, 1, true),
          ScalingOf(1, Scaling::FAN_AVG, Scaling::UNIFORM), OrthogonalOf(2),
          value}) {
      if (initializer.has_value() && dtype != DType::kFloat32) continue;
      initializer.set_seed(99);
      const auto spec = Spec(dtype, {7, 3}, initializer);
      const Tensor whole = Whole(spec);
      for (int64_t begin = 0; begin <= 7; ++begin) {
        for (int64_t end = begin; end <= 7; ++end) {
          Tensor slice;
          ASSERT_OK(FillInitialValue(spec, begin, end, &slice));
          EXPECT_TRUE(BitwiseEqual(slice, whole.SliceRows(begin, end)))
              << begin << " to " << end << " of "
              << initializer.ShortDebugString();
        }
      }
    }
  }
}

Initializer Concatenated(
    const std::vector<std::pair<int64_t, Initializer>>& parts) {
  Initializer concatenated;
  concatenated.mutable_concatenation();
  for (const auto& [row_count, initializer] : parts) {
    auto* const part = concatenated.mutable_concatenation()->add_parts();
    part->set_row_count(row_count);
    *part->mutable_initializer() = initializer;
  }
  return concatenated;
}

TEST(Initializer, ConcatenationsHaveTheRowsOfTheirParts) {
  Initializer seeded = Concatenated({{3, UniformOf(-1, 0)},
                                     {0, ConstantOf(5)},
                                     {1, ConstantOf(7)},
                                     {4, UniformOf(-1, 0)}});
  seeded.set_seed(3);
  const proto::VariableSpec spec = Spec(DType::kFloat32, {8, 2}, seeded);
  ASSERT_OK(ValidateVariableSpec(spec));
  const Tensor whole = Whole(spec);
  EXPECT_THAT(whole.flat<float>().subspan(6, 2), Each(7));
  EXPECT_LT(whole.flat<float>()[5], 0);
  EXPECT_LT(whole.flat<float>()[8], 0);
  // Parts of the same kind draw different values.
  EXPECT_NE(whole.flat<float>()[0], whole.flat<float>()[8]);
  for (int64_t begin = 0; begin <= 8; ++begin) {
    for (int64_t end = begin; end <= 8; ++end) {
      Tensor slice;
      ASSERT_OK(FillInitialValue(spec, begin, end, &slice));
      EXPECT_EQ(slice.flat<float>(),
                whole.flat<float>().subspan(2 * begin, 2 * (end - begin)))
          << begin << " " << end;
    }
  }
}

TEST(Initializer, PartsOfConcatenationsAreChecked) {
  const Initializer one = ConstantOf(1);
  const struct {
    Initializer initializer;
    const char* message;
  } cases[] = {
      {Concatenated({{3, one}}), "do not add up to the 4 rows"},
      {Concatenated({{3, one}, {2, one}}), "do not add up"},
      {Concatenated({{-1, one}, {5, one}}), "do not add up"},
      {Concatenated({{int64_t{1} << 62, one}, {4, one}}), "do not add up"},
      {Concatenated({}), "the 0 parts"},
      {Concatenated({{4, Concatenated({{4, one}})}}), "expected another"},
      {Concatenated({{4, UniformOf(1, -1)}}), "in order"},
  };
  for (const auto& [initializer, message] : cases) {
    EXPECT_THAT(
        ValidateVariableSpec(Spec(DType::kFloat32, {4}, initializer)),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  }
}

TEST(Initializer, SeedsDrawDifferentValues) {
  Initializer one = NormalOf(0, 1, false);
  Initializer two = one;
  two.set_seed(1);
  EXPECT_FALSE(BitwiseEqual(Whole(Spec(DType::kFloat32, {8}, one)),
                            Whole(Spec(DType::kFloat32, {8}, two))));
}

TEST(Initializer, FillsMemoryThatIsThere) {
  const auto spec = Spec(DType::kFloat32, {4, 2}, ConstantOf(5));
  Tensor slice = Tensor::Zeros(DType::kFloat32, {2, 2});
  const Tensor same_memory = slice;
  ASSERT_OK(FillInitialValue(spec, 1, 3, &slice));
  EXPECT_THAT(same_memory.flat<float>(), Each(5));
}

TEST(Initializer, MistakesNameTheVariable) {
  const auto floats = [](const Initializer& initializer) {
    return Spec(DType::kFloat32, {2}, initializer);
  };
  proto::VariableSpec no_dtype = floats({});
  no_dtype.clear_dtype();
  proto::VariableSpec unknown_extent = floats({});
  unknown_extent.mutable_shape()->set_dim(0, -1);
  proto::VariableSpec huge = floats({});
  huge.mutable_shape()->set_dim(0, int64_t{1} << 60);
  Initializer wrong_value;
  *wrong_value.mutable_value() =
      EncodeTensor(Tensor::FromValues<float>({3}, {1, 2, 3}));
  const std::vector<std::pair<proto::VariableSpec, std::string>> cases = {
      {no_dtype, "dtype"},
      {unknown_extent, "\"w\""},
      {huge, "larger than"},
      {Spec(DType::kString, {2}, {}), "string"},
      {Spec(DType::kInt32, {2}, UniformOf(0, 1)), "floating"},
      {Spec(DType::kUint8, {2}, ConstantOf(256)), "256"},
      {Spec(DType::kInt32, {2}, ConstantOf(0.5)), "0.5"},
      {Spec(DType::kInt64, {2}, ConstantOf(1e30)), "1e+30"},
      {floats(UniformOf(1, 0)), "minimum is 1"},
      {floats(NormalOf(0, -1, false)), "standard_deviation -1"},
      {floats(ScalingOf(0, Scaling::FAN_IN, Scaling::UNIFORM)), "scale is 0"},
      {floats(ScalingOf(1, static_cast<Scaling::Mode>(9), Scaling::UNIFORM)),
       "mode 9"},
      {floats(wrong_value), "float32[3]"},
  };
  for (const auto& [spec, message] : cases) {
    EXPECT_THAT(
        ValidateVariableSpec(spec),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 testing::AllOf(HasSubstr("\"w\""), HasSubstr(message))));
  }
  proto::VariableSpec nameless = floats({});
  nameless.clear_name();
  EXPECT_THAT(ValidateVariableSpec(nameless),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("name")));
}

TEST(Initializer, RowsOutsideAndWrongSlicesAreRefused) {
  const auto spec = Spec(DType::kFloat32, {4}, ConstantOf(1));
  const std::vector<std::pair<int64_t, int64_t>> ranges = {
      {-1, 2}, {3, 2}, {0, 5}};
  for (const auto& [begin, end] : ranges) {
    Tensor slice;
    EXPECT_THAT(
        FillInitialValue(spec, begin, end, &slice),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("4 rows")));
  }
  Tensor wrong = Tensor::Zeros(DType::kFloat64, {4});
  EXPECT_THAT(
      FillInitialValue(spec, 0, 4, &wrong),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("float64[4]")));
}

}  // namespace
}  // namespace muster
