#ifndef COMMON_COMPUTE_VARIABLES_INITIALIZER_H_
#define COMMON_COMPUTE_VARIABLES_INITIALIZER_H_

#include <memory>

namespace muster {

namespace proto {
class Initializer;
}  // namespace proto

// How the first value of a variable is chosen. The functions in
// common/learn/nn/initializers.h make them. A value: cheap to copy, immutable.
//
// Equivalent to: keras.initializers.Initializer.
class Initializer {
 public:
  Initializer();  // Zeros.
  explicit Initializer(const proto::Initializer& definition);

  // The message for the process that creates the variable.
  const proto::Initializer& definition() const { return *definition_; }

 private:
  std::shared_ptr<const proto::Initializer> definition_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_INITIALIZER_H_
