#include "tests/golden/golden_data.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/check.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "nlohmann/json.hpp"

namespace muster {
namespace {

// JSON has no NaN or infinity; make_golden.py writes them as strings.
double ToDouble(const nlohmann::json& number) {
  if (!number.is_string()) return number.get<double>();
  const std::string text = number.get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  MUSTER_CHECK(text == "inf" || text == "-inf");
  const double infinity = std::numeric_limits<double>::infinity();
  return text == "inf" ? infinity : -infinity;
}

template <typename T>
T ToElement(const nlohmann::json& number) {
  // A double cannot represent all 64-bit integers.
  if (number.is_number_integer()) {
    return static_cast<T>(number.get<int64_t>());
  }
  return static_cast<T>(ToDouble(number));
}

Tensor ToTensor(const nlohmann::json& json) {
  const absl::StatusOr<DType> dtype =
      ParseDType(json.at("dtype").get<std::string>());
  MUSTER_CHECK(dtype.ok());
  const nlohmann::json& values = json.at("values");
  Tensor tensor(*dtype, Shape(json.at("shape").get<std::vector<int64_t>>()));
  MUSTER_CHECK(values.size() == static_cast<size_t>(tensor.element_count()));
  if (*dtype == DType::kString) {
    std::transform(
        values.begin(), values.end(),
        tensor.mutable_flat<std::string>().begin(),
        [](const nlohmann::json& value) { return value.get<std::string>(); });
    return tensor;
  }
  VisitNumber(*dtype, [&]<typename T>() {
    std::transform(values.begin(), values.end(),
                   tensor.mutable_flat<T>().begin(), ToElement<T>);
  });
  return tensor;
}

std::map<std::string, Tensor> ToTensors(const nlohmann::json& json) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, value] : json.items()) {
    const bool is_tensor = value.is_object() && value.contains("dtype");
    if (is_tensor) tensors[name] = ToTensor(value);
  }
  return tensors;
}

}  // namespace

std::vector<GoldenCase> ReadGoldenCases(absl::string_view file) {
  return ReadGoldenCasesAt(absl::StrCat("tests/golden/data/", file));
}

std::vector<GoldenCase> ReadGoldenCasesAt(const std::string& path) {
  std::ifstream stream(path);
  MUSTER_CHECK(stream.good());
  const nlohmann::json json = nlohmann::json::parse(stream);
  std::vector<GoldenCase> cases;
  for (const nlohmann::json& one : json.at("cases")) {
    cases.push_back({one.at("name").get<std::string>(), one.at("config"),
                     ToTensors(one.at("inputs")), ToTensors(one.at("outputs")),
                     one});
  }
  MUSTER_CHECK(!cases.empty());
  return cases;
}

std::string DescribeDifference(const Tensor& actual, const Tensor& expected,
                               double tolerance) {
  if (actual.dtype() != expected.dtype() ||
      actual.shape() != expected.shape()) {
    return absl::StrCat("is ", actual.type().ToString(), ", expected ",
                        expected.type().ToString());
  }
  if (actual.dtype() == DType::kString) {
    return BitwiseEqual(actual, expected)
               ? ""
               : absl::StrCat("is ", actual.DebugString(), ", expected ",
                              expected.DebugString());
  }
  double worst = tolerance;
  std::string difference;
  for (int64_t i = 0; i < actual.element_count(); ++i) {
    const double a = actual.ElementAsDouble(i);
    const double e = expected.ElementAsDouble(i);
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    const double distance = std::abs(a - e) / std::max(1.0, std::abs(e));
    if (distance <= worst) continue;  // False for NaN.
    if (!std::isnan(distance)) worst = distance;
    difference = absl::StrCat("element ", i, " is ", a, ", expected ", e);
    if (std::isnan(distance)) break;
  }
  return difference;
}

}  // namespace muster
