#include "common/core/system/available_cpus.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/core/system/small_file.h"

namespace muster {
namespace {

constexpr double kUnlimitedCpus = std::numeric_limits<double>::infinity();

// Returns the content of a kernel file; empty if it cannot be read.
std::string TextIn(const std::string& path) {
  return ReadKernelFile(path).value_or("");
}

// Returns the number of processors for a quota and a period: 2 for "200000
// 100000". kUnlimitedCpus for "max", for -1, and for text in another format.
double Bandwidth(absl::string_view text) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  double quota = 0;
  double period = 0;
  if (words.size() != 2 || !absl::SimpleAtod(words[0], &quota) ||
      !absl::SimpleAtod(words[1], &period) || !(quota > 0) || !(period > 0)) {
    return kUnlimitedCpus;
  }
  return quota / period;
}

double BandwidthOfVersion2(const std::string& folder) {
  return Bandwidth(TextIn(folder + "/cpu.max"));
}

double BandwidthOfVersion1(const std::string& folder) {
  return Bandwidth(absl::StrCat(TextIn(folder + "/cpu.cfs_quota_us"), " ",
                                TextIn(folder + "/cpu.cfs_period_us")));
}

// Returns the lowest bandwidth of `group` ("/a/b") and its ancestors.
double LeastBandwidth(const std::string& hierarchy, std::string group,
                      double (*bandwidth)(const std::string& folder)) {
  double least = kUnlimitedCpus;
  while (true) {
    least = std::min(least, bandwidth(hierarchy + group));
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos) return least;
    group.resize(slash);
  }
}

// At many sites Slurm counts processors without binding tasks to them, so the
// affinity mask does not contain this limit.
double SlurmCpuLimit() {
  const char* const step = getenv("SLURM_STEP_ID");
  const char* const granted = getenv("SLURM_CPUS_PER_TASK");
  double cpus = 0;
  if (step == nullptr || granted == nullptr ||
      !absl::SimpleAtod(granted, &cpus) || !(cpus >= 1)) {
    return kUnlimitedCpus;
  }
  return cpus;
}

}  // namespace

namespace internal {

double ControlGroupCpuLimit(const std::string& root) {
  const std::string mount = root + "/sys/fs/cgroup";
  double limit = kUnlimitedCpus;
  const std::string groups = TextIn(root + "/proc/self/cgroup");
  // Lines are "hierarchy:controllers:path"; version 2 has no controllers.
  for (const absl::string_view line :
       absl::StrSplit(groups, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    if (fields[1].empty()) {
      limit = std::min(limit,
                       LeastBandwidth(mount, fields[2], BandwidthOfVersion2));
    } else if (absl::StrContains(absl::StrCat(",", fields[1], ","), ",cpu,")) {
      limit = std::min(limit, LeastBandwidth(mount + "/cpu", fields[2],
                                             BandwidthOfVersion1));
    }
  }
  return limit;
}

}  // namespace internal

int AvailableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  double cpus = 1;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cpus = CPU_COUNT(&set);
  cpus = std::min(
      {cpus, std::ceil(internal::ControlGroupCpuLimit("")), SlurmCpuLimit()});
  return std::max(1, static_cast<int>(cpus));
}

}  // namespace muster
