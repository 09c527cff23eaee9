#ifndef COMMON_COMPUTE_PROGRAMS_COMPILED_COMPILED_PROGRAM_H_
#define COMMON_COMPUTE_PROGRAMS_COMPILED_COMPILED_PROGRAM_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/compute/programs/program.h"
#include "common/core/pjrt/pjrt_client.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// One variant of a program, or of its gradient, that the plugin of this process
// has compiled. Not thread-safe; objects of the same module share the
// executable.
class CompiledProgram {
 public:
  // Returns the variant for inputs of these fully known types. Takes the
  // executable of another object of this process if there is one.
  //   kInvalidArgument  the program was not exported for these types, or the
  //                     module has another number of outputs
  //   other codes       as CompileProgram()
  static absl::StatusOr<std::unique_ptr<CompiledProgram>> Create(
      const Program& program, absl::Span<const TensorType> inputs,
      bool is_gradient, int thread_count);

  // Reads the inputs in place, and replaces the outputs by tensors with the
  // types of the variant, which own memory of PJRT where the host can read it.
  //   kDeadlineExceeded  the program has run for an hour; all later calls fail
  //                      with this error
  //   other codes        of the plugin
  // Each message names the program.
  absl::Status Run(absl::Span<const Tensor* const> inputs,
                   absl::Span<Tensor* const> outputs);

 private:
  CompiledProgram(std::string name, std::vector<TensorType> output_types,
                  std::shared_ptr<PjrtClient> client,
                  std::shared_ptr<const PjrtExecutable> executable)
      : name_(std::move(name)),
        output_types_(std::move(output_types)),
        client_(std::move(client)),
        executable_(std::move(executable)) {}
  absl::Status Execute(absl::Span<const Tensor* const> inputs,
                       absl::Span<Tensor* const> outputs);

  const std::string name_;
  const std::vector<TensorType> output_types_;
  const std::shared_ptr<PjrtClient> client_;
  const std::shared_ptr<const PjrtExecutable> executable_;
  absl::Status timeout_;
};

// Runs a program once on one thread. Compiles it unless this process uses the
// same module already.
//   errors  as Program::InferOutputs(), CompiledProgram::Create() and Run()
absl::StatusOr<std::vector<Tensor>> EvaluateProgram(
    const Program& program, absl::Span<const Tensor> inputs);

}  // namespace muster

#endif  // COMMON_COMPUTE_PROGRAMS_COMPILED_COMPILED_PROGRAM_H_
