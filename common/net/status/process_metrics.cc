#include "common/net/status/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/system/small_file.h"

namespace muster {
namespace {

constexpr MetricInfo kResidentBytes = {"muster_process_resident_memory_bytes",
                                       "Resident memory of the process."};
constexpr MetricInfo kCpuSeconds = {
    "muster_process_cpu_seconds_total",
    "User and system processor time of the process."};
constexpr MetricInfo kOpenFiles = {"muster_process_open_fds",
                                   "Open file descriptors of the process."};
constexpr MetricInfo kStartTime = {
    "muster_process_start_time_seconds",
    "When the process started, in seconds since the Unix epoch."};

// The start time of the process: initialized before main().
const double kStartSeconds =
    absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

void AddProcessMetrics(MetricSink* sink) {
  // The first two numbers are the total and the resident size, in pages.
  const std::string statm = ReadKernelFile("/proc/self/statm").value_or("");
  const std::vector<absl::string_view> pages = absl::StrSplit(statm, ' ');
  int64_t resident_pages = 0;
  if (pages.size() >= 2 && absl::SimpleAtoi(pages[1], &resident_pages)) {
    sink->AddGauge(kResidentBytes,
                   static_cast<double>(resident_pages * getpagesize()));
  }
  rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    sink->AddCounter(kCpuSeconds,
                     Seconds(usage.ru_utime) + Seconds(usage.ru_stime));
  }
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (!error) {
    sink->AddGauge(kOpenFiles, static_cast<double>(
                                   std::distance(begin(files), end(files))));
  }
  sink->AddGauge(kStartTime, kStartSeconds);
}

}  // namespace muster
