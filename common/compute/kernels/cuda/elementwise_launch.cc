#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/compute/kernels/cuda/launch.h"
#include "common/compute/kernels/cuda/register_cuda_kernels.h"
#include "common/compute/kernels/cuda/tape.h"
#include "common/compute/kernels/cuda/tape_image.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"

namespace muster::internal {
namespace {

// An op as the one instruction of a tape.
struct OpFunction {
  TapeFunction function;
  int operand_count;
  bool is_for_floats;
  // The input whose type is computed with.
  int typed_input = 0;
};

absl::StatusOr<DeviceFunction> FindTape(const KernelTarget& target,
                                        DType dtype) {
  switch (ComputeTypeOf(dtype)) {
    case ComputeType::kFloat:
      return FindFunction(target, tape_image(), "tape_float");
    case ComputeType::kDouble:
      return FindFunction(target, tape_image(), "tape_double");
    case ComputeType::kInt64:
      return FindFunction(target, tape_image(), "tape_int64");
  }
  return absl::InternalError("no compute type");
}

absl::Status LaunchTape(const DeviceRun& run, const DeviceFunction& function,
                        Tape& tape) {
  tape.positions_per_thread =
      ElementsPerThread(function, tape.count, Tape::kGroup);
  const int64_t per_block = int64_t{Tape::kThreads} * tape.positions_per_thread;
  LaunchShape shape;
  shape.grid[0] =
      static_cast<uint32_t>((tape.count + per_block - 1) / per_block);
  shape.block[0] = Tape::kThreads;
  return run.Launch(function, shape, tape);
}

// Gelu and GeluGrad have two forms, and all others one.
TapeFunction FormOf(const KernelSpec& spec, TapeFunction function) {
  if (!spec.attributes.GetOr("approximate", false)) return function;
  if (function == TapeFunction::kGelu) return TapeFunction::kGeluTanh;
  if (function == TapeFunction::kGeluGrad) return TapeFunction::kGeluTanhGrad;
  return function;
}

// True if the function is not defined for all integers.
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
  ASSIGN_OR_RETURN(const DeviceFunction function, FindTape(target, dtype));
  Tape tape = {};
  const Shape& shape = spec.outputs[0].shape;
  tape.count = shape.element_count();
  tape.instruction_count = 1;
  Tape::Instruction& instruction = tape.instructions[0];
  instruction = {FormOf(spec, op.function),
                 {Tape::kImmediate, Tape::kImmediate, Tape::kImmediate},
                 -1,
                 spec.attributes.GetOr<double>("alpha", 0)};
  for (int i = 0; i < op.operand_count; ++i) {
    instruction.sources[i] = static_cast<uint8_t>(i);
    tape.operands[i].layout =
        DeviceLayoutOf(BroadcastIndex(spec.inputs[i].shape, shape));
  }
  return MakeDeviceKernel(
      target,
      [tape, function, count = op.operand_count](const DeviceRun& run) mutable {
        tape.output = run.output(0);
        tape.fault = run.fault;
        for (int i = 0; i < count; ++i) {
          tape.operands[i].elements = run.input(i);
        }
        return LaunchTape(run, function, tape);
      },
      {.shared_inputs = ElementwiseSharing(spec),
       .has_data_errors = MayFail(op.function, dtype)});
}

void Register(KernelRegistry* registry, const KernelTarget& target,
              absl::string_view op, const OpFunction& function) {
  RegisterDevice(registry, target, op,
                 [function](const KernelSpec& spec, const KernelTarget& where) {
                   return MakeTapeOfOne(spec, where, function);
                 });
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
  ASSIGN_OR_RETURN(const DeviceFunction function,
                   FindTape(target, spec.outputs[0].dtype));
  Tape tape = {};
  tape.count = spec.outputs[0].shape.element_count();
  tape.instruction_count = 1;
  tape.instructions[0] = {
      TapeFunction::kCopy,
      {Tape::kImmediate, Tape::kImmediate, Tape::kImmediate},
      -1,
      value};
  return [tape, function](const DeviceRun& run) mutable {
    tape.output = run.output(0);
    return LaunchTape(run, function, tape);
  };
}

absl::StatusOr<Conversion> Converting(const KernelTarget& target) {
  ASSIGN_OR_RETURN(const DeviceFunction function,
                   FindTape(target, DType::kFloat32));
  Tape tape = {};
  tape.instruction_count = 1;
  tape.instructions[0] = {
      TapeFunction::kCopy, {0, Tape::kImmediate, Tape::kImmediate}, -1, 0};
  return [tape, function](const DeviceRun& run, int64_t count,
                          DeviceElements from, DeviceElements to) mutable {
    tape.count = count;
    tape.operands[0] = {from, DeviceLayoutOf(DenseIndex(Shape({count})))};
    tape.output = to;
    return LaunchTape(run, function, tape);
  };
}

void RegisterElementwiseKernels(KernelRegistry* registry,
                                const KernelTarget& target) {
#define MUSTER_REGISTER(name)       \
  Register(registry, target, #name, \
           {TapeFunction::k##name, kOperandCount, kIsForFloats});
  {
    constexpr int kOperandCount = 1;
    constexpr bool kIsForFloats = false;
    MUSTER_TAPE_UNARY(MUSTER_REGISTER)
  }
  {
    constexpr int kOperandCount = 1;
    constexpr bool kIsForFloats = true;
    MUSTER_UNARY_FLOAT_FUNCTIONS(MUSTER_REGISTER)
    MUSTER_FLOAT_TEST_FUNCTIONS(MUSTER_REGISTER)
    MUSTER_SMOOTH_FUNCTIONS(MUSTER_REGISTER)
    MUSTER_ALPHA_FUNCTIONS(MUSTER_REGISTER)
    MUSTER_REGISTER(Gelu)
  }
  {
    constexpr int kOperandCount = 2;
    constexpr bool kIsForFloats = false;
    MUSTER_TAPE_BINARY(MUSTER_REGISTER)
  }
  {
    constexpr int kOperandCount = 2;
    constexpr bool kIsForFloats = true;
    MUSTER_SMOOTH_GRADIENTS(MUSTER_REGISTER)
    MUSTER_ALPHA_GRADIENTS(MUSTER_REGISTER)
    MUSTER_REGISTER(GeluGrad)
    MUSTER_REGISTER(SigmoidCrossEntropy)
  }
#undef MUSTER_REGISTER
  Register(registry, target, "Cast", {TapeFunction::kCopy, 1, false});
  Register(registry, target, "Select", {TapeFunction::kSelect, 3, false, 1});
  const auto fill = [&](absl::string_view op, double value) {
    RegisterDevice(registry, target, op,
                   [value](const KernelSpec& spec, const KernelTarget& where) {
                     return MakeFill(spec, where, value);
                   });
  };
  fill("ZerosLike", 0);
  fill("OnesLike", 1);
  // The ops between replicas for a step that runs alone.
  fill("ReplicaId", 0);
  fill("ReplicaCount", 1);
}

}  // namespace muster::internal
