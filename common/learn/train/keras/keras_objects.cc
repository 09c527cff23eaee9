#include "common/learn/train/keras/keras_objects.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/variables/checkpoint_names.h"
#include "common/core/base/status_macros.h"
#include "common/io/checkpoint/object_graph.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/weight.h"
#include "common/learn/train/keras/keras_optimizer_layout.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

ObjectPath Below(ObjectPath path, absl::string_view name) {
  path.emplace_back(name);
  return path;
}

// Where the variables of a layer are; an empty path is that of the model.
ObjectPath PathOf(const Layer& layer) {
  return layer.path().empty() ? ModelPath() : VariablePath(layer.path());
}

// True if an object at `path` is not below that at `owner`.
bool IsElsewhere(const ObjectPath& path, const ObjectPath& owner) {
  return path.size() <= owner.size() ||
         !std::equal(owner.begin(), owner.end(), path.begin());
}

void AddOperations(const Layer& model, std::vector<ObjectReference>* found) {
  const bool is_sequential =
      dynamic_cast<const SequentialLayer*>(&model) != nullptr;
  const bool is_functional =
      dynamic_cast<const FunctionalLayer*>(&model) != nullptr;
  ObjectPath operations = PathOf(model);
  if (is_sequential) operations.emplace_back("_functional");
  operations.emplace_back("_operations");
  size_t index = is_sequential ? 1 : 0;
  for (const LayerPtr& layer : model.layers()) {
    if (layer->weights().empty()) {
      ++index;
      continue;
    }
    const ObjectPath target = PathOf(*layer);
    // The weights of `layer` are below another owner. If all layers of `model`
    // are such, only this reference makes an object for `model`.
    if (IsElsewhere(target, PathOf(model))) {
      found->push_back(
          {.path = Below(PathOf(model), target.back()), .target = target});
    }
    AddOperations(*layer, found);
    if (is_sequential || is_functional) {
      found->push_back(
          {.path = Below(operations, absl::StrCat(index)), .target = target});
    }
    ++index;
  }
}

// Keras keeps the optimizer inside that of the loss scale, if there is one.
ObjectPath PathOfInner(const proto::Optimizer& optimizer) {
  return optimizer.has_loss_scale() ? Below(OptimizerPath(), "inner_optimizer")
                                    : OptimizerPath();
}

// The slots and other variables of the optimizer at a path.
void AddOptimizerVariables(const KerasOptimizerLayout& layout,
                           const ObjectPath& optimizer,
                           std::vector<ObjectReference>* found) {
  const ObjectPath variables = Below(optimizer, "_variables");
  const auto add = [&](absl::string_view attribute, size_t number,
                       const ObjectPath& target) {
    found->push_back({.path = Below(optimizer, attribute), .target = target});
    found->push_back(
        {.path = Below(variables, absl::StrCat(number)), .target = target});
  };
  add("_iterations", layout.kIterations, IterationsPath());
  if (layout.learning_rate.has_value()) {
    add("_learning_rate", *layout.learning_rate, LearningRatePath());
  }
  if (layout.momentum_product.has_value()) {
    add("_u_product", *layout.momentum_product, MomentumProductPath());
  }
  for (const KerasSlot& slot : layout.slots) {
    const ObjectPath list = Below(optimizer, slot.attribute);
    for (const ObjectPath& path :
         {Below(list, absl::StrCat(slot.weight_index)),
          Below(variables, absl::StrCat(slot.number))}) {
      found->push_back({.path = path,
                        .target = VariablePath(slot.variable),
                        .slot = slot.slot,
                        .optimizer = OptimizerPath()});
    }
  }
}

}  // namespace

std::vector<ObjectReference> KerasObjectsOf(const Layer& model) {
  std::vector<ObjectReference> found;
  for (const Weight& weight : model.weights()) {
    ObjectPath target = VariablePath(weight.name());
    ObjectPath path = target;
    path.back().insert(0, "_");
    found.push_back({std::move(path), std::move(target)});
  }
  AddOperations(model, &found);
  return found;
}

absl::StatusOr<std::vector<ObjectReference>> KerasOptimizerObjectsOf(
    const Layer& model, const proto::Optimizer& optimizer) {
  ASSIGN_OR_RETURN(const KerasOptimizerLayout layout,
                   KerasOptimizerLayoutOf(model, optimizer));
  std::vector<ObjectReference> found;
  const ObjectPath inner = PathOfInner(optimizer);
  AddOptimizerVariables(layout, inner, &found);
  for (const ObjectPath& path : {OptimizerPath(), inner}) {
    const ObjectPath trained = Below(path, "_trainable_variables");
    size_t index = 0;
    for (const Weight& weight : TrainableOf(model.weights())) {
      found.push_back({.path = Below(trained, absl::StrCat(index++)),
                       .target = VariablePath(weight.name())});
    }
    if (path == inner) break;
  }
  const ObjectPath of_model = Below(ModelPath(), OptimizerPath().back());
  bool is_layer = false;
  for (const Weight& weight : model.weights()) {
    is_layer |= VariablePath(weight.name())[1] == of_model.back();
  }
  if (!is_layer) found.push_back({.path = of_model, .target = OptimizerPath()});
  return found;
}

}  // namespace muster
