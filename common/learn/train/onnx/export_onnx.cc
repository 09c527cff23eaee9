#include "common/learn/train/onnx/export_onnx.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/io/storage/disk.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/train/onnx/graph_translator.h"
#include "common/learn/train/onnx/inference_graph.h"
#include "common/learn/train/onnx/onnx_graph.h"
#include "proto/onnx.pb.h"

namespace muster {
namespace {

// The names of the inputs; empty if they have none.
std::vector<std::string> InputNames(const Layer& layer) {
  std::vector<std::string> names;
  if (const auto* model = dynamic_cast<const FunctionalLayer*>(&layer)) {
    for (const LayerOutput& input : model->inputs()) {
      names.push_back(input.call()->layer->name());
    }
  } else if (const auto* model = dynamic_cast<const SequentialLayer*>(&layer);
             model != nullptr && model->input() != nullptr) {
    names.push_back(model->input()->name());
  }
  return names;
}

std::vector<std::string> OutputNames(const Layer& layer) {
  const auto* const model = dynamic_cast<const SequentialLayer*>(&layer);
  if (model == nullptr || model->layers().empty()) return layer.output_names();
  return OutputNames(*model->layers().back());
}

// Returns name `i` of `names`, or one after `kind`.
std::string NameAt(const std::vector<std::string>& names, size_t i,
                   size_t count, absl::string_view kind) {
  if (i < names.size() && !names[i].empty()) return names[i];
  return count == 1 ? std::string(kind) : absl::StrCat(kind, "_", i);
}

std::vector<std::string> ExtentNames(absl::string_view name,
                                     const Shape& shape) {
  std::vector<std::string> names;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    names.push_back(axis == 0 ? "batch" : absl::StrCat(name, "_dim_", axis));
  }
  return names;
}

absl::Status CheckType(absl::string_view what, absl::string_view name,
                       const TensorType& type) {
  if (OnnxDTypeOf(type.dtype) != proto::OnnxTensor::UNDEFINED) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat(
      "cannot export to ONNX: ", what, " ", name, " is ", type.ToString(),
      "; expected numbers. Export the model behind the layers that take or "
      "return strings"));
}

absl::Status CheckSize(int64_t bytes, int64_t bytes_max) {
  if (bytes <= bytes_max) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot export to ONNX: the model has ", bytes,
                   " bytes, an ONNX file at most ", bytes_max,
                   "; export its parts as separate models"));
}

int64_t SizeOf(const VariableValues& values) {
  int64_t bytes = 0;
  for (const auto& [name, value] : values) {
    bytes += static_cast<int64_t>(value.size_bytes());
  }
  return bytes;
}

absl::Status AddInputs(const OnnxModelParts& parts, const Graph& graph,
                       OnnxGraph* target, GraphTranslator* translator) {
  const std::vector<std::string> names = InputNames(parts.layers);
  const size_t count = graph.parameters.size();
  for (size_t i = 0; i < count; ++i) {
    const TensorType& type = graph.nodes[graph.parameters[i]].outputs[0];
    const std::string name = target->UniqueName(NameAt(names, i, count, "x"));
    RETURN_IF_ERROR(CheckType("input", name, type));
    *target->message().add_input() =
        OnnxDeclaration(name, type, ExtentNames(name, type.shape));
    OnnxValue value;
    value.names.emplace(InOrder(type.shape.rank()), name);
    translator->Bind(static_cast<int>(i), std::move(value));
  }
  return absl::OkStatus();
}

absl::Status AddOutputs(const Graph& graph,
                        const std::vector<std::string>& names,
                        OnnxGraph* target, GraphTranslator* translator) {
  for (size_t i = 0; i < names.size(); ++i) {
    const NodeOutput result = graph.results[i];
    const TensorType& type = graph.TypeOf(result);
    RETURN_IF_ERROR(CheckType("output", names[i], type));
    ASSIGN_OR_RETURN(const std::string value, translator->NameOf(result));
    proto::OnnxNode& node = *target->message().add_node();
    node.set_name(names[i]);
    node.set_op_type("Identity");
    node.add_input(value);
    node.add_output(names[i]);
    *target->message().add_output() =
        OnnxDeclaration(names[i], type, ExtentNames(names[i], type.shape));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<proto::OnnxModel> ToOnnxModel(const OnnxModelParts& parts) {
  RETURN_IF_ERROR(CheckSize(SizeOf(parts.values), parts.bytes_max));
  ASSIGN_OR_RETURN(const Graph graph,
                   PrepareForExport(parts.graph, parts.values));
  OnnxGraph target(NameAt({parts.layers.name()}, 0, 1, "model"));
  GraphTranslator translator(&graph, &target);
  RETURN_IF_ERROR(AddInputs(parts, graph, &target, &translator));
  // Before names of values inside are given.
  const std::vector<std::string> layer_names = OutputNames(parts.layers);
  const size_t count = graph.results.size();
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) {
    names.push_back(target.UniqueName(NameAt(layer_names, i, count, "output")));
  }
  translator.Translate();
  RETURN_IF_ERROR(AddOutputs(graph, names, &target, &translator));
  DropUnused(&target.message());

  proto::OnnxModel model;
  model.set_ir_version(kOnnxFormatVersion);
  model.set_producer_name("Muster");
  model.set_producer_version(parts.muster_version);
  *model.mutable_graph() = std::move(target.message());
  proto::OnnxOperatorSet& operators = *model.add_opset_import();
  operators.set_domain("");
  operators.set_version(kOnnxOperatorSet);
  return model;
}

absl::Status WriteOnnxModel(Disk* disk, const std::string& path,
                            const OnnxModelParts& parts) {
  ASSIGN_OR_RETURN(const proto::OnnxModel model, ToOnnxModel(parts));
  RETURN_IF_ERROR(
      CheckSize(static_cast<int64_t>(model.ByteSizeLong()), parts.bytes_max));
  return ReplaceFile(disk, path, model.SerializeAsString());
}

}  // namespace muster
