#include "common/learn/train/checkpoints/keras_objects.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/variables/checkpoint_names.h"
#include "common/io/checkpoint/object_graph.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/sequential.h"
#include "common/learn/nn/weight.h"

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
    if (is_sequential || is_functional) {
      found->push_back({.path = Below(operations, absl::StrCat(index)),
                        .target = PathOf(*layer)});
    }
    AddOperations(*layer, found);
    ++index;
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

}  // namespace muster
