#include "common/io/events/summaries.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "common/core/base/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "proto/event.pb.h"

namespace muster {
namespace {

// The bytes of a Summary with one value, as TensorFlow 2.20 writes them.
constexpr absl::string_view kScalar =
    "0a250a0a65706f63685f6c6f7373420a0801120022040000003f4a0b0a090a077363616c61"
    "7273";
constexpr absl::string_view kHistogram =
    "0a98010a1664656e73652f6b65726e656c2f686973746f6772616d426e0802120812020804"
    "1202080322600000000000000000000000000000f03f000000000000f03f000000000000f0"
    "3f0000000000000040000000000000f03f0000000000000040000000000000084000000000"
    "00000040000000000000084000000000000010"
    "40000000000000f03f4a0e0a0c0a0a686973746f6772616d73";
constexpr absl::string_view kText =
    "0a1c0a046e6f7465420a080712004204232068694a080a060a0474657874";
// Up to the beginning of the image.
constexpr absl::string_view kImageHead =
    "0a660a02696d4255080712041202080342013342013242";

std::string HexOf(const proto::Summary::Value& value) {
  proto::Summary summary;
  *summary.add_value() = value;
  return absl::BytesToHexString(summary.SerializeAsString());
}

std::vector<double> RowsOf(const proto::Summary::Value& value) {
  const std::string& content = value.tensor().tensor_content();
  std::vector<double> rows(content.size() / sizeof(double));
  std::memcpy(rows.data(), content.data(), content.size());
  return rows;
}

TEST(SummariesTest, ScalarHasTensorFlowsBytes) {
  EXPECT_EQ(HexOf(ScalarSummary("epoch_loss", 0.5)), kScalar);
}

TEST(SummariesTest, HistogramHasTensorFlowsBytes) {
  const std::vector<double> values = {0, 1, 2, 2, 4};
  EXPECT_EQ(HexOf(HistogramSummary("dense/kernel/histogram", values, 4)),
            kHistogram);
}

TEST(SummariesTest, TextHasTensorFlowsBytes) {
  EXPECT_EQ(HexOf(TextSummary("note", "# hi")), kText);
}

TEST(SummariesTest, HistogramOfOneValueIsInItsLastBucket) {
  const std::vector<double> values = {2.5, 2.5, 2.5};
  EXPECT_EQ(RowsOf(HistogramSummary("t", values, 2)),
            std::vector<double>({2.5, 2.5, 0, 2.5, 2.5, 3}));
}

TEST(SummariesTest, HistogramOfNothingHasEmptyBuckets) {
  EXPECT_EQ(RowsOf(HistogramSummary("t", {}, 2)),
            std::vector<double>({0, 0, 0, 0, 0, 0}));
}

TEST(SummariesTest, HistogramOmitsNonFiniteValues) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {NAN, 0, infinity, 1, -infinity};
  EXPECT_EQ(RowsOf(HistogramSummary("t", values, 2)),
            std::vector<double>({0, 0.5, 1, 0.5, 1, 1}));
}

TEST(SummariesTest, ImageStoresItsWidthThenItsHeight) {
  const Image image = {
      .height = 2, .width = 3, .channels = 1, .pixels = {0, 0, 0, 0, 0, 0}};
  ASSERT_OK_AND_ASSIGN(const proto::Summary::Value value,
                       ImageSummary("im", {image}));
  const std::string hex = HexOf(value);
  // The length of the image depends on zlib.
  EXPECT_EQ(hex.substr(4, 8), kImageHead.substr(4, 8));
  ASSERT_EQ(value.tensor().string_val_size(), 3);
  EXPECT_EQ(value.tensor().string_val(0), "3");
  EXPECT_EQ(value.tensor().string_val(1), "2");
  EXPECT_EQ(value.tensor().string_val(2).substr(0, 4), "\x89PNG");
}

TEST(SummariesTest, AnImageWithoutItsPixelsIsRefused) {
  EXPECT_THAT(ImageSummary("im", {{.height = 2, .width = 3, .channels = 1}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(SummariesTest, KerasModelNamesThePluginsVersion) {
  const proto::Summary::Value value = KerasModelSummary("keras", "{}");
  EXPECT_EQ(value.metadata().plugin_data().plugin_name(), "graph_keras_model");
  EXPECT_EQ(value.metadata().plugin_data().content(), "1");
  EXPECT_EQ(value.tensor().string_val(0), "{}");
}

}  // namespace
}  // namespace muster
