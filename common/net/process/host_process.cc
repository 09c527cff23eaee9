#include "common/net/process/host_process.h"

#include <unistd.h>

#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/core/system/host_name.h"
#include "common/core/system/small_file.h"

namespace muster {
namespace {

struct ProcessStat {
  char state = 0;
  uint64_t start_ticks = 0;
};

std::string FirstLine(const std::string& path) {
  const std::string text = ReadKernelFile(path).value_or("");
  return text.substr(0, text.find('\n'));
}

// Returns the state and the start of a process; unset if there is no such
// process. In its line, the second field is the name of the executable in
// parentheses, which may itself contain spaces and parentheses.
std::optional<ProcessStat> ReadStat(int64_t pid) {
  // Indices of the fields after the name.
  constexpr size_t kState = 0;
  constexpr size_t kStartTicks = 19;  // proc(5): field 22.
  const std::string line = FirstLine(absl::StrCat("/proc/", pid, "/stat"));
  const size_t end = line.rfind(')');
  if (end == line.npos) return std::nullopt;
  const std::vector<absl::string_view> fields = absl::StrSplit(
      absl::string_view(line).substr(end + 1), ' ', absl::SkipEmpty());
  ProcessStat stat;
  if (fields.size() <= kStartTicks ||
      !absl::SimpleAtoi(fields[kStartTicks], &stat.start_ticks)) {
    return std::nullopt;
  }
  stat.state = fields[kState].front();
  return stat;
}

std::string BootId() {
  return std::string(
      absl::StripAsciiWhitespace(FirstLine("/proc/sys/kernel/random/boot_id")));
}

std::string PidNamespace() {
  char text[64] = {};
  const ssize_t size = readlink("/proc/self/ns/pid", text, sizeof(text));
  return size > 0 ? std::string(text, size) : "";
}

}  // namespace

std::string HostProcess::ToString() const {
  return absl::StrCat("pid ", pid, " on host ", host);
}

HostProcess ThisProcess() { return ProcessOfPid(getpid()); }

HostProcess ProcessOfPid(pid_t pid) {
  HostProcess process = {.host = HostName(),
                         .pid = pid,
                         .boot_id = BootId(),
                         .pid_namespace = PidNamespace()};
  const std::optional<ProcessStat> stat = ReadStat(pid);
  if (stat.has_value()) process.start_ticks = stat->start_ticks;
  return process;
}

ProcessState StateOf(const HostProcess& process) {
  const bool is_visible =
      !process.boot_id.empty() && process.boot_id == BootId() &&
      !process.pid_namespace.empty() && process.pid_namespace == PidNamespace();
  if (!is_visible) return ProcessState::kUnknown;
  const std::optional<ProcessStat> stat = ReadStat(process.pid);
  const bool runs = stat.has_value() &&
                    stat->start_ticks == process.start_ticks &&
                    stat->state != 'Z' && stat->state != 'X';
  return runs ? ProcessState::kRunning : ProcessState::kEnded;
}

}  // namespace muster
