#include "common/compute/variables/program_constraint.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/compute/programs/compiled/compiled_program.h"
#include "common/compute/programs/program.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"

namespace muster::internal {
namespace {

class Projection {
 public:
  explicit Projection(std::unique_ptr<CompiledProgram> program,
                      const TensorType& type)
      : program_(std::move(program)),
        before_(Tensor::Full(type.dtype, type.shape, 0)) {}

  absl::Status Run(float* variable) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const auto count = before_.element_count();
    std::copy_n(variable, count, before_.mutable_flat<float>().data());
    RETURN_IF_ERROR(RunLocked());
    std::copy_n(after_.flat<float>().data(), count, variable);
    return absl::OkStatus();
  }
  absl::Status RunOnZeros() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return RunLocked();
  }

 private:
  absl::Status RunLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const Tensor* const input = &before_;
    Tensor* const output = &after_;
    return program_->Run({&input, 1}, {&output, 1});
  }

  absl::Mutex mutex_;
  const std::unique_ptr<CompiledProgram> program_ ABSL_PT_GUARDED_BY(mutex_);
  Tensor before_ ABSL_GUARDED_BY(mutex_);
  Tensor after_ ABSL_GUARDED_BY(mutex_);
};

// The projections of this process, by their programs.
class Projections {
 public:
  absl::StatusOr<Projection*> Get(const std::string& encoded)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    std::unique_ptr<Projection>& found = projections_[encoded];
    if (found == nullptr) {
      ASSIGN_OR_RETURN(const Program program, Program::Decode(encoded));
      ASSIGN_OR_RETURN(
          auto compiled,
          CompiledProgram::Create(program, program.types.inputs,
                                  /*is_gradient=*/false, /*thread_count=*/1));
      found = std::make_unique<Projection>(std::move(compiled),
                                           program.types.inputs.front());
    }
    return found.get();
  }

 private:
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::unique_ptr<Projection>> projections_
      ABSL_GUARDED_BY(mutex_);
};

Projections& TheProjections() {
  static auto* const projections = new Projections;
  return *projections;
}

}  // namespace

absl::Status CheckProgramConstraint(const std::string& encoded,
                                    const Shape& shape) {
  ASSIGN_OR_RETURN(const Program program, Program::Decode(encoded));
  const TensorType type = {DType::kFloat32, shape};
  const ProgramTypes expected = {{type}, {type}};
  if (program.types == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("program ", program.name,
                   " is no constraint of a variable; expected one input and "
                   "one output ",
                   type.ToString()));
}

absl::Status PrepareProgramConstraint(const std::string& encoded) {
  ASSIGN_OR_RETURN(Projection* const projection, TheProjections().Get(encoded));
  return projection->RunOnZeros();
}

void ApplyProgramConstraint(const std::string& encoded, float* variable) {
  absl::StatusOr<Projection*> projection = TheProjections().Get(encoded);
  absl::Status status = projection.status();
  if (status.ok()) status = (*projection)->Run(variable);
  if (status.ok()) return;
  LOG(ERROR) << "an update that has begun cannot be finished: "
             << status.message();
  std::abort();
}

}  // namespace muster::internal
