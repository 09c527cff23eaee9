#ifndef COMMON_LEARN_TRAIN_TESTING_LOCAL_STRATEGIES_H_
#define COMMON_LEARN_TRAIN_TESTING_LOCAL_STRATEGIES_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/model.h"

namespace muster {

// A strategy within one process, for INSTANTIATE_TEST_SUITE_P.
struct LocalStrategy {
  std::string name;
  std::function<absl::StatusOr<std::unique_ptr<Strategy>>()> make;
};
std::ostream& operator<<(std::ostream& out, const LocalStrategy& strategy);

// Returns one strategy of each kind, on CPUs and on the first two GPUs under
// test. Registers an environment that sets up the GPUs before the first test.
std::vector<LocalStrategy> LocalStrategies();

// Returns the elements of each weight. A failure to read them fails the test.
std::vector<std::vector<float>> WeightsOf(const Model& model);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_TESTING_LOCAL_STRATEGIES_H_
