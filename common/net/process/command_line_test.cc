#include "common/net/process/command_line.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/process/program_info.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

ABSL_FLAG(int, test_count, 7, "How many.");
ABSL_FLAG(std::string, test_name, "", "What it is called.");
ABSL_FLAG(bool, test_loud, false, "Whether it is heard.");
ABSL_FLAG(absl::Duration, test_wait, absl::Seconds(1), "How long it waits.");

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
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
                                .topics = {},
                                .settings = std::nullopt};
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

TEST_F(CommandLineTest, SuggestsTheNearestFlagForAnUnknownOne) {
  EXPECT_THAT(Parse({"--test_cuont=3"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "tester has no flag --test_cuont; did you mean "
                       "\"test_count\"?"));
  EXPECT_THAT(Parse({"--zebra"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                           "tester has no flag --zebra"));
}

TEST_F(CommandLineTest, SuggestsTheFlagForAStrayArgument) {
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

TEST_F(CommandLineTest, SuggestsAUnitForADuration) {
  EXPECT_OK(Parse({"--test_wait=10s"}));
  EXPECT_EQ(absl::GetFlag(FLAGS_test_wait), absl::Seconds(10));
  EXPECT_THAT(Parse({"--test_wait=10"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "--test_wait=10: expected a duration with its unit, as "
                       "in 500ms, 10s, 5m or 1h30m"));
}

TEST_F(CommandLineTest, ParsesHelpAndVersion) {
  ASSERT_OK_AND_ASSIGN(CommandLine line, Parse({"--help", "--version"}));
  EXPECT_EQ(line.help, HelpFormat::kText);
  EXPECT_TRUE(line.version);
  ASSERT_OK_AND_ASSIGN(line, Parse({"--help=man"}));
  EXPECT_EQ(line.help, HelpFormat::kMan);
  ASSERT_OK_AND_ASSIGN(line, Parse({"--help=bash"}));
  EXPECT_EQ(line.help, HelpFormat::kBash);
  EXPECT_THAT(Parse({"--help=html"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "--help=html: --help, --help=man or --help=bash"));
}

TEST_F(CommandLineTest, AProgramThatCanExplainHasAFlagForIt) {
  EXPECT_THAT(Parse({"--explain"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("tester has no flag --explain")));
  ProgramInfo program = program_;
  program.explain = [](absl::string_view name) { return std::string(name); };
  ASSERT_OK_AND_ASSIGN(CommandLine line,
                       ParseArguments(program, {"--explain"}));
  EXPECT_EQ(line.explain, "");
  ASSERT_OK_AND_ASSIGN(line, ParseArguments(program, {"--explain=dense"}));
  EXPECT_EQ(line.explain, "dense");
  EXPECT_THAT(ParseArguments(program, {"--explane"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("did you mean \"explain\"?")));
}

TEST_F(CommandLineTest, DeclaredSettingsHaveDefaultsAndOthersAreRefused) {
  ProgramInfo program = program_;
  program.settings = {{"data_dir", "", "Where the data is."},
                      {"epochs", "5", "How often."}};
  ASSERT_OK_AND_ASSIGN(
      const CommandLine line,
      ParseArguments(program, {std::string("--set"), "data_dir=/d"}));
  EXPECT_THAT(line.settings, UnorderedElementsAre(Pair("data_dir", "/d"),
                                                  Pair("epochs", "5")));
  EXPECT_THAT(ParseArguments(program, {std::string("--set=epoch=6")}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "--set epoch=6: the program declares no setting "
                       "\"epoch\", only data_dir, epochs; did you mean "
                       "\"epochs\"?"));
  program.settings.emplace();
  EXPECT_THAT(ParseArguments(program, {std::string("--set=a=b")}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "--set a=b: the program declares no settings"));
}

TEST_F(CommandLineTest, AFlagFileStandsForItsLines) {
  const std::string path = testing::TempDir() + "/flags";
  std::ofstream(path) << "# a comment\n\n--test_count=3\n"
                         "  --test_name two words\n--set=a=1 and 2\n"
                         "--test_loud\n";
  ASSERT_OK_AND_ASSIGN(const CommandLine line,
                       Parse({"--test_count=1", "--flagfile", path,
                              "--notest_loud", "--", "x"}));
  EXPECT_EQ(absl::GetFlag(FLAGS_test_count), 3);
  EXPECT_EQ(absl::GetFlag(FLAGS_test_name), "two words");
  EXPECT_FALSE(absl::GetFlag(FLAGS_test_loud));
  EXPECT_THAT(line.settings, UnorderedElementsAre(Pair("a", "1 and 2")));
  EXPECT_THAT(line.arguments, ElementsAre("x"));
}

TEST_F(CommandLineTest, AMistakeInAFlagFileIsNamedWithItsLine) {
  const std::string path = testing::TempDir() + "/mistakes";
  std::ofstream(path) << "--test_count=3\n--test_nmae=x\n";
  EXPECT_THAT(Parse({"--flagfile=" + path}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       path + ":2: tester has no flag --test_nmae; did you "
                              "mean \"test_name\"?"));
  std::ofstream(path) << "--flagfile=" << path << "\n";
  EXPECT_THAT(Parse({"--flagfile=" + path}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a flag file cannot name another one")));
  EXPECT_THAT(Parse({"--flagfile=/no/such/file"}),
              StatusIs(absl::StatusCode::kNotFound,
                       "--flagfile: cannot read /no/such/file: No such file or "
                       "directory"));
  for (const std::string& path :
       {testing::TempDir(), std::string("/dev/zero")}) {
    EXPECT_THAT(Parse({"--flagfile=" + path}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("--flagfile: cannot read " + path)));
  }
}

}  // namespace
}  // namespace muster
