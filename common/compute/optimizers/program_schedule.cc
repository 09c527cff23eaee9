#include "common/compute/optimizers/program_schedule.h"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/compute/programs/compiled/compiled_program.h"
#include "common/compute/programs/program.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

using Schedule = proto::LearningRateSchedule;

// Evaluates one program. All variables ask for the same step, so the last rate
// is kept. Not thread-safe.
class ProgramSchedule {
 public:
  static absl::StatusOr<std::unique_ptr<ProgramSchedule>> Create(
      const std::string& encoded) {
    ASSIGN_OR_RETURN(const Program program, Program::Decode(encoded));
    const ProgramTypes expected = {{{DType::kInt32, {}}},
                                   {{DType::kFloat32, {}}}};
    if (program.types != expected) {
      return absl::InvalidArgumentError(
          absl::StrCat("program ", program.name,
                       " is no schedule; expected the input int32[] and the "
                       "output float32[]"));
    }
    auto schedule = std::make_unique<ProgramSchedule>();
    ASSIGN_OR_RETURN(
        schedule->program_,
        CompiledProgram::Create(program, expected.inputs,
                                /*is_gradient=*/false, /*thread_count=*/1));
    return schedule;
  }

  absl::StatusOr<float> At(int64_t step) {
    if (step == last_step_) return last_rate_;
    const auto input = Tensor::Scalar<int32_t>(static_cast<int32_t>(step));
    const Tensor* const inputs = &input;
    Tensor output;
    Tensor* const outputs = &output;
    RETURN_IF_ERROR(program_->Run({&inputs, 1}, {&outputs, 1}));
    last_step_ = step;
    last_rate_ = output.scalar<float>();
    return last_rate_;
  }

 private:
  std::unique_ptr<CompiledProgram> program_;
  int64_t last_step_ = -1;
  float last_rate_ = 0;
};

// The schedules of this process, by their programs. Thread-safe.
class ProgramSchedules {
 public:
  absl::StatusOr<float> At(const std::string& encoded, int64_t step)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    std::unique_ptr<ProgramSchedule>& found = schedules_[encoded];
    if (found == nullptr) {
      ASSIGN_OR_RETURN(found, ProgramSchedule::Create(encoded));
    }
    return found->At(step);
  }

 private:
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::unique_ptr<ProgramSchedule>> schedules_
      ABSL_GUARDED_BY(mutex_);
};

ProgramSchedules& TheSchedules() {
  static auto* const schedules = new ProgramSchedules;
  return *schedules;
}

absl::Status CheckProgram(const Schedule& schedule) {
  return TheSchedules().At(schedule.program().program(), 0).status();
}

float ProgramAt(const Schedule& schedule, int64_t step) {
  const absl::StatusOr<float> rate =
      TheSchedules().At(schedule.program().program(), step);
  if (rate.ok()) return *rate;
  LOG(ERROR) << "there is no learning rate: " << rate.status().message();
  std::abort();
}

}  // namespace

const ScheduleKind kProgramScheduleKind = {
    Schedule::kProgram, "ProgramSchedule",
    [] {
      Schedule schedule;
      schedule.mutable_program();
      return LearningRateSchedule(schedule);
    },
    CheckProgram, ProgramAt};

}  // namespace muster
