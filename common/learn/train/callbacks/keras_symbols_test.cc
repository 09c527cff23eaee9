#include "common/learn/train/callbacks/keras_symbols.h"

#include <fstream>
#include <sstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_replace.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Read(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

std::string Symbols() { return Read("docs/keras_symbols.txt"); }

TEST(KerasSymbolsTest, ThePageIsThatOfTheDocuments) {
  ASSERT_OK_AND_ASSIGN(const std::string page, KerasSymbolsPage(Symbols()));
  EXPECT_TRUE(page == Read("docs/keras_symbols.md"))
      << "docs/keras_symbols.md is out of date: bazel run "
         "//common/learn/train/callbacks:print_keras_symbols > "
         "docs/keras_symbols.md";
}

TEST(KerasSymbolsTest, AListThatDiffersFromTheTablesIsOutdated) {
  const std::string changed = absl::StrReplaceAll(
      Symbols(),
      {{"\nDense\n", "\nDense | MatMul\nNewLayer\n"}, {"\nLion\n", "\n"}});
  EXPECT_THAT(
      KerasSymbolsPage(changed),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("layers/Dense is in the program's table"),
                     HasSubstr("layers/NewLayer is not in the program's table"),
                     HasSubstr("optimizers/Lion is missing in the list"))));
}

TEST(KerasSymbolsTest, MistakesNameTheLine) {
  EXPECT_THAT(KerasSymbolsPage("Dense\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("line 1: Dense: expected a section")));
  EXPECT_THAT(KerasSymbolsPage("layers:\nAdd\nAdd\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("line 3: Add: the class is listed twice")));
  EXPECT_THAT(KerasSymbolsPage("layers:\nlosses:\nlayers:\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the section is listed twice")));
  EXPECT_THAT(KerasSymbolsPage("layers:\nAdd it\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("line 2: Add it: expected CLASS")));
  EXPECT_THAT(KerasSymbolsPage("layers:\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expected 6 sections")));
  EXPECT_THAT(
      KerasSymbolsPage(absl::StrReplaceAll(Symbols(), {{"losses:", "lost:"}})),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("section 1 is lost; expected losses")));
}

}  // namespace
}  // namespace muster
