#ifndef COMMON_LEARN_TRAIN_RUN_SUMMARY_H_
#define COMMON_LEARN_TRAIN_RUN_SUMMARY_H_

#include <cstdint>
#include <string>

#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/history.h"

namespace muster {

// The results of a run: the content of summary.json.
struct RunSummary {
  std::string muster_version = "";
  std::string job_file = "";
  std::string strategy = "";
  StrategyReport report = {};
  uint64_t seed = 0;
  History history = {};
  // The values of the last epoch, and "test_..." of the final evaluation.
  Logs final = {};
  std::string weights_sha256 = "";
  // The prefix of the checkpoint with these weights; empty if there is none.
  std::string final_weights = "";
  // Duration of this process's run.
  double run_seconds = 0;
};

// Returns `summary` as indented JSON. NaN and infinities are null.
std::string ToJson(const RunSummary& summary);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_RUN_SUMMARY_H_
