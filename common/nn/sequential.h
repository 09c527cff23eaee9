#ifndef COMMON_NN_SEQUENTIAL_H_
#define COMMON_NN_SEQUENTIAL_H_

#include <string>
#include <vector>

#include "common/nn/layer.h"

namespace muster {

struct SequentialOptions {
  std::string name = "";
};

// Layers one after another. Is a layer itself and may stand inside another.
class SequentialLayer : public Layer {
 public:
  SequentialLayer(const std::vector<LayerPtr>& layers,
                  const SequentialOptions& options);

 protected:
  Value Call(Value x, const CallContext& context) override;
};

// Equivalent to: keras.Sequential.
LayerPtr Sequential(const std::vector<LayerPtr>& layers,
                    const SequentialOptions& options = {});

}  // namespace muster

#endif  // COMMON_NN_SEQUENTIAL_H_
