#include "common/learn/nn/masks.h"

#include "common/compute/graph/graph_builder.h"

namespace muster {

Value Masks::Find(Value x) const {
  const auto found = masks_.find(Key(x));
  return found == masks_.end() ? Value() : found->second;
}

void Masks::Set(Value x, Value mask) {
  if (x.ok() && mask.ok()) masks_[Key(x)] = mask;
}

Masks::ValueKey Masks::Key(Value x) {
  return {x.builder(), x.output().node, x.output().output};
}

}  // namespace muster
