#include "common/learn/train/testing/local_strategies.h"

#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/testing/gpus_under_test.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/strategies/central_storage_strategy.h"
#include "common/learn/strategy/strategies/mirrored_strategy.h"
#include "common/learn/strategy/strategies/one_device_strategy.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// Devices are settings of the process, which cannot change after their first
// use.
class TwoGpus : public ::testing::Environment {
 public:
  void SetUp() override { ASSERT_OK(UseGpusUnderTest(2)); }
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const LocalStrategy& strategy) {
  return out << strategy.name;
}

std::vector<LocalStrategy> LocalStrategies() {
  static const auto* const gpus =
      ::testing::AddGlobalTestEnvironment(new TwoGpus);
  (void)gpus;
  return {
      {"OneCpu",
       [] {
         return OneDeviceStrategy::Create(
             {.device = "cpu:0", .thread_count = 1});
       }},
      {"OneGpu", [] { return OneDeviceStrategy::Create({.device = "gpu:0"}); }},
      {"Mirrored",
       [] {
         return MirroredStrategy::Create(
             {.devices = {"cpu:0", "cpu:1"}, .thread_count = 1});
       }},
      {"MirroredOnGpus",
       [] {
         return MirroredStrategy::Create({.devices = {"gpu:0", "gpu:1"}});
       }},
      {"CentralStorage",
       [] {
         return CentralStorageStrategy::Create(
             {.compute_devices = {"cpu:0", "cpu:1"}, .thread_count = 1});
       }},
  };
}

std::vector<std::vector<float>> WeightsOf(const Model& model) {
  std::vector<std::vector<float>> values;
  const absl::StatusOr<std::vector<Tensor>> weights = model.GetWeights();
  EXPECT_OK(weights.status());
  if (!weights.ok()) return values;
  for (const Tensor& weight : *weights) {
    values.emplace_back(weight.flat<float>().begin(),
                        weight.flat<float>().end());
  }
  return values;
}

}  // namespace muster
