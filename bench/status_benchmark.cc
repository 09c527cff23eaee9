// The cost of counting metrics during a step, and the cost of a scrape in a job
// with many tasks.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/check.h"
#include "common/core/system/metrics.h"
#include "common/net/status/http_server.h"
#include "common/net/status/status_pages.h"
#include "common/net/status/status_report.h"
#include "common/net/status/testing/http_client.h"

namespace muster {
namespace {

void CounterAdd(benchmark::State& state) {
  static Counter* const counter =
      GetCounter({"muster_benchmark_total", "A benchmark."});
  for (auto _ : state) counter->Add();
}
BENCHMARK(CounterAdd)->Threads(1)->Threads(2);

void DurationObserve(benchmark::State& state) {
  static DurationMetric* const metric =
      GetDurationMetric({"muster_benchmark_seconds", "A benchmark."});
  absl::Duration duration = absl::Microseconds(1);
  for (auto _ : state) {
    metric->Observe(duration);
    duration += absl::Nanoseconds(100);
  }
}
BENCHMARK(DurationObserve);

// Serves the status pages of a coordinator with `task_count` workers.
class SimulatedCoordinator {
 public:
  explicit SimulatedCoordinator(int64_t task_count)
      : metrics_([task_count](MetricSink* sink) {
          for (int64_t i = 0; i < task_count; ++i) {
            sink->AddGauge(kConnected, 1,
                           {{"peer", absl::StrCat("worker ", i)}});
          }
        }),
        status_([task_count](StatusReport* report) {
          for (int64_t i = 0; i < task_count; ++i) {
            report->tasks.push_back(
                {.task = absl::StrCat("worker ", i),
                 .address = absl::StrCat("worker-", i, ".job:2222"),
                 .state = TaskStatus::State::kConnected,
                 .in_state = absl::Seconds(i),
                 .incarnation = static_cast<uint64_t>(i) + 1,
                 .closures_in_flight = 8,
                 .closures_done = 1000 * i,
                 .closure_time = absl::Microseconds(900 + i % 200)});
          }
        }) {
    auto server = HttpServer::Start({}, StatusPages({.task = "chief"}));
    MUSTER_CHECK(server.ok());
    server_ = *std::move(server);
  }

  void Get(benchmark::State& state, const std::string& path) {
    int64_t size_bytes = 0;
    for (auto _ : state) {
      const auto answer = HttpGet(server_->url(), path);
      if (!answer.ok() || answer->status_code != 200) {
        state.SkipWithError("no answer");
        return;
      }
      size_bytes = static_cast<int64_t>(answer->body.size());
    }
    state.counters["bytes"] = static_cast<double>(size_bytes);
  }

 private:
  static constexpr MetricInfo kConnected = {"muster_benchmark_connected",
                                            "A benchmark."};

  const MetricSource metrics_;
  const StatusSource status_;
  std::unique_ptr<HttpServer> server_;
};

void Scrape(benchmark::State& state) {
  SimulatedCoordinator(state.range(0)).Get(state, "/metrics");
}
BENCHMARK(Scrape)
    ->Arg(5)
    ->Arg(1000)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void PollStatus(benchmark::State& state) {
  SimulatedCoordinator(state.range(0)).Get(state, "/status.json");
}
BENCHMARK(PollStatus)
    ->Arg(5)
    ->Arg(1000)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace muster

BENCHMARK_MAIN();
