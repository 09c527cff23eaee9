#include "examples/quickdraw/drawings.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quickdraw {
namespace {

using muster::Element;
using muster::StatusIs;
using muster::Tensor;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

float Pixel(const Tensor& image, int64_t row, int64_t column) {
  return image.flat<float>()[row * image.shape().dim(1) + column];
}

TEST(ParseStrokesTest, ReadsSimplifiedAndRawDrawings) {
  ASSERT_OK_AND_ASSIGN(
      const auto strokes,
      ParseStrokes(R"({"word": "cat", "countrycode": "VE", "recognized": true,
                      "drawing": [[[0, 10], [5, 6]],
                                  [[1.5, 2], [3, 4], [0, 16]]]})"));
  ASSERT_EQ(strokes.size(), 2);
  EXPECT_THAT(strokes[0].x, ElementsAre(0, 10));
  EXPECT_THAT(strokes[0].y, ElementsAre(5, 6));
  EXPECT_THAT(strokes[1].x, ElementsAre(1.5, 2));
}

TEST(ParseStrokesTest, RefusesWhatIsNoDrawing) {
  for (const char* line :
       {"", "cat", "[]", "{}", R"({"drawing": 3})", R"({"drawing": [[[1]]]})",
        R"({"drawing": [[[1, 2], [1]]]})", R"({"drawing": [[["a"], [1]]]})"}) {
    EXPECT_THAT(ParseStrokes(line), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("\"drawing\"")))
        << line;
  }
}

TEST(RasterizeTest, LinesAreWhereTheStrokesAre) {
  // A horizontal line fills the width, in the middle.
  const Tensor image = Rasterize({{{20, 240}, {100, 100}}}, 28);
  EXPECT_GT(Pixel(image, 14, 14), 0.5);
  EXPECT_GT(Pixel(image, 13, 4), 0.5);
  EXPECT_GT(Pixel(image, 13, 24), 0.5);
  for (int64_t column = 0; column < 28; ++column) {
    EXPECT_EQ(Pixel(image, 10, column), 0);
    EXPECT_EQ(Pixel(image, 17, column), 0);
  }
  EXPECT_EQ(Pixel(image, 13, 0), 0);
}

TEST(RasterizeTest, KeepsProportionsAndDrawsDots) {
  const Tensor tall = Rasterize({{{0, 0}, {0, 200}}, {{50}, {100}}}, 32);
  EXPECT_GT(Pixel(tall, 16, 12), 0.5);
  EXPECT_GT(Pixel(tall, 4, 12), 0.5);
  EXPECT_GT(Pixel(tall, 16, 19), 0.5);
  EXPECT_EQ(Pixel(tall, 10, 19), 0);
  const Tensor nothing = Rasterize({}, 8);
  for (const float pixel : nothing.flat<float>()) EXPECT_EQ(pixel, 0);
}

class OpenDrawingsTest : public ::testing::Test {
 protected:
  OpenDrawingsTest()
      : folder_(
            ::testing::TempDir() + "/" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::create_directories(folder_);
  }

  void Write(const std::string& name, const std::vector<std::string>& lines) {
    std::ofstream file(folder_ + "/" + name);
    for (const std::string& line : lines) file << line << "\n";
  }

  const std::string folder_;
};

TEST_F(OpenDrawingsTest, DividesTheDrawingsOfEachClass) {
  const std::vector<std::string> lines(20,
                                       R"({"drawing": [[[0, 9], [0, 9]]]})");
  Write("dog.ndjson", lines);
  Write("cat.ndjson", lines);
  Write("README.md", {"no drawings"});
  ASSERT_OK_AND_ASSIGN(const Drawings drawings, OpenDrawings(folder_, 12));
  EXPECT_THAT(drawings.classes, ElementsAre("cat", "dog"));
  for (const auto& [dataset, count] :
       {std::pair(drawings.train, 18), std::pair(drawings.test, 2)}) {
    ASSERT_OK_AND_ASSIGN(const auto elements, dataset.MakeIterator());
    std::vector<int> counts(2);
    Element element;
    while (elements->Next(&element).value()) {
      EXPECT_EQ(element[0].shape(), muster::Shape({12, 12, 1}));
      ++counts[element[1].scalar<int64_t>()];
    }
    EXPECT_THAT(counts, ElementsAre(count, count));
  }
}

TEST_F(OpenDrawingsTest, NamesFilesAndLinesThatAreWrong) {
  EXPECT_THAT(OpenDrawings(folder_, 12),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("found 0")));
  EXPECT_THAT(OpenDrawings(folder_ + "/none", 12),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
  Write("cat.ndjson", {R"({"drawing": []})", "{}"});
  Write("dog.ndjson", {R"({"drawing": []})"});
  ASSERT_OK_AND_ASSIGN(const Drawings drawings, OpenDrawings(folder_, 12));
  ASSERT_OK_AND_ASSIGN(const auto elements, drawings.train.MakeIterator());
  Element element;
  EXPECT_THAT(elements->Next(&element),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("cat.ndjson"), HasSubstr("line 2"))));
}

}  // namespace
}  // namespace quickdraw
