#ifndef TESTS_GOLDEN_GOLDEN_DATA_H_
#define TESTS_GOLDEN_GOLDEN_DATA_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/core/tensor/tensor.h"
#include "nlohmann/json.hpp"

namespace muster {

// One thing that TensorFlow or Keras computed; make_golden.py says how the
// files come about and what is in them.
struct GoldenCase {
  std::string name;
  nlohmann::json config;
  // Values that are tensors; others are found in `json`.
  std::map<std::string, Tensor> inputs;
  std::map<std::string, Tensor> outputs;
  nlohmann::json json;
};

// The cases of tests/golden/data/<file>, for a test that has them as data.
// Dies when the file is not as it should be.
std::vector<GoldenCase> ReadGoldenCases(absl::string_view file);

// Whether each element of `actual` lies within `tolerance` of `expected`,
// relative for numbers above 1; NaN and infinities are equal to themselves.
// Says where it is worst when not: "" means close.
std::string DescribeDifference(const Tensor& actual, const Tensor& expected,
                               double tolerance);

}  // namespace muster

#endif  // TESTS_GOLDEN_GOLDEN_DATA_H_
