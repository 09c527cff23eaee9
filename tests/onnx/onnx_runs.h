#ifndef TESTS_ONNX_ONNX_RUNS_H_
#define TESTS_ONNX_ONNX_RUNS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"
#include "nlohmann/json.hpp"

namespace muster {

// True if MUSTER_ONNXRUNTIME_PYTHON names a Python with onnxruntime. Otherwise
// a test calls GTEST_SKIP() with kNoOnnxruntime.
bool HasOnnxruntime();
inline constexpr char kNoOnnxruntime[] =
    "MUSTER_ONNXRUNTIME_PYTHON does not name a Python with onnxruntime: "
    "venv/bin/pip install onnxruntime, and "
    "MUSTER_ONNXRUNTIME_PYTHON=$PWD/venv/bin/python bazel test ...";

// ONNX files with the results of Muster. onnxruntime repeats the computations
// in a Python process, one file after the other.
class OnnxRuns {
 public:
  // Returns the path for the file of the next run.
  std::string NextPath() const;

  // Adds a run of the file at NextPath(). Tensors are in the order of the
  // model's inputs and outputs.
  void Add(const std::string& name, absl::Span<const Tensor> inputs,
           absl::Span<const Tensor> outputs);

  // Returns a line for each output that differs by more than 1e-4, and for each
  // file that onnxruntime refuses: "<name>: <why>". "no kernel: " precedes the
  // message if onnxruntime does not implement an operator for its types.
  std::vector<std::string> Run() const;

 private:
  nlohmann::json runs_ = nlohmann::json::array();
};

}  // namespace muster

#endif  // TESTS_ONNX_ONNX_RUNS_H_
