#ifndef COMMON_LEARN_TRAIN_ONNX_EXPORT_ONNX_H_
#define COMMON_LEARN_TRAIN_ONNX_EXPORT_ONNX_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/layer.h"
#include "common/learn/train/onnx/inference_graph.h"

namespace muster {

namespace proto {
class OnnxModel;
}  // namespace proto

// The version of ONNX's operators: the first one with LayerNormalization, which
// onnxruntime has known since 1.12. Later ones add nothing that a graph of
// Muster needs.
inline constexpr int64_t kOnnxOperatorSet = 17;
// The version of the file format that came with it.
inline constexpr int64_t kOnnxFormatVersion = 8;

// The parts of an ONNX model.
struct OnnxModelParts {
  const Layer& layers;           // Names the inputs and outputs.
  const Graph& graph;            // Inputs -> outputs, without training.
  const VariableValues& values;  // Of the weights.
  std::string muster_version;
  // A file is one message of protobuf, which has less than 2 GiB.
  int64_t bytes_max = (int64_t{1} << 31) - 1;
};

// Returns the model:
//   - Inputs and outputs have the names of the layers that they belong to in a
//     Sequential or functional model. Otherwise they are "x" and "output", with
//     a number if there are several.
//   - The first axis of each is "batch", which each run chooses; another
//     unknown extent is "<name>_dim_<axis>".
//   - Images are [batch, height, width, channels], as in Muster. Inside, they
//     have their channels first from the first convolution on.
//   - 16-bit floats are float32.
//
//   kUnimplemented      an op has no translation; names op, node and layer, and
//                       what can be done
//   kResourceExhausted  the weights have more than `bytes_max` bytes
//   others              as PrepareForExport()
absl::StatusOr<proto::OnnxModel> ToOnnxModel(const OnnxModelParts& parts);

// Writes the model to an .onnx file. Replaces the file atomically.
//   as ToOnnxModel() and ReplaceFile()
absl::Status WriteOnnxModel(Disk* disk, const std::string& path,
                            const OnnxModelParts& parts);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_ONNX_EXPORT_ONNX_H_
