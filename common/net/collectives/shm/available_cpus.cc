#include "common/net/collectives/shm/available_cpus.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster::internal {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The path of this process' group within the unified hierarchy, "" if there is
// none.
std::string ControlGroup() {
  for (absl::string_view line :
       absl::StrSplit(ReadFile("/proc/self/cgroup"), '\n')) {
    if (absl::ConsumePrefix(&line, "0::")) {
      return std::string(absl::StripAsciiWhitespace(line));
    }
  }
  return "";
}

}  // namespace

std::optional<double> ParseCpuMax(absl::string_view text) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  double quota = 0;
  double period = 0;
  if (words.size() != 2 || !absl::SimpleAtod(words[0], &quota) ||
      !absl::SimpleAtod(words[1], &period) || !(quota > 0) || !(period > 0)) {
    return std::nullopt;
  }
  return quota / period;
}

int AvailableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cpus = 1;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cpus = CPU_COUNT(&set);

  // A limit may stand at any level above us.
  std::string group = ControlGroup();
  while (true) {
    const std::optional<double> limit = ParseCpuMax(
        ReadFile(absl::StrCat("/sys/fs/cgroup", group, "/cpu.max")));
    if (limit.has_value()) {
      cpus = std::min(cpus, static_cast<int>(std::ceil(*limit)));
    }
    const size_t slash = group.rfind('/');
    if (group.empty() || slash == std::string::npos) break;
    group.resize(slash);
  }
  return std::max(cpus, 1);
}

}  // namespace muster::internal
