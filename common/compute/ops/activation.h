#ifndef COMMON_COMPUTE_OPS_ACTIVATION_H_
#define COMMON_COMPUTE_OPS_ACTIVATION_H_

#include "common/compute/graph/graph_builder.h"

// Activations, element by element or, for softmax, over the last axis. Each is
// computed so that it neither overflows nor cancels.
namespace muster {

Value Relu(Value x);   // Of integers too. The gradient at 0 is 0.
Value Relu6(Value x);  // Of integers too. The gradient at 0 and 6 is 0.
Value LeakyRelu(Value x, double alpha = 0.2);
// alpha * (exp(x) - 1) for x < 0.
Value Elu(Value x, double alpha = 1.0);
Value Sigmoid(Value x);
Value Tanh(Value x);
Value Softplus(Value x);  // log(1 + exp(x))
Value Softsign(Value x);  // x / (1 + |x|)

struct GeluOptions {
  bool approximate = false;  // By tanh.
};
Value Gelu(Value x, GeluOptions options = {});

Value Softmax(Value x);
Value LogSoftmax(Value x);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_ACTIVATION_H_
