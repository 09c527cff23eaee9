#include "common/compute/optimizers/optimizer_message.h"

namespace muster {

proto::Optimizer WithOptions(const OptimizerOptions& options) {
  proto::Optimizer optimizer;
  if (options.weight_decay.has_value()) {
    optimizer.set_weight_decay(*options.weight_decay);
  }
  if (options.clipnorm != 0) optimizer.set_clipnorm(options.clipnorm);
  if (options.clipvalue != 0) optimizer.set_clipvalue(options.clipvalue);
  if (options.global_clipnorm != 0) {
    optimizer.set_global_clipnorm(options.global_clipnorm);
  }
  return optimizer;
}

}  // namespace muster
