#include "common/io/checkpoint/tensor_slice.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/shape.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/checkpoint.pb.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalidArgument =
    absl::StatusCode::kInvalidArgument;

TensorSlice Slice(std::initializer_list<int64_t> starts, Shape shape) {
  TensorSlice slice;
  slice.starts = starts;
  slice.shape = std::move(shape);
  return slice;
}

std::string HexKey(absl::string_view name,
                   std::initializer_list<std::pair<int64_t, int64_t>> extents) {
  proto::BundleSlice slice;
  for (const auto& [start, length] : extents) {
    auto* const extent = slice.add_extent();
    extent->set_start(start);
    if (length >= 0) extent->set_length(length);
  }
  return absl::BytesToHexString(SliceKey(name, slice));
}

TEST(TensorSliceTest, KeysMatchTensorFlow) {
  EXPECT_EQ(HexKey("w", {{0, 2}, {0, -1}}),
            "007700010102"
            "8082"
            "807f");
  EXPECT_EQ(HexKey(std::string("a\0\xff", 3), {}),
            "006100ffff00"
            "0001"
            "00");
  EXPECT_EQ(HexKey("w", {{63, 64}}),
            "007700010101"
            "bf"
            "c040");
  EXPECT_EQ(HexKey("w", {{8191, 8192}}),
            "007700010101"
            "dfff"
            "e02000");
  EXPECT_EQ(HexKey("w", {{int64_t{1} << 55, (int64_t{1} << 62)}}),
            "007700010101"
            "ff8080000000000000"
            "ffc04000000000000000");
}

TEST(TensorSliceTest, KeysSortByPosition) {
  const int64_t starts[] = {0,
                            1,
                            63,
                            64,
                            8191,
                            8192,
                            1 << 20,
                            int64_t{1} << 34,
                            int64_t{1} << 55,
                            int64_t{1} << 62};
  std::vector<std::string> keys;
  for (const int64_t start : starts) keys.push_back(HexKey("w", {{start, 1}}));
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
}

TEST(TensorSliceTest, EncodesWholeDimensionsWithoutLength) {
  const Shape full = {7, 4};
  const TensorSlice rows = TensorSlice::Rows(full, 2, 5);
  EXPECT_EQ(rows.ToString(), "2,3:0,4");
  const proto::BundleSlice encoded = EncodeSlice(rows, full);
  EXPECT_EQ(encoded.extent(0).start(), 2);
  EXPECT_EQ(encoded.extent(0).length(), 3);
  EXPECT_EQ(encoded.extent(1).has_length_case(),
            proto::BundleSlice::Extent::HAS_LENGTH_NOT_SET);
  EXPECT_THAT(DecodeSlice(encoded, full), IsOkAndHolds(rows));
}

TEST(TensorSliceTest, RejectsHostileSlices) {
  const Shape full = {7, 4};
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  for (const auto& [start, length] : {std::pair<int64_t, int64_t>{-1, 3},
                                      {5, 3},
                                      {8, 0},
                                      {0, kHuge},
                                      {kHuge, kHuge},
                                      {2, -5}}) {
    proto::BundleSlice encoded;
    encoded.add_extent()->set_start(start);
    encoded.mutable_extent(0)->set_length(length);
    encoded.add_extent();
    EXPECT_THAT(DecodeSlice(encoded, full),
                StatusIs(kInvalidArgument, HasSubstr("not within")));
    encoded.mutable_extent()->RemoveLast();
    EXPECT_THAT(DecodeSlice(encoded, full),
                StatusIs(kInvalidArgument, HasSubstr("rank 1")));
  }
}

TEST(TensorSliceTest, PartitionCoversEveryElementOnce) {
  const Shape full = {4, 4};
  const TensorSlice top_left = Slice({0, 0}, {2, 2});
  const TensorSlice top_right = Slice({0, 2}, {2, 2});
  const TensorSlice bottom = Slice({2, 0}, {2, 4});
  EXPECT_OK(CheckPartition({bottom, top_left, top_right}, full));
  EXPECT_THAT(CheckPartition({bottom, top_left}, full),
              StatusIs(kInvalidArgument, HasSubstr("12 of the 16 elements")));
  EXPECT_THAT(CheckPartition({bottom, top_left, top_left}, full),
              StatusIs(kInvalidArgument, HasSubstr("0,2:0,2 and 0,2:0,2")));
  EXPECT_THAT(CheckPartition({bottom, bottom, bottom}, full),
              StatusIs(kInvalidArgument, HasSubstr("more elements")));
}

// Compares the runs with a copy element by element.
TEST(TensorSliceTest, RunsCopyTheIntersectionOfTwoBoxes) {
  const Shape full = {4, 3, 5};
  std::vector<TensorSlice> boxes;
  for (const int64_t a : {0, 1, 3}) {
    for (const int64_t b : {0, 2}) {
      for (const int64_t c : {0, 1, 4}) {
        boxes.push_back(Slice({a, b, c}, {4 - a, 3 - b, 5 - c}));
        boxes.push_back(Slice({a, b, 0}, {1, 1, 5}));
        boxes.push_back(Slice({0, b, c}, {4, 1, 1}));
      }
    }
  }
  const auto offset_in = [](const TensorSlice& box, const int64_t(&at)[3]) {
    int64_t offset = 0;
    for (int axis = 0; axis < 3; ++axis) {
      const int64_t index = at[axis] - box.starts[axis];
      if (index < 0 || index >= box.shape.dim(axis)) return int64_t{-1};
      offset = offset * box.shape.dim(axis) + index;
    }
    return offset;
  };
  for (const TensorSlice& source : boxes) {
    for (const TensorSlice& target : boxes) {
      std::vector<int64_t> wanted(target.shape.element_count(), -1);
      for (int64_t i = 0; i < full.element_count(); ++i) {
        const int64_t at[3] = {i / 15, i / 5 % 3, i % 5};
        const int64_t to = offset_in(target, at);
        if (to >= 0) wanted[to] = offset_in(source, at);
      }
      std::vector<int64_t> copied(wanted.size(), -1);
      int64_t source_end = 0;
      SliceRuns runs(source, target);
      for (SliceRuns::Run run; runs.Next(&run);) {
        EXPECT_GE(run.source, source_end);
        source_end = run.source + run.count;
        for (int64_t i = 0; i < run.count; ++i) {
          copied[run.target + i] = run.source + i;
        }
      }
      ASSERT_EQ(copied, wanted)
          << source.ToString() << " " << target.ToString();
    }
  }
}

TEST(TensorSliceTest, WholeTensorsAreOneRun) {
  for (const Shape& shape : {Shape(), Shape({6}), Shape({2, 3, 4})}) {
    const TensorSlice whole = TensorSlice::Whole(shape);
    SliceRuns runs(whole, whole);
    SliceRuns::Run run;
    ASSERT_TRUE(runs.Next(&run));
    EXPECT_EQ(run.count, shape.element_count());
    EXPECT_FALSE(runs.Next(&run));
  }
}

}  // namespace
}  // namespace muster
