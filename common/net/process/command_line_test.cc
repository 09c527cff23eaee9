#include "common/net/process/command_line.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "common/core/base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

ABSL_FLAG(int, test_count, 7, "How many.");
ABSL_FLAG(std::string, test_name, "", "What it is called.");
ABSL_FLAG(bool, test_loud, false, "Whether it is heard.");

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

class CommandLineTest : public testing::Test {
 protected:
  absl::StatusOr<CommandLine> Parse(std::vector<std::string> arguments) {
    return ParseArguments(program_, arguments);
  }

  const ProgramInfo program_ = {.name = "tester",
                                .summary = "Tests.",
                                .usage = "tester [flags]",
                                .examples = "  tester --test_count=1\n",
                                .flags = {}};
  absl::FlagSaver saver_;
};

TEST_F(CommandLineTest, ReadsFlagsInEveryWayTheyAreWritten) {
  EXPECT_OK(Parse({"--test_count=3", "--test_name", "x y", "--test_loud"}));
  EXPECT_EQ(absl::GetFlag(FLAGS_test_count), 3);
  EXPECT_EQ(absl::GetFlag(FLAGS_test_name), "x y");
  EXPECT_TRUE(absl::GetFlag(FLAGS_test_loud));
  EXPECT_OK(Parse({"--notest_loud", "-test_count=4", "--test_name="}));
  EXPECT_FALSE(absl::GetFlag(FLAGS_test_loud));
  EXPECT_EQ(absl::GetFlag(FLAGS_test_count), 4);
  EXPECT_EQ(absl::GetFlag(FLAGS_test_name), "");
}

TEST_F(CommandLineTest, SettingsAddUp) {
  ASSERT_OK_AND_ASSIGN(const CommandLine line,
                       Parse({"--set", "a=1", "--set=b=x=y", "--set", "a=2"}));
  EXPECT_THAT(line.settings,
              UnorderedElementsAre(Pair("a", "2"), Pair("b", "x=y")));
  EXPECT_THAT(Parse({"--set", "a"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("write --set name=value")));
}

TEST_F(CommandLineTest, EverythingAfterTwoDashesIsNoFlag) {
  ASSERT_OK_AND_ASSIGN(const CommandLine line,
                       Parse({"--", "file", "--test_count=9", "-"}));
  EXPECT_THAT(line.arguments, ElementsAre("file", "--test_count=9", "-"));
  EXPECT_EQ(absl::GetFlag(FLAGS_test_count), 7);
}

TEST_F(CommandLineTest, TheCommandLineGoesBeforeTheEnvironment) {
  setenv("MUSTER_TEST_COUNT", "5", 1);
  EXPECT_OK(Parse({}));
  EXPECT_EQ(absl::GetFlag(FLAGS_test_count), 5);
  EXPECT_OK(Parse({"--test_count=6"}));
  EXPECT_EQ(absl::GetFlag(FLAGS_test_count), 6);
  setenv("MUSTER_TEST_COUNT", "many", 1);
  EXPECT_THAT(Parse({}), StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr("MUSTER_TEST_COUNT=many")));
  unsetenv("MUSTER_TEST_COUNT");
}

TEST_F(CommandLineTest, AnUnknownFlagIsMetWithTheNearest) {
  EXPECT_THAT(Parse({"--test_cuont=3"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "tester has no flag --test_cuont; did you mean "
                       "\"test_count\"?"));
  EXPECT_THAT(Parse({"--zebra"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                           "tester has no flag --zebra"));
}

TEST_F(CommandLineTest, AnArgumentThatIsNoFlagIsMetWithTheOneItWasFor) {
  const auto is_refused = [](const std::string& message) {
    return StatusIs(absl::StatusCode::kInvalidArgument, message);
  };
  EXPECT_THAT(Parse({"test_count=3"}),
              is_refused("\"test_count=3\" is no flag; did you mean "
                         "--test_count=3?"));
  EXPECT_THAT(Parse({"lr=3"}), is_refused("\"lr=3\" is no flag; did you mean "
                                          "--set lr=3?"));
  EXPECT_THAT(Parse({"zebra"}), is_refused("\"zebra\" is no flag, and tester "
                                           "takes no other arguments"));
}

TEST_F(CommandLineTest, AValueThatDoesNotFitIsRefused) {
  EXPECT_THAT(Parse({"--test_count=three"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--test_count=three")));
  EXPECT_THAT(
      Parse({"--test_name"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("needs a value")));
}

TEST_F(CommandLineTest, HelpShowsWhatThereIs) {
  ASSERT_OK_AND_ASSIGN(const CommandLine line, Parse({"--help", "--version"}));
  EXPECT_TRUE(line.help);
  EXPECT_TRUE(line.version);
  const std::string help = HelpText(program_);
  EXPECT_THAT(help, HasSubstr("tester: Tests.\n\nUsage: tester [flags]\n"));
  EXPECT_THAT(help, HasSubstr("  --test_count=7\n      How many.\n"));
  EXPECT_THAT(help, HasSubstr("  --test_loud\n"));
  EXPECT_THAT(help, Not(HasSubstr("gtest")));
}

}  // namespace
}  // namespace muster
