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
  std::string variable;  // Name of the whole variable.
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
    // Has the dtype and shape of the rows. A slot of a whole variable may have
    // another shape.
    Tensor value;
    // True if `value` covers only the elements of this process's ElementShares,
    // as a vector. Checkpoints contain no such slots.
    bool is_share = false;
  };

  Tensor value;
  std::vector<Slot> slots;
  int64_t update_count = 0;  // Gradients taken.
};

// Adds the state of `rows` to a checkpoint, under the names of
// checkpoint_names.h. The caller writes all parts of a variable, in any shards.
//   kInvalidArgument  the rows are not in the variable, or a tensor has another
//                     type than they have
//   others            as TensorBundleWriter
absl::Status WriteVariableState(const VariableRows& rows,
                                const VariableState& state,
                                TensorBundleWriter* writer);

// Returns the key of the tensor with the value of `variable`: the key of
// checkpoint_names.h or, if TensorFlow wrote the checkpoint, the key that its
// object graph gives to this variable of a Keras model. In an object graph, the
// lookup tries in this order:
//   - the object at model/<name>, as of a subclassed model; an attribute may
//     begin with an underscore ("dense/kernel" is model/dense/_kernel)
//   - the variable that was called <name> or <model>/<name>, as of functional
//     and Sequential models
//   kNotFound            the checkpoint lacks the variable
//   kFailedPrecondition  several variables there are called like this one
//   others               as ObjectGraph::ReadFrom()
absl::StatusOr<std::string> FindVariableValue(const TensorBundleReader& reader,
                                              absl::string_view variable);

// Returns the state of `rows`, for any sharding of the checkpoint. With
// `values_only`, or if the checkpoint has only values, there are no slots and
// the count is 0.
//   kInvalidArgument  it has another type in the checkpoint
//   others            as FindVariableValue() and TensorBundleReader
absl::StatusOr<VariableState> ReadVariableState(
    const TensorBundleReader& reader, const VariableRows& rows,
    bool values_only);

// Returns false if restoring the checkpoint leaves a variable unchanged: the
// state of an optimizer (VariableSpec::is_optimizer_state) that the checkpoint
// lacks, or with `values_only`.
bool IsRestored(const TensorBundleReader& reader,
                const proto::VariableSpec& spec, bool values_only);

// Checks that the checkpoint has all of these variables, with these types. One
// error covers all problems and names the first few variables.
//   kNotFound         variables are missing; suggests similar names
//   kInvalidArgument  no variable is missing, but some have another type
//   others            as FindVariableValue()
absl::Status CheckVariables(const TensorBundleReader& reader,
                            absl::Span<const VariableRows> variables);

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_VARIABLE_STATE_H_
