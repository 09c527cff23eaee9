#ifndef COMMON_COMPUTE_VARIABLES_VARIABLE_STATE_H_
#define COMMON_COMPUTE_VARIABLES_VARIABLE_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace proto {
class VariableSpec;
}  // namespace proto

class TensorBundleReader;
class TensorBundleWriter;

// Rows of a variable: [begin, end) of the outermost
// dimension. A scalar has one.
struct VariableRows {
  std::string variable;  // The whole one's name.
  TensorType full_type;
  int64_t begin = 0;
  int64_t end = 0;

  static VariableRows All(absl::string_view variable, const TensorType& type);
};

// The state of these rows.
struct VariableState {
  // A slot of the optimizer: "momentum", "velocity", ...
  struct Slot {
    std::string name;
    // Of the dtype and shape of the rows. A slot of a whole variable may have
    // a shape of its own.
    Tensor value;
  };

  Tensor value;
  std::vector<Slot> slots;
  int64_t update_count = 0;  // Gradients taken.
};

// Adds the state of `rows` to a checkpoint, under the names of
// checkpoint_names.h. All parts of a variable are to be written, in any shards.
//   kInvalidArgument  the rows are not in the variable, or a tensor has another
//                     type than they have
//   others            as TensorBundleWriter
absl::Status WriteVariableState(const VariableRows& rows,
                                const VariableState& state,
                                TensorBundleWriter* writer);

// The tensor that holds the value of `variable`: the one that
// checkpoint_names.h says or, where TensorFlow wrote the checkpoint, the one
// that its object graph gives a Keras model for this variable. There, in this
// order:
//   - the object at model/<name>, as of a subclassed model; an attribute may
//     begin with an underscore ("dense/kernel" is model/dense/_kernel)
//   - the variable that was called <name> or <model>/<name>, as of functional
//     and Sequential models
//   kNotFound            the checkpoint lacks the variable
//   kFailedPrecondition  several variables there are called like this one
//   others               as ObjectGraph::ReadFrom()
absl::StatusOr<std::string> FindVariableValue(const TensorBundleReader& reader,
                                              absl::string_view variable);

// The state of `rows`, however the variable was sharded when it was written.
// With `values_only`, or from a checkpoint that holds no more, there are no
// slots and the count is 0.
//   kInvalidArgument  it has another type there
//   others            as FindVariableValue() and TensorBundleReader
absl::StatusOr<VariableState> ReadVariableState(
    const TensorBundleReader& reader, const VariableRows& rows,
    bool values_only);

// Returns false if a variable stays as it is when the checkpoint is restored:
// the state of an optimizer (VariableSpec::is_optimizer_state) that is not
// there, or with `values_only`.
bool IsRestored(const TensorBundleReader& reader,
                const proto::VariableSpec& spec, bool values_only);

// True if the checkpoint has all of these variables, of these types. One error
// tells what is wrong with all, the first few by name.
//   kNotFound         variables are missing; names what is spelled alike
//   kInvalidArgument  none is, but some have another type
//   others            as FindVariableValue()
absl::Status CheckVariables(const TensorBundleReader& reader,
                            absl::Span<const VariableRows> variables);

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_VARIABLE_STATE_H_
