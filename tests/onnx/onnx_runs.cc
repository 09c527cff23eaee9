#include "tests/onnx/onnx_runs.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace muster {
namespace {

using nlohmann::json;

const char* Python() {
  const char* const python = std::getenv("MUSTER_ONNXRUNTIME_PYTHON");
  return python == nullptr ? "" : python;
}

// JSON has neither NaN nor infinity.
json NumberOf(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

json TensorJson(const Tensor& tensor) {
  json values = json::array();
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    if (IsFloating(tensor.dtype())) {
      values.push_back(NumberOf(tensor.ElementAsDouble(i)));
    } else {
      values.push_back(static_cast<int64_t>(tensor.ElementAsDouble(i)));
    }
  }
  const auto dims = tensor.shape().dims();
  return {{"dtype", DTypeString(tensor.dtype())},
          {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
          {"values", std::move(values)}};
}

json TensorsJson(absl::Span<const Tensor> tensors) {
  json list = json::array();
  for (const Tensor& tensor : tensors) list.push_back(TensorJson(tensor));
  return list;
}

}  // namespace

bool HasOnnxruntime() { return *Python() != '\0'; }

std::string OnnxRuns::NextPath() const {
  return absl::StrCat(testing::TempDir(), "/", runs_.size(), ".onnx");
}

void OnnxRuns::Add(const std::string& name, absl::Span<const Tensor> inputs,
                   absl::Span<const Tensor> outputs) {
  runs_.push_back({{"name", name},
                   {"model", NextPath()},
                   {"inputs", TensorsJson(inputs)},
                   {"outputs", TensorsJson(outputs)}});
}

std::vector<std::string> OnnxRuns::Run() const {
  const std::string runs = testing::TempDir() + "/runs.json";
  const std::string lines_path = testing::TempDir() + "/lines.txt";
  std::ofstream(runs) << runs_;
  const std::string command = absl::StrCat(
      Python(), " -B tests/onnx/run_onnx.py ", runs, " > ", lines_path);
  std::vector<std::string> lines;
  if (std::system(command.c_str()) != 0) lines.push_back(command + " failed");
  std::ifstream file(lines_path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

}  // namespace muster
