#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/kernels/cuda/device_code/tape.h"
#include "common/compute/kernels/cuda/device_code/tape_image.h"
#include "common/compute/kernels/cuda/launch.h"
#include "common/compute/kernels/cuda/register_cuda_kernels.h"
#include "common/compute/kernels/cuda/tape_plan.h"
#include "common/compute/kernels/elementwise_program.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"

namespace muster::internal {
namespace {

// An op as the only instruction of a tape.
struct OpFunction {
  TapeFunction function;
  int operand_count;
  bool is_for_floats;
  // The input whose type determines the type of the computation.
  int typed_input = 0;
};

// A kernel that interprets tapes.
struct TapeKernel {
  DeviceFunction function;
  ElementType compute_type;
  int32_t group;  // Elements per thread if it computes several.
};

absl::StatusOr<TapeKernel> FindTape(const KernelTarget& target, DType dtype) {
  TapeKernel kernel = {};
  const char* name = nullptr;
  switch (ComputeTypeOf(dtype)) {
    case ComputeType::kFloat:
      name = "tape_float";
      kernel = {{}, ElementType::kFloat32, Tape::kGroup<float>};
      break;
    case ComputeType::kDouble:
      name = "tape_double";
      kernel = {{}, ElementType::kFloat64, Tape::kGroup<double>};
      break;
    case ComputeType::kInt64:
      name = "tape_int64";
      kernel = {{}, ElementType::kInt64, Tape::kGroup<int64_t>};
      break;
  }
  ASSIGN_OR_RETURN(kernel.function, FindFunction(target, tape_image(), name));
  return kernel;
}

absl::Status LaunchTape(const DeviceRun& run, const TapeKernel& kernel,
                        Tape& tape) {
  tape.positions_per_thread =
      ElementsPerThread(kernel.function, tape.count, kernel.group);
  const LaunchShape shape = PlaceSlots(kernel.compute_type, &tape);
  return run.Launch(kernel.function, shape, tape);
}

// Gelu and GeluGrad have two forms, all other functions have one.
TapeFunction FormOf(bool is_approximate, TapeFunction function) {
  if (!is_approximate) return function;
  if (function == TapeFunction::kGelu) return TapeFunction::kGeluTanh;
  if (function == TapeFunction::kGeluGrad) return TapeFunction::kGeluTanhGrad;
  return function;
}

// True if the function is undefined for some integers.
bool MayFail(TapeFunction function, DType dtype) {
  return IsInteger(dtype) &&
         (function == TapeFunction::kDiv ||
          function == TapeFunction::kFloorDiv ||
          function == TapeFunction::kMod || function == TapeFunction::kPow);
}

KernelOr MakeTapeOfOne(const KernelSpec& spec, const KernelTarget& target,
                       const OpFunction& op) {
  const DType dtype = spec.inputs[op.typed_input].dtype;
  for (const TensorType& input : spec.inputs) {
    if (input.dtype == DType::kString) return Unsupported(spec);
  }
  if (op.is_for_floats && !IsFloating(dtype)) return Unsupported(spec);
  ASSIGN_OR_RETURN(const TapeKernel kernel, FindTape(target, dtype));
  Tape tape = {};
  const Shape& shape = spec.outputs[0].shape;
  tape.count = shape.element_count();
  tape.instruction_count = 1;
  Tape::Instruction& instruction = tape.instructions[0];
  instruction = {
      FormOf(spec.attributes.GetOr("approximate", false), op.function),
      {Tape::kNone, Tape::kNone, Tape::kNone},
      -1,
      spec.attributes.GetOr<double>("alpha", 0)};
  tape.operand_count = op.operand_count;
  for (int i = 0; i < op.operand_count; ++i) {
    instruction.sources[i] = static_cast<uint8_t>(i);
    tape.operands[i].layout =
        DeviceLayoutOf(BroadcastIndex(spec.inputs[i].shape, shape));
  }
  return MakeDeviceKernel(target,
                          [tape, kernel](const DeviceRun& run) mutable {
                            tape.output = run.output(0);
                            tape.fault = run.fault;
                            for (int i = 0; i < tape.operand_count; ++i) {
                              tape.operands[i].elements = run.input(i);
                            }
                            return LaunchTape(run, kernel, tape);
                          },
                          {.shared_inputs = ElementwiseSharing(spec),
                           .has_data_errors = MayFail(op.function, dtype)});
}

// The ops that tapes compute, by their names.
using OpFunctions = absl::flat_hash_map<absl::string_view, OpFunction>;

const OpFunctions& TapeOps() {
  static const auto* const ops = [] {
    auto* const made = new OpFunctions;
#define MUSTER_ADD(name) \
  (*made)[#name] = {TapeFunction::k##name, kOperandCount, kIsForFloats};
    {
      constexpr int kOperandCount = 1;
      constexpr bool kIsForFloats = false;
      MUSTER_TAPE_UNARY(MUSTER_ADD)
    }
    {
      constexpr int kOperandCount = 1;
      constexpr bool kIsForFloats = true;
      MUSTER_UNARY_FLOAT_FUNCTIONS(MUSTER_ADD)
      MUSTER_FLOAT_TEST_FUNCTIONS(MUSTER_ADD)
      MUSTER_SMOOTH_FUNCTIONS(MUSTER_ADD)
      MUSTER_ALPHA_FUNCTIONS(MUSTER_ADD)
      MUSTER_ADD(Gelu)
    }
    {
      constexpr int kOperandCount = 2;
      constexpr bool kIsForFloats = false;
      MUSTER_TAPE_BINARY(MUSTER_ADD)
    }
    {
      constexpr int kOperandCount = 2;
      constexpr bool kIsForFloats = true;
      MUSTER_SMOOTH_GRADIENTS(MUSTER_ADD)
      MUSTER_ALPHA_GRADIENTS(MUSTER_ADD)
      MUSTER_ADD(GeluGrad)
      MUSTER_ADD(SigmoidCrossEntropy)
    }
#undef MUSTER_ADD
    (*made)["Cast"] = {TapeFunction::kCopy, 1, false};
    (*made)["Select"] = {TapeFunction::kSelect, 3, false, 1};
    return made;
  }();
  return *ops;
}

absl::Status TooLong() {
  return absl::UnimplementedError(
      "the program needs more than a tape can hold");
}

// Assigns a temporary to each result that an instruction after the next one
// reads. As sources, results are numbered from `input_count` on.
absl::StatusOr<std::vector<int>> PlaceResults(
    const ElementwiseProgram& program) {
  const auto count = static_cast<int>(program.steps.size());
  std::vector<int> last_reader(count, -1);
  for (int i = 0; i < count; ++i) {
    for (const int64_t source : program.steps[i].sources) {
      if (source >= program.input_count) {
        last_reader[source - program.input_count] = i;
      }
    }
  }
  std::vector<int> places(count, -1);
  std::vector<int> free_after(Tape::kTemporariesMax, -1);
  for (int i = 0; i < count; ++i) {
    if (last_reader[i] <= i + 1) continue;
    // An instruction reads before it writes, so it may reuse a temporary that
    // it reads last.
    const auto found = std::find_if(free_after.begin(), free_after.end(),
                                    [i](int last) { return last <= i; });
    if (found == free_after.end()) return TooLong();
    *found = last_reader[i];
    places[i] = static_cast<int>(found - free_after.begin());
  }
  return places;
}

// Returns the tape without operands and count.
absl::StatusOr<Tape> TapeOf(const ElementwiseProgram& program) {
  if (program.steps.size() > Tape::kInstructionsMax ||
      program.input_count > Tape::kOperandsMax) {
    return TooLong();
  }
  ASSIGN_OR_RETURN(const std::vector<int> places, PlaceResults(program));
  Tape tape = {};
  for (const ElementwiseProgram::Step& step : program.steps) {
    const auto found = TapeOps().find(step.op);
    if (found == TapeOps().end()) {
      return absl::UnimplementedError(
          absl::StrCat("tapes do not support ", step.op));
    }
    const int i = tape.instruction_count++;
    Tape::Instruction& instruction = tape.instructions[i];
    instruction = {FormOf(step.approximate, found->second.function),
                   {Tape::kNone, Tape::kNone, Tape::kNone},
                   static_cast<int8_t>(places[i]),
                   step.alpha,
                   ElementTypeOf(step.dtype)};
    const size_t source_count = step.sources.size();
    if (source_count != static_cast<size_t>(found->second.operand_count)) {
      return absl::InvalidArgumentError(
          absl::StrCat(step.op, " has ", source_count, " sources"));
    }
    for (size_t k = 0; k < source_count; ++k) {
      const int64_t source = step.sources[k];
      if (source == ElementwiseProgram::kImmediate) {
        instruction.sources[k] = Tape::kImmediate;
        instruction.parameter = step.immediate;
        continue;
      }
      const int64_t result = source - program.input_count;
      if (result < 0) {
        instruction.sources[k] = static_cast<uint8_t>(source);
      } else {
        instruction.sources[k] =
            places[result] < 0
                ? Tape::kAccumulator
                : static_cast<uint8_t>(Tape::kTemporary + places[result]);
      }
    }
  }
  // The output rounds the last result.
  tape.instructions[tape.instruction_count - 1].rounded_to =
      ElementType::kFloat64;
  return tape;
}

bool IsComputedInFloat(DType dtype) {
  return dtype == DType::kBool ||
         (IsFloating(dtype) && dtype != DType::kFloat64);
}

KernelOr MakeFused(const KernelSpec& spec, const KernelTarget& target) {
  ASSIGN_OR_RETURN(const ElementwiseProgram program,
                   ElementwiseProgram::FromAttributes(spec.attributes));
  for (const TensorType& input : spec.inputs) {
    if (!IsComputedInFloat(input.dtype)) return Unsupported(spec);
  }
  for (const ElementwiseProgram::Step& step : program.steps) {
    if (!IsComputedInFloat(step.dtype)) return Unsupported(spec);
  }
  ASSIGN_OR_RETURN(const TapeKernel kernel, FindTape(target, DType::kFloat32));
  ASSIGN_OR_RETURN(Tape tape, TapeOf(program));
  const Shape& shape = spec.outputs[0].shape;
  tape.count = shape.element_count();
  const size_t operand_count = spec.inputs.size();
  if (operand_count != static_cast<size_t>(program.input_count)) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec.op, " has ", operand_count, " inputs, and a program ",
                     "of ", program.input_count));
  }
  tape.operand_count = static_cast<int32_t>(operand_count);
  for (size_t i = 0; i < operand_count; ++i) {
    tape.operands[i].layout =
        DeviceLayoutOf(BroadcastIndex(spec.inputs[i].shape, shape));
  }
  return MakeDeviceKernel(target,
                          [tape, kernel](const DeviceRun& run) mutable {
                            tape.output = run.output(0);
                            for (int i = 0; i < tape.operand_count; ++i) {
                              tape.operands[i].elements = run.input(i);
                            }
                            return LaunchTape(run, kernel, tape);
                          },
                          {.shared_inputs = ElementwiseSharing(spec)});
}

KernelOr MakeFill(const KernelSpec& spec, const KernelTarget& target,
                  double value) {
  if (spec.outputs[0].dtype == DType::kString) return Unsupported(spec);
  ASSIGN_OR_RETURN(auto fill, Filling(target, spec, value));
  return MakeDeviceKernel(target, std::move(fill),
                          {.shared_inputs = ElementwiseSharing(spec)});
}

}  // namespace

absl::StatusOr<std::function<absl::Status(const DeviceRun&)>> Filling(
    const KernelTarget& target, const KernelSpec& spec, double value) {
  ASSIGN_OR_RETURN(const TapeKernel kernel,
                   FindTape(target, spec.outputs[0].dtype));
  Tape tape = {};
  tape.count = spec.outputs[0].shape.element_count();
  tape.instruction_count = 1;
  tape.instructions[0] = {TapeFunction::kCopy,
                          {Tape::kImmediate, Tape::kNone, Tape::kNone},
                          -1,
                          value};
  return [tape, kernel](const DeviceRun& run) mutable {
    tape.output = run.output(0);
    return LaunchTape(run, kernel, tape);
  };
}

absl::StatusOr<Conversion> Converting(const KernelTarget& target) {
  ASSIGN_OR_RETURN(const TapeKernel kernel, FindTape(target, DType::kFloat32));
  Tape tape = {};
  tape.operand_count = 1;
  tape.instruction_count = 1;
  tape.instructions[0] = {
      TapeFunction::kCopy, {0, Tape::kNone, Tape::kNone}, -1, 0};
  return [tape, kernel](const DeviceRun& run, int64_t count,
                        DeviceElements from, DeviceElements to) mutable {
    tape.count = count;
    tape.operands[0].elements = from;
    tape.operands[0].layout = DeviceLayoutOf(DenseIndex(Shape({count})));
    tape.output = to;
    return LaunchTape(run, kernel, tape);
  };
}

void RegisterElementwiseKernels(KernelRegistry* registry,
                                const KernelTarget& target) {
  for (const auto& one : TapeOps()) {
    RegisterDevice(registry, target, one.first,
                   [function = one.second](const KernelSpec& spec,
                                           const KernelTarget& where) {
                     return MakeTapeOfOne(spec, where, function);
                   });
  }
  RegisterDevice(registry, target, kFusedElementwiseOp, MakeFused);
  const auto fill = [&](absl::string_view op, double value) {
    RegisterDevice(registry, target, op,
                   [value](const KernelSpec& spec, const KernelTarget& where) {
                     return MakeFill(spec, where, value);
                   });
  };
  fill("ZerosLike", 0);
  fill("OnesLike", 1);
  // The ops between replicas, for a step with a single replica.
  fill("ReplicaId", 0);
  fill("ReplicaCount", 1);
}

}  // namespace muster::internal
