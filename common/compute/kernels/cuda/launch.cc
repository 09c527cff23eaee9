#include "common/compute/kernels/cuda/launch.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/pinned_memory.h"
#include "common/core/device/simulated/simulated_grid.h"
#include "common/core/tensor/buffer.h"

namespace muster::internal {
namespace {

constexpr int64_t kThreadsPerBlock = 256;

static_assert(static_cast<int>(ElementType::kFloat32) ==
              static_cast<int>(DType::kFloat32));
static_assert(static_cast<int>(ElementType::kFloat64) ==
              static_cast<int>(DType::kFloat64));
static_assert(static_cast<int>(ElementType::kInt32) ==
              static_cast<int>(DType::kInt32));
static_assert(static_cast<int>(ElementType::kUint8) ==
              static_cast<int>(DType::kUint8));
static_assert(static_cast<int>(ElementType::kInt64) ==
              static_cast<int>(DType::kInt64));
static_assert(static_cast<int>(ElementType::kBool) ==
              static_cast<int>(DType::kBool));
static_assert(static_cast<int>(ElementType::kBfloat16) ==
              static_cast<int>(DType::kBfloat16));
static_assert(static_cast<int>(ElementType::kFloat16) ==
              static_cast<int>(DType::kFloat16));

// Returns OK, or the error that the record describes, with the message of the
// host kernels.
absl::Status DataErrorOf(const FaultRecord& fault,
                         absl::string_view condition_message) {
  const auto error = [&](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat(parts...));
  };
  switch (static_cast<FaultCode>(fault.code)) {
    case FaultCode::kNone:
      return absl::OkStatus();
    case FaultCode::kDivisionByZero:
      return error("integer division by zero, at element ", fault.element);
    case FaultCode::kNegativeExponent:
      return error("an integer to the power of a negative integer, at element ",
                   fault.element);
    case FaultCode::kIndexOutOfRange:
      return error("index ", fault.value, " at element ", fault.element,
                   " is not in [0, ", fault.bound, ")");
    case FaultCode::kLabelOutOfRange:
      return error("label ", fault.value, " at element ", fault.element,
                   " is not in [0, ", fault.bound,
                   "), the range of the logits");
    case FaultCode::kConditionFalse:
      return error(condition_message, " (the condition is false at element ",
                   fault.element, ")");
  }
  return absl::InternalError(
      absl::StrCat("a device kernel reported the unknown fault ", fault.code));
}

class DeviceKernel : public Kernel {
 public:
  DeviceKernel(std::function<absl::Status(const DeviceRun&)> run,
               const DeviceKernelOptions& options,
               std::shared_ptr<Buffer> fault)
      : run_(std::move(run)), options_(options), fault_(std::move(fault)) {
    if (fault_ != nullptr) *record() = FaultRecord();
  }

  absl::Status Run(const KernelArguments& arguments) override {
    // Written only if it changes, because a kernel of the previous step may be
    // reading the record.
    if (fault_ != nullptr && record()->gate != arguments.gate) {
      record()->gate = arguments.gate;
    }
    RETURN_IF_ERROR(run_({arguments, record()}));
    return arguments.stream == nullptr ? DataError() : absl::OkStatus();
  }

  absl::Status DataError() override {
    if (fault_ == nullptr) return absl::OkStatus();
    return DataErrorOf(std::exchange(*record(), FaultRecord()),
                       options_.condition_message);
  }

  size_t scratch_bytes() const override { return options_.scratch_bytes; }

  bool MayShareOutputWithInput(int input) const override {
    return input >= 0 && input < 32 &&
           (options_.shared_inputs >> input & 1) != 0;
  }

 private:
  FaultRecord* record() const {
    return fault_ == nullptr ? nullptr
                             : reinterpret_cast<FaultRecord*>(fault_->data());
  }

  const std::function<absl::Status(const DeviceRun&)> run_;
  const DeviceKernelOptions options_;
  const std::shared_ptr<Buffer> fault_;  // A FaultRecord, or null.
};

}  // namespace

absl::StatusOr<DeviceFunction> FindFunction(const KernelTarget& target,
                                            const KernelImage& image,
                                            absl::string_view name) {
  if (target.device != nullptr) {
    ASSIGN_OR_RETURN(const KernelFunction function,
                     target.device->FindKernel(image, name));
    return DeviceFunction{.function = function,
                          .grouped_count_min = target.grouped_count_min};
  }
  for (const SimulatedKernel& kernel : image.simulated) {
    if (kernel.name == name)
      return DeviceFunction{.simulated = &kernel,
                            .simulated_seed = target.simulated_seed,
                            .grouped_count_min = target.grouped_count_min};
  }
  return absl::NotFoundError(
      absl::StrCat("the image ", image.name, " has no kernel ", name,
                   ": MUSTER_SIMULATED_KERNELS of its .cu file lists them"));
}

DeviceElements DeviceRun::input(size_t i) const {
  const Tensor& tensor = *arguments.inputs[i];
  return {tensor.address(), ElementTypeOf(tensor.dtype())};
}

DeviceElements DeviceRun::output(size_t i) const {
  const Tensor& tensor = *arguments.outputs[i];
  return {tensor.address(), ElementTypeOf(tensor.dtype())};
}

absl::Status DeviceRun::LaunchAt(const DeviceFunction& function,
                                 const LaunchShape& shape,
                                 const KernelArgument& parameter) const {
  if (shape.grid[0] == 0 || shape.grid[1] == 0) return absl::OkStatus();
  if (arguments.stream != nullptr) {
    return arguments.stream->Launch(function.function, shape, {&parameter, 1});
  }
  MUSTER_CHECK(function.simulated != nullptr);
  void* addresses[] = {const_cast<void*>(parameter.address)};
  return RunSimulatedGrid(*function.simulated, shape, addresses,
                          function.simulated_seed);
}

KernelOr MakeDeviceKernel(const KernelTarget& target,
                          std::function<absl::Status(const DeviceRun& run)> run,
                          const DeviceKernelOptions& options) {
  std::shared_ptr<Buffer> fault;
  if (options.has_data_errors && target.device != nullptr) {
    ASSIGN_OR_RETURN(
        fault, target.device->pinned_memory().Allocate(sizeof(FaultRecord)));
  } else if (options.has_data_errors) {
    fault = Buffer::Allocate(sizeof(FaultRecord));
  }
  return std::make_unique<DeviceKernel>(std::move(run), options,
                                        std::move(fault));
}

LaunchShape ThreadForEach(int64_t count) {
  LaunchShape shape;
  shape.grid[0] =
      static_cast<uint32_t>((count + kThreadsPerBlock - 1) / kThreadsPerBlock);
  shape.block[0] = static_cast<uint32_t>(kThreadsPerBlock);
  return shape;
}

int32_t ElementsPerThread(const DeviceFunction& function, int64_t count,
                          int32_t group) {
  const bool is_divided_in_32_bits = count <= int64_t{1} << 32;
  return count >= function.grouped_count_min && is_divided_in_32_bits ? group
                                                                      : 1;
}

DeviceLayout DeviceLayoutOf(const StridedIndex& index) {
  // Proceeds from the innermost axis outwards.
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;
  for (size_t axis = index.extents().size(); axis-- > 0;) {
    const int64_t extent = index.extents()[axis];
    const int64_t stride = index.strides()[axis];
    if (extent == 1) continue;
    if (!extents.empty() && stride == strides.back() * extents.back()) {
      extents.back() *= extent;
    } else {
      extents.push_back(extent);
      strides.push_back(stride);
    }
  }
  if (strides == std::vector<int64_t>{0}) extents.clear();
  MUSTER_CHECK(extents.size() <= DeviceLayout::kRankMax);
  DeviceLayout layout = {};
  layout.rank = static_cast<int32_t>(extents.size());
  layout.offset = index.offset();
  for (size_t i = 0; i < extents.size(); ++i) {
    layout.extents[extents.size() - 1 - i] = extents[i];
    layout.strides[extents.size() - 1 - i] = strides[i];
  }
  return layout;
}

ElementType ElementTypeOf(DType dtype) {
  return static_cast<ElementType>(dtype);
}

ComputeType ComputeTypeOf(DType dtype) {
  if (dtype == DType::kFloat64) return ComputeType::kDouble;
  return IsFloating(dtype) ? ComputeType::kFloat : ComputeType::kInt64;
}

absl::Status Unsupported(const KernelSpec& spec) {
  return absl::UnimplementedError(absl::StrCat(
      "the device kernel of ", spec.op, " does not support ",
      spec.inputs.empty() ? "these outputs" : spec.inputs[0].ToString()));
}

}  // namespace muster::internal
