#include "bench/calibrate_costs.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "absl/time/time.h"
#include "bench/lane_ranks.h"
#include "common/core/base/check.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/cost_fit.h"
#include "common/net/collectives/cost_model.h"
#include "common/net/collectives/message/message_communicator.h"
#include "common/net/collectives/schedule.h"
#include "common/net/collectives/shm/group_options.h"
#include "common/net/collectives/shm/testing/ranks.h"

namespace muster {
namespace {

constexpr int kRowCountMax = 256;
constexpr size_t kOneShotBytesMax = size_t{1} << 20;
constexpr double kErrorMax = 0.15;

struct Row {
  AllReduceSample sample;
  bool is_noisy = false;
};

// The results of the ranks, in memory shared with the child processes.
struct Table {
  Row rows[kRowCountMax];
  int row_count = 0;
};

int CallCount(size_t size_bytes) {
  return static_cast<int>(
      std::clamp<size_t>((size_t{128} << 20) / size_bytes, 9, 200));
}

// Called on every rank; the first one writes the row.
void AddRow(Communicator& communicator, Algorithm algorithm, size_t size_bytes,
            Table* table) {
  const AllReduceTiming timing =
      TimeAllReduce(communicator, size_bytes, CallCount(size_bytes));
  if (communicator.rank() != 0) return;
  MUSTER_CHECK(table->row_count < kRowCountMax);
  Row& row = table->rows[table->row_count++];
  const int size = communicator.size();
  row.sample = {algorithm, size, static_cast<int64_t>(size_bytes),
                timing.median_microseconds * 1e-6};
  const double median = timing.median_microseconds;
  row.is_noisy =
      timing.upper_quartile_microseconds > median * (1 + kErrorMax) ||
      timing.lower_quartile_microseconds < median * (1 - kErrorMax);
}

void MeasureLanes(const std::string& lanes, int size,
                  const std::vector<size_t>& sizes_bytes, Table* table) {
  // Each rank has its own copy and changes it in the same order.
  Algorithm algorithm = Algorithm::kDirect;
  ForkLaneRanks(
      lanes, size, [&](int, size_t) { return algorithm; },
      [&](Communicator& communicator) {
        for (const size_t size_bytes : sizes_bytes) {
          for (const Algorithm each :
               {Algorithm::kOneShot, Algorithm::kDirect, Algorithm::kRing,
                Algorithm::kHalvingDoubling}) {
            if (each == Algorithm::kOneShot && size_bytes > kOneShotBytesMax) {
              continue;
            }
            algorithm = each;
            AddRow(communicator, each, size_bytes, table);
          }
        }
      });
}

void MeasureSharedMemory(int size, const std::vector<size_t>& sizes_bytes,
                         Table* table) {
  const SharedMemoryTuning tuning;
  ForkedRanks ranks(size, tuning, [&](Communicator& communicator) {
    PinToProcessor(communicator.rank());
    for (const size_t size_bytes : sizes_bytes) {
      AddRow(communicator,
             size_bytes <= tuning.one_shot_bytes_max ? Algorithm::kOneShot
                                                     : Algorithm::kDirect,
             size_bytes, table);
    }
  });
  for (int rank = 0; rank < size; ++rank) {
    MUSTER_CHECK(ranks.Wait(rank, absl::Minutes(10)) == 0);
  }
}

void PrintConstants(const std::string& lanes, const CostModel& costs) {
  std::printf(
      "%s: latency %.2f us, overhead %.2f us, wake %.2f us, a byte %.4f ns, "
      "crossing %.4f ns more, "
      "beyond %.0f KiB %.4f ns more, an addition %.4f ns\n",
      lanes.c_str(), costs.link.latency_seconds * 1e6,
      costs.link.overhead_seconds * 1e6, costs.wake_seconds * 1e6,
      costs.link.seconds_per_byte * 1e9, costs.crossing_seconds_per_byte * 1e9,
      costs.cached_bytes / 1024, costs.far_seconds_per_byte * 1e9,
      costs.reduce_seconds_per_byte * 1e9);
}

void PrintRows(const std::string& lanes, const Table& table,
               const CostModel& costs) {
  int quiet_count = 0;
  int near_count = 0;
  std::vector<double> errors;
  for (int i = 0; i < table.row_count; ++i) {
    const Row& row = table.rows[i];
    const double predicted = PredictSeconds(row.sample, costs);
    const double error = predicted / row.sample.seconds - 1;
    const bool is_near = std::abs(error) <= kErrorMax;
    quiet_count += !row.is_noisy;
    near_count += !row.is_noisy && is_near;
    errors.push_back(std::abs(error));
    std::printf(
        "%-5s %d ranks %-16s %10lld bytes %10.1f us predicted %10.1f"
        " %+6.0f %%%s%s\n",
        lanes.c_str(), row.sample.size,
        std::string(AlgorithmName(row.sample.algorithm)).c_str(),
        static_cast<long long>(row.sample.size_bytes), row.sample.seconds * 1e6,
        predicted * 1e6, error * 100, is_near ? "" : " off",
        row.is_noisy ? " noisy" : "");
  }
  std::sort(errors.begin(), errors.end());
  std::printf(
      "%s: %d of %d quiet rows within %.0f %%; of all %d, the median"
      " error is %.0f %%, the largest %.0f %%\n",
      lanes.c_str(), near_count, quiet_count, kErrorMax * 100, table.row_count,
      errors[errors.size() / 2] * 100, errors.back() * 100);
  std::fflush(stdout);
}

// Prints the chosen and the fastest algorithm for each group and size. The rows
// of one group and size are consecutive.
void PrintChoices(const std::string& lanes, const Table& table) {
  for (int begin = 0; begin < table.row_count;) {
    const AllReduceSample& first = table.rows[begin].sample;
    const Algorithm choice =
        ChooseAlgorithm(first.size, static_cast<size_t>(first.size_bytes));
    const AllReduceSample* fastest = &first;
    const AllReduceSample* chosen = nullptr;
    int end = begin;
    for (; end < table.row_count; ++end) {
      const AllReduceSample& sample = table.rows[end].sample;
      if (sample.size != first.size || sample.size_bytes != first.size_bytes) {
        break;
      }
      if (sample.seconds < fastest->seconds) fastest = &sample;
      if (sample.algorithm == choice) chosen = &sample;
    }
    begin = end;
    if (chosen == nullptr) continue;
    std::printf("%-5s %d ranks %10lld bytes chosen %-16s %+4.0f %% over %s\n",
                lanes.c_str(), first.size,
                static_cast<long long>(first.size_bytes),
                std::string(AlgorithmName(choice)).c_str(),
                (chosen->seconds / fastest->seconds - 1) * 100,
                std::string(AlgorithmName(fastest->algorithm)).c_str());
  }
}

}  // namespace

void CalibrateCosts(const std::vector<std::string>& lanes,
                    const std::vector<size_t>& sizes_bytes) {
  for (const std::string& kind : lanes) {
    SharedAmongForks<Table> table;
    for (const int size : {2, 4}) {
      if (kind == "shm") {
        MeasureSharedMemory(size, sizes_bytes, &*table);
      } else {
        MeasureLanes(kind, size, sizes_bytes, &*table);
      }
    }
    std::vector<AllReduceSample> samples;
    for (int i = 0; i < table->row_count; ++i) {
      samples.push_back(table->rows[i].sample);
    }
    const CostModel costs =
        FitCosts(samples, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
    PrintConstants(kind, costs);
    PrintRows(kind, *table, costs);
    if (kind != "shm") PrintChoices(kind, *table);
  }
}

}  // namespace muster
