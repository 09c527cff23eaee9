#ifndef COMMON_COMPUTE_OPS_ACTIVATION_H_
#define COMMON_COMPUTE_OPS_ACTIVATION_H_

#include "common/compute/graph/graph_builder.h"

// Activations: elementwise, except softmax, which works on the last axis.
// Numerically stable: they neither overflow nor cancel.
namespace muster {

Value Relu(Value x);   // Integers too. The gradient at 0 is 0.
Value Relu6(Value x);  // Integers too. The gradient at 0 and 6 is 0.
Value LeakyRelu(Value x, double alpha = 0.2);
// alpha * (exp(x) - 1) for x < 0.
Value Elu(Value x, double alpha = 1.0);
Value Sigmoid(Value x);
Value Tanh(Value x);
Value Softplus(Value x);  // log(1 + exp(x))
Value Softsign(Value x);  // x / (1 + |x|)

struct GeluOptions {
  bool approximate = false;  // Use the tanh approximation.
};
Value Gelu(Value x, GeluOptions options = {});

Value Softmax(Value x);
Value LogSoftmax(Value x);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_ACTIVATION_H_
