#ifndef COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_H_
#define COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_H_

#include <memory>

namespace muster {
namespace proto {
class Optimizer;
}  // namespace proto

// An optimizer and its hyperparameters, as Adam() and the other functions of
// optimizers.h return it. They are validated when the optimizer is used
// (UpdateRule::Create()).
//
// A value, cheap to copy. Thread-safe: immutable.
class Optimizer {
 public:
  // No optimizer.
  Optimizer();
  // Implicit, because the message is the form of an optimizer in job files, on
  // the wire and in checkpoints.
  Optimizer(proto::Optimizer message);

  // Returns false for Optimizer().
  bool has_rule() const;

  const proto::Optimizer& message() const { return *message_; }

 private:
  std::shared_ptr<const proto::Optimizer> message_;  // Never null.
};

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_OPTIMIZER_H_
