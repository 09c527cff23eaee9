#include "common/compute/optimizers/program_rule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/learning_rate.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/programs/compiled/compiled_program.h"
#include "common/compute/programs/program.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/place.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

constexpr absl::string_view kProgramRuleName = "program";
// Of an update program.
constexpr size_t kGradientInput = 0;
constexpr size_t kVariableInput = 1;
constexpr size_t kFirstSlotInput = 2;

// Part of an array of the gradient, and of the variable and its slots.
struct Segment {
  int64_t gradient_begin;
  int64_t variable_begin;
  int64_t count;
};

// Runs one variant of an update program on arrays of its own. Not thread-safe.
class UpdateRunner {
 public:
  //   errors  as CompiledProgram::Create()
  static absl::StatusOr<std::unique_ptr<UpdateRunner>> Create(
      const Program& program, const Program::Variant& variant) {
    ASSIGN_OR_RETURN(
        auto compiled,
        CompiledProgram::Create(program, variant.types.inputs,
                                /*is_gradient=*/false, /*thread_count=*/1));
    auto runner = std::make_unique<UpdateRunner>();
    runner->program_ = std::move(compiled);
    for (const TensorType& type : variant.types.inputs) {
      runner->inputs_.push_back(Tensor::Full(type.dtype, type.shape, 0));
    }
    runner->outputs_.resize(variant.types.outputs.size());
    return runner;
  }

  absl::Status Run() {
    std::vector<const Tensor*> inputs;
    for (const Tensor& input : inputs_) inputs.push_back(&input);
    std::vector<Tensor*> outputs;
    for (Tensor& output : outputs_) outputs.push_back(&output);
    return program_->Run(inputs, outputs);
  }

  // Updates the elements of the segments, which fit into the variant.
  absl::Status Update(int64_t step, float learning_rate,
                      absl::Span<const Segment> segments, const float* gradient,
                      float* variable, absl::Span<float* const> slots) {
    Gather(segments, gradient, &Segment::gradient_begin, kGradientInput);
    Gather(segments, variable, &Segment::variable_begin, kVariableInput);
    for (size_t i = 0; i < slots.size(); ++i) {
      Gather(segments, slots[i], &Segment::variable_begin, kFirstSlotInput + i);
    }
    inputs_[inputs_.size() - 2].mutable_flat<int32_t>()[0] =
        static_cast<int32_t>(step);
    inputs_.back().mutable_flat<float>()[0] = learning_rate;
    RETURN_IF_ERROR(Run());
    Scatter(segments, 0, variable);
    for (size_t i = 0; i < slots.size(); ++i) {
      Scatter(segments, 1 + i, slots[i]);
    }
    return absl::OkStatus();
  }

 private:
  void Gather(absl::Span<const Segment> segments, const float* from,
              int64_t Segment::*begin, size_t input) {
    float* to = inputs_[input].mutable_flat<float>().data();
    for (const Segment& segment : segments) {
      to = std::copy_n(from + segment.*begin, segment.count, to);
    }
  }
  void Scatter(absl::Span<const Segment> segments, size_t output, float* to) {
    const float* from = outputs_[output].flat<float>().data();
    for (const Segment& segment : segments) {
      std::copy_n(from, segment.count, to + segment.variable_begin);
      from += segment.count;
    }
  }

  std::unique_ptr<CompiledProgram> program_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
};

// The update of some variables. Thread-safe.
class UpdateProgram {
 public:
  UpdateProgram(Program program, std::vector<int64_t> element_counts)
      : program_(std::move(program)),
        element_counts_(std::move(element_counts)),
        idle_(element_counts_.size()) {}

  const Program& program() const { return program_; }
  bool is_elementwise() const {
    return !program_.types.inputs[kVariableInput].shape.IsFullyKnown();
  }
  // The shape of the variables, unless is_elementwise().
  const Shape& shape() const {
    return program_.types.inputs[kVariableInput].shape;
  }
  // The numbers of elements of the variants, in increasing order.
  absl::Span<const int64_t> element_counts() const { return element_counts_; }

  // Compiles all variants, and runs each once.
  //   errors  as CompiledProgram
  absl::Status Prepare() ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      if (is_ready_) return absl::OkStatus();
    }
    for (size_t i = 0; i < element_counts_.size(); ++i) {
      ASSIGN_OR_RETURN(auto runner, Take(i));
      RETURN_IF_ERROR(runner->Run());
      Return(i, std::move(runner));
    }
    absl::MutexLock lock(&mutex_);
    is_ready_ = true;
    return absl::OkStatus();
  }

  // Updates the elements of the segments with the smallest variant that has
  // room for `count`, the number of all.
  absl::Status Update(int64_t count, int64_t step, float learning_rate,
                      absl::Span<const Segment> segments, const float* gradient,
                      float* variable, absl::Span<float* const> slots) {
    const auto variant =
        static_cast<size_t>(std::lower_bound(element_counts_.begin(),
                                             element_counts_.end(), count) -
                            element_counts_.begin());
    MUSTER_CHECK(variant < element_counts_.size());
    ASSIGN_OR_RETURN(auto runner, Take(variant));
    RETURN_IF_ERROR(runner->Update(step, learning_rate, segments, gradient,
                                   variable, slots));
    Return(variant, std::move(runner));
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<std::unique_ptr<UpdateRunner>> Take(size_t variant) {
    {
      absl::MutexLock lock(&mutex_);
      if (!idle_[variant].empty()) {
        auto runner = std::move(idle_[variant].back());
        idle_[variant].pop_back();
        return runner;
      }
    }
    return UpdateRunner::Create(program_, program_.variants[variant]);
  }
  void Return(size_t variant, std::unique_ptr<UpdateRunner> runner) {
    absl::MutexLock lock(&mutex_);
    idle_[variant].push_back(std::move(runner));
  }

  const Program program_;
  const std::vector<int64_t> element_counts_;
  absl::Mutex mutex_;
  bool is_ready_ ABSL_GUARDED_BY(mutex_) = false;
  // By variant.
  std::vector<std::vector<std::unique_ptr<UpdateRunner>>> idle_
      ABSL_GUARDED_BY(mutex_);
};

// Of one optimizer.
using UpdatePrograms = std::vector<std::unique_ptr<UpdateProgram>>;

// True if one program updates every element of every variable.
bool IsUniform(const UpdatePrograms& programs) {
  return programs.front()->is_elementwise();
}

// Returns the program for variables of `shape`; null if there is none.
UpdateProgram* FindUpdate(const UpdatePrograms& programs, const Shape& shape) {
  for (const auto& program : programs) {
    if (program->shape() == shape) return program.get();
  }
  return nullptr;
}

class ProgramRule final : public PlainRule {
 public:
  ProgramRule(std::shared_ptr<const UpdatePrograms> programs,
              std::vector<SlotSpec> slots, muster::LearningRate learning_rate)
      : programs_(std::move(programs)),
        update_(IsUniform(*programs_) ? programs_->front().get() : nullptr),
        slots_(std::move(slots)),
        learning_rate_(std::move(learning_rate)) {}
  // The rule of one variable; `update` is null if there is none for it.
  ProgramRule(const ProgramRule& of_all, UpdateProgram* update)
      : programs_(of_all.programs_),
        update_(update),
        slots_(of_all.slots_),
        learning_rate_(of_all.learning_rate_) {}

  absl::string_view name() const override { return kProgramRuleName; }
  absl::Span<const SlotSpec> slots() const override { return slots_; }
  double LearningRate(int64_t step) const override {
    return learning_rate_.At(step);
  }
  bool needs_whole_variables() const override {
    return update_ == nullptr || !update_->is_elementwise();
  }
  std::shared_ptr<const UpdateRule> ForVariable(
      absl::string_view, const Shape& shape) const override {
    if (IsUniform(*programs_)) return nullptr;
    return std::make_shared<ProgramRule>(*this, FindUpdate(*programs_, shape));
  }

  absl::Status Prepare(const TensorType& type, Place place) const override {
    const std::string& name = programs_->front()->program().name;
    if (!place.is_host()) {
      return absl::UnimplementedError(absl::StrCat(
          name,
          " is an optimizer of the user's own, whose update runs on CPUs "
          "only; use an optimizer of Keras, or train without GPUs"));
    }
    if (update_ != nullptr && type.dtype == DType::kFloat32 &&
        (update_->is_elementwise() || update_->shape() == type.shape)) {
      return update_->Prepare();
    }
    return absl::InvalidArgumentError(
        absl::StrCat(name, " was not exported for a variable ", type.ToString(),
                     ". Its update needs whole variables: do not partition "
                     "them, and export the model again if it has changed"));
  }

  void AddPasses(int64_t, DType, std::vector<UpdatePass>*) const override {
    MUSTER_CHECK(false);  // Prepare() refuses devices.
  }

  void Apply(int64_t step, int64_t count, const float* gradient,
             float* variable, absl::Span<float* const> slots) const override {
    ApplyRows(step, count, {0}, gradient, variable, slots);
  }
  void ApplyRows(int64_t step, int64_t row_elements,
                 absl::Span<const int64_t> rows, const float* gradients,
                 float* variable,
                 absl::Span<float* const> slots) const override;

  // Prepare() refuses float64.
  void Apply(int64_t, int64_t, const double*, double*,
             absl::Span<double* const>) const override {
    MUSTER_CHECK(false);
  }
  void ApplyRows(int64_t, int64_t, absl::Span<const int64_t>, const double*,
                 double*, absl::Span<double* const>) const override {
    MUSTER_CHECK(false);
  }

 private:
  const std::shared_ptr<const UpdatePrograms> programs_;
  UpdateProgram* const update_;  // Of programs_; null: see the constructor.
  const std::vector<SlotSpec> slots_;
  const muster::LearningRate learning_rate_;
};

void ProgramRule::ApplyRows(int64_t step, int64_t row_elements,
                            absl::Span<const int64_t> rows,
                            const float* gradients, float* variable,
                            absl::Span<float* const> slots) const {
  const int64_t count_max = update_->element_counts().back();
  const float learning_rate = learning_rate_.At(step);
  std::vector<Segment> segments;
  int64_t count = 0;
  const auto flush = [&] {
    if (count == 0) return;
    const absl::Status status = update_->Update(
        count, step, learning_rate, segments, gradients, variable, slots);
    if (!status.ok()) {
      LOG(ERROR) << "an update that has begun cannot be finished: "
                 << status.message();
      std::abort();
    }
    segments.clear();
    count = 0;
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto gradient_row = static_cast<int64_t>(i) * row_elements;
    for (int64_t begin = 0; begin < row_elements;) {
      const int64_t taken = std::min(row_elements - begin, count_max - count);
      segments.push_back(
          {gradient_row + begin, rows[i] * row_elements + begin, taken});
      begin += taken;
      count += taken;
      if (count == count_max) flush();
    }
  }
  flush();
}

bool IsScalar(const TensorType& type, DType dtype) {
  return type.dtype == dtype && type.shape.rank() == 0;
}

// Checks the types of a program, or of one of its variants.
absl::Status CheckTypes(const ProgramTypes& types, size_t slot_count,
                        const std::string& name) {
  const size_t array_count = kFirstSlotInput + slot_count;
  bool is_valid = types.inputs.size() == array_count + 2 &&
                  types.outputs.size() == slot_count + 1 &&
                  IsScalar(types.inputs[array_count], DType::kInt32) &&
                  IsScalar(types.inputs[array_count + 1], DType::kFloat32);
  for (size_t i = 0; is_valid && i < array_count; ++i) {
    is_valid = types.inputs[i] == types.inputs[kVariableInput];
  }
  for (size_t i = 0; is_valid && i < types.outputs.size(); ++i) {
    is_valid = types.outputs[i] == types.inputs[kVariableInput];
  }
  if (is_valid && types.inputs[kVariableInput].dtype == DType::kFloat32) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "program ", name, " is no update of a variable with ", slot_count,
      " slots; expected the inputs gradient, variable and slots of one "
      "float32 type, int32[] and float32[], and a variable and slots as "
      "outputs"));
}

absl::StatusOr<std::unique_ptr<UpdateProgram>> MakeUpdate(
    const std::string& encoded, size_t slot_count) {
  ASSIGN_OR_RETURN(Program program, Program::Decode(encoded));
  RETURN_IF_ERROR(CheckTypes(program.types, slot_count, program.name));
  const Shape& shape = program.types.inputs[kVariableInput].shape;
  if (!shape.IsFullyKnown() && shape.rank() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("program ", program.name, " is for variables of shape ",
                     shape.ToString(), "; expected a known one, or [?]"));
  }
  const auto elements = [](const Program::Variant& variant) {
    return variant.types.inputs[kVariableInput].shape.element_count();
  };
  for (const Program::Variant& variant : program.variants) {
    RETURN_IF_ERROR(CheckTypes(variant.types, slot_count, program.name));
    if (elements(variant) > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("program ", program.name,
                     " has a variant without elements; expected at least one"));
  }
  std::sort(program.variants.begin(), program.variants.end(),
            [&](const Program::Variant& a, const Program::Variant& b) {
              return elements(a) < elements(b);
            });
  std::vector<int64_t> element_counts;
  for (const Program::Variant& variant : program.variants) {
    element_counts.push_back(elements(variant));
  }
  return std::make_unique<UpdateProgram>(std::move(program),
                                         std::move(element_counts));
}

absl::StatusOr<std::vector<SlotSpec>> SlotsOf(
    const proto::Optimizer::Program& message) {
  if (message.initial_values_size() != message.slots_size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there are ", message.initial_values_size(), " initial_values for ",
        message.slots_size(), " slots; expected one for each"));
  }
  // Stages need two more (staged_rule.h).
  constexpr int kCountMax = UpdateRule::kSlotCountMax - 2;
  if (message.slots_size() > kCountMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", message.slots_size(),
                     " slots; expected at most ", kCountMax));
  }
  std::vector<SlotSpec> slots;
  for (int i = 0; i < message.slots_size(); ++i) {
    slots.push_back(
        {.name = message.slots(i), .initial_value = message.initial_values(i)});
  }
  for (const std::string& name : message.slots_starting_as_variable()) {
    const auto found =
        std::find_if(slots.begin(), slots.end(),
                     [&](const SlotSpec& slot) { return slot.name == name; });
    if (found == slots.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("slots_starting_as_variable has ", name,
                       ", which is not among the slots"));
    }
    found->starts_as_variable = true;
  }
  return slots;
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeProgramRule(
    const proto::Optimizer& optimizer, LearningRate learning_rate) {
  const proto::Optimizer::Program& message = optimizer.program();
  if (message.programs_size() == 0) {
    return absl::InvalidArgumentError(
        "there are no programs; expected those that muster.export() writes");
  }
  ASSIGN_OR_RETURN(std::vector<SlotSpec> slots, SlotsOf(message));
  auto programs = std::make_shared<UpdatePrograms>();
  for (const std::string& encoded : message.programs()) {
    ASSIGN_OR_RETURN(programs->emplace_back(),
                     MakeUpdate(encoded, slots.size()));
  }
  if (programs->size() > 1) {
    for (const auto& program : *programs) {
      if (!program->is_elementwise()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("program ", program->program().name,
                       " is for all variables, but "
                       "there are ",
                       programs->size(), " programs; expected no other"));
    }
  }
  return std::make_unique<ProgramRule>(std::move(programs), std::move(slots),
                                       std::move(learning_rate));
}

// Without programs: an optimizer of this kind has no other defaults.
Optimizer DefaultProgram() {
  proto::Optimizer optimizer;
  optimizer.mutable_program()->set_learning_rate(0.001);
  return optimizer;
}

}  // namespace

const OptimizerKind kProgramKind = {
    .rule_case = proto::Optimizer::kProgram,
    .rule_name = kProgramRuleName,
    .keras_class = "ProgramOptimizer",
    .defaults = DefaultProgram,
    .make_rule = MakeProgramRule,
};

}  // namespace muster
