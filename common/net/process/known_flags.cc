#include "common/net/process/known_flags.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/flags/reflection.h"
#include "absl/strings/match.h"

namespace muster {
namespace {

// True if Abseil defines the flag. The file that defines a flag shows its
// owner.
bool IsAbseils(const absl::CommandLineFlag& flag) {
  return absl::StrContains(flag.Filename(), "absl/");
}

// The files that define Muster's flags. An executable may contain several of
// Muster's programs, each with its own flags.
constexpr absl::string_view kFilesOfFlags[] = {
    "common/net/process/task_flags.cc",
    "coordinator/coordinator_program.cc",
    "deploy/launch/engine_mode.cc",
    "deploy/launch/launch_program.cc",
    "deploy/launch/task_counts.cc",
    "deploy/musterctl/gen_certs.cc",
    "deploy/musterctl/musterctl_program.cc",
};

bool IsMusters(const absl::CommandLineFlag& flag) {
  const std::string file = flag.Filename();
  return std::any_of(
      std::begin(kFilesOfFlags), std::end(kFilesOfFlags),
      [&](absl::string_view known) { return absl::EndsWith(file, known); });
}

FlagDescription Describe(const std::string& name,
                         const absl::CommandLineFlag& flag) {
  const bool is_switch = flag.IsOfType<bool>();
  return {.name = name,
          .default_value = flag.DefaultValue(),
          .text = flag.Help(),
          .is_switch = is_switch,
          .takes_value = !is_switch};
}

TopicDescription BuiltinFlags(const ProgramInfo& program) {
  TopicDescription topic = {
      .title = "The command line",
      .flags = {{.name = "set",
                 .text = program.settings.has_value()
                             ? "name=value: gives one of the settings "
                               "above a value. May be repeated."
                             : "name=value: fills ${name} in the job file. "
                               "May be repeated.",
                 .takes_value = true},
                {.name = "flagfile",
                 .text = "Reads flags from this file, one on each line. "
                         "Empty lines and lines that begin with # are "
                         "skipped. Flags further right win.",
                 .takes_value = true},
                {.name = "help",
                 .text = "Prints this text. --help=man prints a manual "
                         "page, --help=bash commands that let bash "
                         "complete the flags."},
                {.name = "version", .text = "Prints the version."}}};
  if (program.explain != nullptr) {
    topic.flags.push_back(
        {.name = "explain",
         .text = "Prints the fields of a job file; --explain=NAME those of "
                 "this name, as --explain=dense."});
  }
  return topic;
}

}  // namespace

std::map<std::string, absl::CommandLineFlag*> KnownFlags(
    const ProgramInfo& program) {
  std::set<std::string> listed(program.flags_of_others.begin(),
                               program.flags_of_others.end());
  for (const FlagTopic& topic : program.topics) {
    listed.insert(topic.flags.begin(), topic.flags.end());
  }
  std::map<std::string, absl::CommandLineFlag*> known;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    const bool is_users = !IsMusters(*flag) && !IsAbseils(*flag);
    if (is_users || listed.contains(std::string(name))) {
      known.emplace(std::string(name), flag);
    }
  }
  return known;
}

std::vector<TopicDescription> DescribeFlags(const ProgramInfo& program) {
  std::map<std::string, absl::CommandLineFlag*> known = KnownFlags(program);
  std::vector<TopicDescription> topics;
  for (const FlagTopic& topic : program.topics) {
    TopicDescription described = {.title = topic.title, .flags = {}};
    for (const std::string& name : topic.flags) {
      const auto it = known.find(name);
      if (it == known.end()) continue;
      described.flags.push_back(Describe(name, *it->second));
      known.erase(it);
    }
    topics.push_back(std::move(described));
  }
  for (const std::string& name : program.flags_of_others) known.erase(name);
  if (!known.empty()) {
    TopicDescription own = {.title = "Flags of this program", .flags = {}};
    for (const auto& [name, flag] : known) {
      own.flags.push_back(Describe(name, *flag));
    }
    topics.push_back(std::move(own));
  }
  topics.push_back(BuiltinFlags(program));
  return topics;
}

std::vector<std::string> BuiltinFlagNames() {
  return {"set", "flagfile", "help", "version"};
}

}  // namespace muster
