#include "common/net/process/help.h"

#include <optional>
#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/net/process/command_line.h"
#include "common/net/process/program_info.h"
#include "common/net/process/task_options.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

ABSL_FLAG(int, test_count, 7, "How many.");

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

ProgramInfo Program(FlagUsers users) {
  return {.name = "tester",
          .summary = "Tests this. And that.",
          .usage = "tester [flags]",
          .examples = "  tester --test_count=1\n",
          .topics = TaskFlags(users),
          .flags_of_others = FlagsOfOtherTasks(users),
          .settings = std::nullopt};
}

TEST(HelpTest, FlagsStandUnderTheirTopicsWithTheirDefaults) {
  const std::string help = Help(Program(FlagUsers::kAny), HelpFormat::kText);
  EXPECT_THAT(
      help,
      AllOf(HasSubstr("tester: Tests this. And that.\n\nUsage: tester "
                      "[flags]\n\nExamples:\n  tester --test_count=1\n"),
            HasSubstr("\nWhat to train:\n  --job=...\n"),
            HasSubstr("\nFlags of this program:\n  --test_count=7\n      How "
                      "many.\n"),
            HasSubstr("\nThe command line:\n  --set=...\n"),
            Not(HasSubstr("gtest"))));
}

TEST(HelpTest, SwitchesAreShownWithBothFormsAndTheDefault) {
  const std::string help = Help(Program(FlagUsers::kServer), HelpFormat::kText);
  EXPECT_THAT(help, AllOf(HasSubstr("  --[no]shared_memory\n      Lets tasks "
                                    "of one machine"),
                          Not(HasSubstr("--noshared_memory"))));
  // Ignores where lines are broken.
  const std::string words = absl::StrJoin(
      absl::StrSplit(help, absl::ByAnyChar(" \n"), absl::SkipEmpty()), " ");
  EXPECT_THAT(words, HasSubstr("parameter servers with their clients. On by "
                               "default. --"));
  EXPECT_THAT(words, HasSubstr("every process that reaches their ports. Off by "
                               "default. --"));
}

TEST(HelpTest, AnExecutableHasOnlyTheFlagsThatItUses) {
  const std::string server =
      Help(Program(FlagUsers::kServer), HelpFormat::kText);
  EXPECT_THAT(server, AllOf(HasSubstr("--checkpoint_root"),
                            Not(HasSubstr("\n  --job=")),
                            Not(HasSubstr("\n  --max_recoveries"))));
  const std::string worker =
      Help(Program(FlagUsers::kWorker), HelpFormat::kText);
  EXPECT_THAT(worker, AllOf(HasSubstr("--job="),
                            Not(HasSubstr("\n  --checkpoint_root")),
                            Not(HasSubstr("\n  --max_recoveries"))));
  const std::string coordinator =
      Help(Program(FlagUsers::kCoordinator), HelpFormat::kText);
  EXPECT_THAT(coordinator, AllOf(HasSubstr("--max_recoveries"),
                                 Not(HasSubstr("\n  --on_coordinator_loss"))));
}

TEST(HelpTest, SettingsOfAProgramAreShown) {
  ProgramInfo program = Program(FlagUsers::kAny);
  program.settings = {{"epochs", "5", "How often."}};
  EXPECT_THAT(Help(program, HelpFormat::kText),
              HasSubstr("Settings, as in --set epochs=...:\n  epochs\n      "
                        "How often. 5 by default.\n"));
}

TEST(HelpTest, TheManualPageHasEveryFlagAndNoStrayRequest) {
  ProgramInfo program = Program(FlagUsers::kAny);
  program.examples = "  tester -x\n.job is a suffix\n";
  const std::string page = Help(program, HelpFormat::kMan);
  EXPECT_THAT(
      page,
      AllOf(HasSubstr(".TH TESTER 1"), HasSubstr("tester \\- Tests this\n"),
            HasSubstr(".SS Lost parameter servers\n"),
            HasSubstr(".TP\n\\fB\\-\\-test_count=7\\fR\nHow many."),
            HasSubstr("\n\\&.job is a suffix\n"),
            HasSubstr(".TP\n\\fB138\\fR\n")));
}

TEST(HelpTest, BashCompletesEveryFlag) {
  const std::string commands =
      Help(Program(FlagUsers::kAny), HelpFormat::kBash);
  EXPECT_THAT(commands, AllOf(HasSubstr(" --test_count= "),
                              HasSubstr("--shared_memory --noshared_memory"),
                              HasSubstr("--help --version'"),
                              HasSubstr("complete -o default -F _muster_tester "
                                        "tester\n")));
}

}  // namespace
}  // namespace muster
