#include "common/net/status/status_pages.h"

#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/system/log_format.h"
#include "common/core/system/metrics.h"
#include "common/net/status/metrics_text.h"
#include "common/net/status/page_files.h"
#include "common/net/status/process_metrics.h"
#include "common/net/status/status_report.h"

namespace muster {
namespace {

constexpr MetricInfo kBuildInfo = {"muster_build_info",
                                   "1, with the version of Muster as a label."};
constexpr MetricInfo kReady = {"muster_ready",
                               "1 if the process takes part in a job, else 0."};
constexpr MetricInfo kLogged = {"muster_log_problems_total",
                                "Warnings and errors that were logged."};

// The metrics that every process has, whatever its role.
struct CommonMetrics {
  explicit CommonMetrics(const std::string& version)
      : source([version](MetricSink* sink) {
          AddProcessMetrics(sink);
          sink->AddGauge(kBuildInfo, 1, {{"version", version}});
          sink->AddGauge(kReady, Readiness(ReadStatus()).ok() ? 1 : 0);
          const RecentProblems problems = ReadRecentProblems();
          sink->AddCounter(kLogged, static_cast<double>(problems.error_count),
                           {{"severity", "error"}});
          sink->AddCounter(kLogged, static_cast<double>(problems.warning_count),
                           {{"severity", "warning"}});
        }) {}

  const MetricSource source;
};

HttpPage File(const char* content, std::string content_type) {
  // Skips the line break after the opening of the raw string literal.
  HttpResponse response = {.content_type = std::move(content_type),
                           .body = content + 1};
  return {.read = [response = std::move(response)] { return response; },
          .is_public = true};
}

HttpResponse Ready() {
  const absl::Status status = Readiness(ReadStatus());
  if (status.ok()) return {.body = "ready\n"};
  // The reason names tasks and addresses, and this page is public.
  return {.status_code = 503, .body = "not ready\n"};
}

// Returns the GPUs that have metrics (common/core/device/device_set.cc).
std::vector<GpuStatus> ReadGpus() {
  std::map<std::string, GpuStatus> gpus;
  for (const MetricFamily& family : ReadMetrics()) {
    double GpuStatus::*field = nullptr;
    if (family.name == "muster_gpu_memory_bytes") {
      field = &GpuStatus::memory_bytes;
    } else if (family.name == "muster_gpu_memory_peak_bytes") {
      field = &GpuStatus::memory_peak_bytes;
    } else if (family.name == "muster_gpu_memory_limit_bytes") {
      field = &GpuStatus::memory_limit_bytes;
    } else {
      continue;
    }
    for (const MetricFamily::Sample& sample : family.samples) {
      if (sample.labels.empty()) continue;
      const std::string& device = sample.labels.front().second;
      gpus[device].device = device;
      gpus[device].*field = sample.value;
    }
  }
  std::vector<GpuStatus> sorted;
  for (auto& [device, gpu] : gpus) sorted.push_back(std::move(gpu));
  return sorted;
}

}  // namespace

std::map<std::string, HttpPage> StatusPages(ProcessStatus process) {
  process.process_id = getpid();
  process.start = absl::Now();
  MetricLabels labels;
  if (!process.job.empty()) labels.emplace_back("muster_job", process.job);
  labels.emplace_back("role", process.role);
  labels.emplace_back("index", absl::StrCat(process.index));
  const auto common = std::make_shared<const CommonMetrics>(process.version);

  std::map<std::string, HttpPage> pages;
  pages["/livez"] = {.read = [] { return HttpResponse{.body = "alive\n"}; },
                     .is_public = true};
  pages["/readyz"] = {.read = Ready, .is_public = true};
  pages["/metrics"] = {.read = [labels, common] {
    return HttpResponse{.content_type = std::string(kMetricsContentType),
                        .body = MetricsText(ReadMetrics(), labels)};
  }};
  pages["/status.json"] = {.read = [process] {
    return HttpResponse{
        .content_type = "application/json",
        .body = StatusJson(process, ReadStatus(), ReadRecentProblems(),
                           ReadGpus(), absl::Now())};
  }};
  pages["/"] = File(internal::k_status_html, "text/html; charset=utf-8");
  pages["/status.css"] = File(internal::k_status_css, "text/css");
  pages["/status.js"] = File(internal::k_status_js, "text/javascript");
  return pages;
}

}  // namespace muster
