#include "common/learn/nn/wrapper.h"

#include <algorithm>
#include <vector>

#include "common/learn/nn/layer.h"
#include "common/learn/nn/weight.h"

namespace muster {

std::vector<Weight> WrapperLayer::weights() const {
  std::vector<Weight> all = own_weights();
  for (const Weight& weight : Layer::weights()) {
    const bool is_there =
        std::any_of(all.begin(), all.end(), [&](const Weight& other) {
          return other.identity() == weight.identity();
        });
    if (!is_there) all.push_back(weight);
  }
  return all;
}

}  // namespace muster
