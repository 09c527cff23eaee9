#ifndef COMMON_DATASET_COMPONENTS_H_
#define COMMON_DATASET_COMPONENTS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// The names of components belong to the definition of a dataset. Elements are
// lists of tensors, in the order of the names.

// Returns the names as errors list them: "age", "city" and 1 without a name.
// `names` is empty, or has one for each of `component_count` components.
std::string ComponentNamesToString(absl::Span<const std::string> names,
                                   size_t component_count);

// Returns the position of the component of this name.
//   kInvalidArgument  there is none, or the name is ""; lists the names
absl::StatusOr<int> FindComponentIn(absl::Span<const std::string> names,
                                    size_t component_count,
                                    absl::string_view name);

//   kInvalidArgument  two names are equal, and not ""
absl::Status CheckUniqueNames(absl::Span<const std::string> names);

// What the elements of a dataset are.
//
// Equivalent to: tf.data.Dataset.element_spec.
struct ElementSpec {
  std::vector<TensorType> types;
  // Empty: no component has a name. Otherwise one for each component; "" for
  // one without, as labels often are.
  std::vector<std::string> names = {};

  //   as FindComponentIn()
  absl::StatusOr<int> Find(absl::string_view name) const {
    return FindComponentIn(names, types.size(), name);
  }

  // For functions of types alone.
  operator absl::Span<const TensorType>() const { return types; }
};

// A component of a dataset in memory.
struct NamedTensor {
  std::string name;  // "": none.
  Tensor value;
};

// A component that a traced function makes.
struct NamedValue {
  std::string name;  // "": none.
  Value value;
};

// The components of an element, for a traced function.
class NamedValues {
 public:
  // All are borrowed. `names` is that of an ElementSpec.
  NamedValues(GraphBuilder* builder, absl::Span<const std::string> names,
              absl::Span<const Value> values)
      : builder_(builder), names_(names), values_(values) {}

  // Returns the component of this name. Reports a missing one to the builder
  // (kInvalidArgument, with the names there are) and returns Value().
  Value operator[](absl::string_view name) const;

  // All of them, for example to leave most as they are.
  absl::Span<const Value> values() const { return values_; }
  // Empty, or one for each.
  absl::Span<const std::string> names() const { return names_; }

 private:
  GraphBuilder* const builder_;
  const absl::Span<const std::string> names_;
  const absl::Span<const Value> values_;
};

}  // namespace muster

#endif  // COMMON_DATASET_COMPONENTS_H_
