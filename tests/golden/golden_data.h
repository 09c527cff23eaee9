#ifndef TESTS_GOLDEN_GOLDEN_DATA_H_
#define TESTS_GOLDEN_GOLDEN_DATA_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/core/tensor/tensor.h"
#include "nlohmann/json.hpp"

namespace muster {

// The inputs and outputs of one computation by TensorFlow or Keras.
// make_golden.py describes the file format and how the files are generated.
struct GoldenCase {
  std::string name;
  nlohmann::json config;
  // Values that are tensors. Other values are in `json`.
  std::map<std::string, Tensor> inputs;
  std::map<std::string, Tensor> outputs;
  nlohmann::json json;
};

// Returns the cases of tests/golden/data/<file>, which must be in the data of
// the test. Aborts if the file is invalid.
std::vector<GoldenCase> ReadGoldenCases(absl::string_view file);
// As above, from a file that a program of the test has written to `path`.
std::vector<GoldenCase> ReadGoldenCasesAt(const std::string& path);

// Compares elementwise: the absolute difference for expected values up to 1,
// the relative one above. NaN equals NaN, and equal infinities are equal.
// Returns "" if all differences are within `tolerance`, otherwise a description
// of the largest one.
std::string DescribeDifference(const Tensor& actual, const Tensor& expected,
                               double tolerance);

}  // namespace muster

#endif  // TESTS_GOLDEN_GOLDEN_DATA_H_
