#include "bench/mlp_step.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/or_die.h"
#include "common/compute/autodiff/gradients.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

void CreateVariable(const std::string& name, const std::vector<int>& dims,
                    VariableStore* store) {
  proto::VariableSpec spec;
  spec.set_name(name);
  spec.set_dtype(proto::DT_FLOAT);
  for (const int dim : dims) spec.mutable_shape()->add_dim(dim);
  spec.set_trainable(true);
  if (dims.size() == 2) {
    // Keras' GlorotUniform.
    auto* const glorot = spec.mutable_initializer()->mutable_variance_scaling();
    glorot->set_scale(1);
    glorot->set_mode(proto::Initializer::VarianceScaling::FAN_AVG);
    glorot->set_distribution(proto::Initializer::VarianceScaling::UNIFORM);
  } else {
    spec.mutable_initializer()->mutable_constant();
  }
  OkOrDie(store->Create(spec));
}

}  // namespace

Graph TraceMlpStep(VariableStore* store) {
  GraphBuilder builder(&BuiltinOps(), "mlp_step");
  Value activation = builder.Parameter(
      "x", {DType::kFloat32, {Shape::kUnknown, kMlpWidths[0]}});
  const Value labels =
      builder.Parameter("labels", {DType::kInt64, {Shape::kUnknown}});
  std::vector<VariableHandle> variables;
  for (int layer = 0; layer < kMlpLayerCount; ++layer) {
    const int in = kMlpWidths[layer];
    const int out = kMlpWidths[layer + 1];
    variables.push_back(
        {absl::StrCat("kernel_", layer), {DType::kFloat32, {in, out}}});
    variables.push_back(
        {absl::StrCat("bias_", layer), {DType::kFloat32, {out}}});
    CreateVariable(absl::StrCat("kernel_", layer), {in, out}, store);
    CreateVariable(absl::StrCat("bias_", layer), {out}, store);
    const Value kernel = ReadVariable(builder, variables[2 * layer]);
    const Value bias = ReadVariable(builder, variables[2 * layer + 1]);
    activation = MatMul(activation, kernel) + bias;
    if (layer + 1 < kMlpLayerCount) activation = Relu(activation);
  }
  const Value loss = Mean(SparseSoftmaxCrossEntropy(activation, labels));
  std::vector<std::string> names;
  for (const VariableHandle& variable : variables) {
    names.push_back(variable.name);
  }
  const std::vector<Gradient> gradients = VariableGradients(loss, names);
  for (size_t i = 0; i < variables.size(); ++i) {
    ApplyGradient(variables[i], gradients[i].dense);
  }
  builder.AddResult(loss);
  return OrDie(std::move(builder).Build());
}

}  // namespace muster
