#ifndef BENCH_TURNS_H_
#define BENCH_TURNS_H_

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>

#include "absl/status/status.h"
#include "common/learn/train/base/callback.h"
#include "common/learn/train/model.h"

namespace muster {

// Runs steps alternately with other processes: prints "ready" after the
// warm-up, waits for a "step" before each step and prints its time in
// milliseconds, and prints the peak memory in MiB at the end of the input. See
// turn_taking.py.
class Turns : public Callback {
 public:
  absl::Status OnTrainBatchBegin(Model& model, int64_t step) override {
    return Begin(&model, step);
  }
  absl::Status OnTrainBatchEnd(Model&, int64_t, const Logs&) override {
    return End();
  }
  absl::Status OnTestBatchBegin(Model&, int64_t step) override {
    return Begin(nullptr, step);
  }
  absl::Status OnTestBatchEnd(Model&, int64_t, const Logs&) override {
    return End();
  }

 private:
  absl::Status Begin(Model* training, int64_t step) {
    if (step == kWarmUpSteps) std::cout << "ready" << std::endl;
    std::string line;
    if (step >= kWarmUpSteps && !std::getline(std::cin, line)) {
      Finish();
      if (training == nullptr) return absl::CancelledError("no more turns");
      training->StopTraining();
    }
    is_timed_ = step >= kWarmUpSteps;
    begin_ = std::chrono::steady_clock::now();
    return absl::OkStatus();
  }

  absl::Status End() {
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - begin_;
    if (is_timed_ && !finished_) std::cout << taken.count() << std::endl;
    return absl::OkStatus();
  }

  void Finish() {
    finished_ = true;
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    std::cout << static_cast<double>(usage.ru_maxrss) / 1024 << std::endl;
  }

  static constexpr int kWarmUpSteps = 3;

  bool is_timed_ = false;
  bool finished_ = false;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace muster

#endif  // BENCH_TURNS_H_
