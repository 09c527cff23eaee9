// The throughput of optimizer updates: GB/s of necessary transfers (each array
// read, each except the gradient written), compared with a memcpy of arrays of
// the same size; and rows per second of sparse updates in a table much larger
// than the caches. Budget: 10 M Adagrad rows of 64 per second.
//
//   bazel run //bench:update_rule_benchmark

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "bench/measure.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/base/random.h"

namespace muster {
namespace {

constexpr int64_t kDenseCount = 25 << 20;  // 100 MiB of floats.
constexpr int kRepetitions = 7;
constexpr int64_t kTableRows = 2'000'000;
constexpr int64_t kRowElements = 64;
constexpr int64_t kRowsPerUpdate = 4096;

// A variable and its slots.
struct State {
  State(const UpdateRule& rule, int64_t count)
      : gradient(count, 0.001f), variable(count, 1.0f) {
    for (const SlotSpec& slot : rule.slots()) {
      slots.emplace_back(count, static_cast<float>(slot.initial_value));
    }
    for (std::vector<float>& slot : slots) pointers.push_back(slot.data());
  }
  std::vector<float> gradient;
  std::vector<float> variable;
  std::vector<std::vector<float>> slots;
  std::vector<float*> pointers;
};

std::unique_ptr<UpdateRule> MakeRule(const Optimizer& optimizer) {
  auto rule = UpdateRule::Create(optimizer);
  if (!rule.ok()) std::exit(1);
  return *std::move(rule);
}

double CopyGigabytesPerSecond() {
  const std::vector<float> from(kDenseCount, 1.0f);
  std::vector<float> to(kDenseCount, 0.0f);
  std::vector<double> micros;
  for (int i = 0; i < kRepetitions; ++i) {
    micros.push_back(MicrosecondsOf([&] {
      std::memcpy(to.data(), from.data(), kDenseCount * sizeof(float));
      __asm__ volatile("" : : "r"(to.data()) : "memory");
    }));
  }
  return 2.0 * kDenseCount * sizeof(float) / Median(micros) / 1e3;
}

void MeasureDense(const char* name, const Optimizer& optimizer) {
  const auto rule = MakeRule(optimizer);
  State state(*rule, kDenseCount);
  std::vector<double> micros;
  for (int i = 0; i < kRepetitions; ++i) {
    micros.push_back(MicrosecondsOf([&] {
      rule->Apply(i, kDenseCount, state.gradient.data(), state.variable.data(),
                  absl::MakeConstSpan(state.pointers));
    }));
  }
  const double arrays = 3.0 + 2.0 * static_cast<double>(state.slots.size());
  std::printf("%-12s 100 MiB: %6.2f ms, %5.1f GB/s\n", name,
              Median(micros) / 1e3,
              arrays * kDenseCount * sizeof(float) / Median(micros) / 1e3);
}

void MeasureRows(const char* name, const Optimizer& optimizer) {
  const auto rule = MakeRule(optimizer);
  State state(*rule, kTableRows * kRowElements);
  RandomStream random(1);
  std::vector<double> micros;
  for (int i = 0; i < 200; ++i) {
    std::vector<int64_t> rows(kRowsPerUpdate);
    for (int64_t& row : rows) {
      row = static_cast<int64_t>(random.Below(kTableRows));
    }
    micros.push_back(MicrosecondsOf([&] {
      rule->ApplyRows(i, kRowElements, rows, state.gradient.data(),
                      state.variable.data(),
                      absl::MakeConstSpan(state.pointers));
    }));
  }
  std::printf("%-12s 4,096 rows of 64: %7.1f us, %5.1f M rows/s\n", name,
              Median(micros), kRowsPerUpdate / Median(micros));
}

int Main() {
  std::printf("memcpy: %.1f GB/s\n", CopyGigabytesPerSecond());
  MeasureDense("sgd", Sgd());
  MeasureDense("momentum", Sgd({.momentum = 0.9}));
  MeasureDense("adam", Adam());
  MeasureDense("adagrad", Adagrad());
  MeasureDense("rmsprop", RmsProp());
  MeasureDense("ftrl", Ftrl());
  MeasureRows("sgd", Sgd());
  MeasureRows("adagrad", Adagrad());
  MeasureRows("adam", Adam());
  return 0;
}

}  // namespace
}  // namespace muster

int main() { return muster::Main(); }
