#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/compute/kernels/cuda/cublas_lt/cublas_lt.h"
#include "common/compute/kernels/cuda/launch.h"
#include "common/compute/kernels/cuda/register_cuda_kernels.h"
#include "common/compute/kernels/image_geometry.h"
#include "common/compute/kernels/strided_index.h"
#include "common/core/base/status_macros.h"

// MatMul, FusedMatMulBias, and convolutions with windows of one pixel, by
// cuBLASLt.
namespace muster::internal {
namespace {

using cublas_lt::Epilogue;

// Returns the distance from one matrix of a broadcast operand to the next, in
// matrices; nothing if the distances differ.
std::optional<int64_t> BatchStride(const Shape& shape, const Shape& batch) {
  const Shape own(shape.dims().first(shape.rank() - 2));
  const DeviceLayout layout = DeviceLayoutOf(BroadcastIndex(own, batch));
  if (layout.rank > 1) return std::nullopt;
  return layout.rank == 0 ? 0 : layout.strides[0];
}

// Returns the problem without the epilogue.
absl::StatusOr<MatMulProblem> MatMulProblemOf(const KernelSpec& spec) {
  const Shape& a = spec.inputs[0].shape;
  const Shape& b = spec.inputs[1].shape;
  const Shape& y = spec.outputs[0].shape;
  const Shape batch(y.dims().first(y.rank() - 2));
  MatMulProblem problem;
  problem.dtype = spec.inputs[0].dtype;
  problem.transpose_a = spec.attributes.GetOr("transpose_a", false);
  problem.transpose_b = spec.attributes.GetOr("transpose_b", false);
  problem.rows = y.dim(y.rank() - 2);
  problem.columns = y.dim(y.rank() - 1);
  problem.inner = a.dim(a.rank() - (problem.transpose_a ? 2 : 1));
  problem.batch_count = batch.element_count();
  if (!IsFloating(problem.dtype) || y.element_count() == 0 ||
      problem.inner == 0) {
    return Unsupported(spec);
  }
  const std::optional<int64_t> a_stride = BatchStride(a, batch);
  const std::optional<int64_t> b_stride = BatchStride(b, batch);
  if (!a_stride.has_value() || !b_stride.has_value()) return Unsupported(spec);
  problem.a_batch_stride = *a_stride * problem.rows * problem.inner;
  problem.b_batch_stride = *b_stride * problem.inner * problem.columns;
  // Matrices that are all multiplied by the same matrix are treated as one
  // matrix with all their rows.
  if (*b_stride == 0 && *a_stride != 0 && !problem.transpose_a) {
    problem.rows *= std::exchange(problem.batch_count, 1);
  }
  // cuBLASLt counts in 32 bits.
  for (const int64_t extent :
       {problem.rows, problem.columns, problem.inner, problem.batch_count}) {
    if (extent > std::numeric_limits<int32_t>::max()) return Unsupported(spec);
  }
  return problem;
}

// A product followed by an epilogue of the library and by kernels that change
// the result in place.
struct MatMulSteps {
  Epilogue epilogue = Epilogue::kDefault;
  bool adds_bias = false;  // By a kernel.
  std::string activation;  // By a kernel.
};

// Returns the ways to compute the op, the best first.
std::vector<MatMulSteps> WaysOf(const KernelSpec& spec) {
  if (spec.op == "MatMul") return {MatMulSteps()};
  const auto activation = spec.attributes.GetOr<std::string>("activation", "");
  const MatMulSteps plain = {Epilogue::kDefault, true, activation};
  if (activation == "Relu") return {{Epilogue::kReluBias, false, ""}, plain};
  if (activation == "GeluTanh") {
    return {{Epilogue::kGeluBias, false, ""}, plain};
  }
  return {{Epilogue::kBias, false, activation}, plain};
}

// Returns the elementwise kernels of a way.
absl::StatusOr<std::vector<std::shared_ptr<Kernel>>> KernelsAfter(
    const KernelSpec& spec, const MatMulSteps& way,
    const KernelRegistry& elementwise) {
  const TensorType& type = spec.outputs[0];
  std::vector<std::shared_ptr<Kernel>> kernels;
  const auto add = [&](const KernelSpec& one) -> absl::Status {
    ASSIGN_OR_RETURN(std::shared_ptr<Kernel> kernel,
                     elementwise.Create(one, /*thread_count=*/1));
    kernels.push_back(std::move(kernel));
    return absl::OkStatus();
  };
  if (way.adds_bias) {
    RETURN_IF_ERROR(add({"Add", {}, {type, spec.inputs[2]}, {type}}));
  }
  if (way.activation == "GeluTanh") {
    RETURN_IF_ERROR(add({"Gelu", {{"approximate", true}}, {type}, {type}}));
  } else if (!way.activation.empty()) {
    RETURN_IF_ERROR(add({way.activation, {}, {type}, {type}}));
  }
  return kernels;
}

absl::Status RunMatMul(const DeviceRun& run, MatMulPlan* plan,
                       bool library_adds_bias) {
  const KernelArguments& arguments = run.arguments;
  return plan->Run(arguments.stream, arguments.inputs[0]->address(),
                   arguments.inputs[1]->address(),
                   library_adds_bias ? arguments.inputs[2]->address() : nullptr,
                   arguments.outputs[0]->address(), arguments.scratch.data());
}

// Runs a kernel that changes output 0 in place. Its second operand, if any, is
// the bias of the product.
absl::Status RunAfter(const KernelArguments& product, Kernel* kernel) {
  const Tensor* const operands[] = {product.outputs[0],
                                    product.inputs[product.inputs.size() - 1]};
  KernelArguments arguments = product;
  arguments.inputs = operands;
  return kernel->Run(arguments);
}

KernelOr MakeWay(const KernelSpec& spec, const KernelTarget& target,
                 const std::shared_ptr<CublasLt>& library,
                 const KernelRegistry& elementwise, const MatMulSteps& way) {
  ASSIGN_OR_RETURN(MatMulProblem problem, MatMulProblemOf(spec));
  problem.epilogue = way.epilogue;
  problem.tensor_float_32 = target.device->tensor_float_32();
  ASSIGN_OR_RETURN(std::shared_ptr<MatMulPlan> plan,
                   MatMulPlan::Create(library, problem));
  ASSIGN_OR_RETURN(auto after, KernelsAfter(spec, way, elementwise));
  const size_t scratch_bytes = plan->workspace_bytes();
  const bool library_adds_bias = spec.op != "MatMul" && !way.adds_bias;
  return MakeDeviceKernel(
      target,
      [plan = std::move(plan), after = std::move(after),
       library_adds_bias](const DeviceRun& run) -> absl::Status {
        RETURN_IF_ERROR(RunMatMul(run, plan.get(), library_adds_bias));
        for (const std::shared_ptr<Kernel>& kernel : after) {
          RETURN_IF_ERROR(RunAfter(run.arguments, kernel.get()));
        }
        return absl::OkStatus();
      },
      {.scratch_bytes = scratch_bytes});
}

KernelOr MakeCublasLtMatMul(const KernelSpec& spec, const KernelTarget& target,
                            const std::shared_ptr<CublasLt>& library,
                            const KernelRegistry& elementwise) {
  absl::Status refusal;
  for (const MatMulSteps& way : WaysOf(spec)) {
    KernelOr kernel = MakeWay(spec, target, library, elementwise, way);
    if (kernel.ok() || !absl::IsUnimplemented(kernel.status())) return kernel;
    refusal = kernel.status();
  }
  return refusal;
}

bool IsOnePixel(const WindowAxis& axis) {
  return axis.window_extent == 1 && axis.stride == 1 &&
         axis.padding_before == 0 && axis.padding_after == 0;
}

// Returns the product that is equivalent to the convolution: [pixels, input
// channels] times [input channels, output channels], or one of its gradients.
absl::StatusOr<KernelSpec> ProductOf(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const ConvGeometry geometry, ConvGeometry::Of(spec));
  if (geometry.groups != 1 || !IsOnePixel(geometry.height) ||
      !IsOnePixel(geometry.width)) {
    return Unsupported(spec);
  }
  const DType dtype = spec.outputs[0].dtype;
  const int64_t pixels = geometry.batch * geometry.height.output_extent *
                         geometry.width.output_extent;
  const TensorType x = {dtype, {pixels, geometry.input_channels}};
  const TensorType kernel = {
      dtype, {geometry.input_channels, geometry.output_channels}};
  const TensorType y = {dtype, {pixels, geometry.output_channels}};
  switch (geometry.part) {
    case ConvPart::kForward:
      return KernelSpec{"MatMul", {}, {x, kernel}, {y}};
    case ConvPart::kBackpropInput:
      return KernelSpec{"MatMul", {{"transpose_b", true}}, {y, kernel}, {x}};
    case ConvPart::kBackpropKernel:
      break;
  }
  return KernelSpec{"MatMul", {{"transpose_a", true}}, {x, y}, {kernel}};
}

}  // namespace

void RegisterCublasLtKernels(KernelRegistry* registry,
                             const KernelTarget& target,
                             const std::shared_ptr<CublasLt>& library) {
  const auto elementwise = std::make_shared<KernelRegistry>();
  RegisterElementwiseKernels(elementwise.get(), target);
  for (const char* op : {"MatMul", "FusedMatMulBias"}) {
    RegisterDevice(registry, target, op,
                   [library, elementwise](const KernelSpec& spec,
                                          const KernelTarget& where) {
                     return MakeCublasLtMatMul(spec, where, library,
                                               *elementwise);
                   });
  }
  for (const char* op :
       {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropKernel"}) {
    RegisterDevice(
        registry, target, op,
        [library, elementwise](const KernelSpec& spec,
                               const KernelTarget& where) -> KernelOr {
          ASSIGN_OR_RETURN(const KernelSpec product, ProductOf(spec));
          return MakeCublasLtMatMul(product, where, library, *elementwise);
        });
  }
}

}  // namespace muster::internal
