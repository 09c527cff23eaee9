#include "common/compute/kernels/cpu/elementwise.h"

#include <utility>

#include "absl/status/statusor.h"

namespace muster::internal {

UnaryKernelBase::UnaryKernelBase(const KernelSpec& spec, int thread_count)
    : thread_count_(thread_count),
      in_size_(SizeOf(spec.inputs[0].dtype)),
      out_size_(SizeOf(spec.outputs[0].dtype)),
      may_share_(IsWalkedAlike(spec.inputs[0], spec.outputs[0])) {}

absl::Status UnaryKernelBase::Run(const KernelArguments& arguments) {
  const uint8_t* const in = arguments.inputs[0]->raw_data();
  uint8_t* const out = arguments.outputs[0]->mutable_raw_data();
  ForEachPart(thread_count_, arguments.inputs[0]->element_count(),
              [&](int64_t begin, int64_t end) {
                Compute(end - begin, in + begin * in_size_,
                        out + begin * out_size_);
              });
  return absl::OkStatus();
}

BinaryKernelBase::BinaryKernelBase(const KernelSpec& spec, int thread_count)
    : thread_count_(thread_count),
      in_size_(SizeOf(spec.inputs[0].dtype)),
      out_size_(SizeOf(spec.outputs[0].dtype)),
      walk_(spec.outputs[0].shape,
            {&spec.inputs[0].shape, &spec.inputs[1].shape}),
      may_share_{IsWalkedAlike(spec.inputs[0], spec.outputs[0]),
                 IsWalkedAlike(spec.inputs[1], spec.outputs[0])} {}

absl::Status BinaryKernelBase::Run(const KernelArguments& arguments) {
  const uint8_t* const a_data = arguments.inputs[0]->raw_data();
  const uint8_t* const b_data = arguments.inputs[1]->raw_data();
  uint8_t* const out_data = arguments.outputs[0]->mutable_raw_data();
  const int64_t length = walk_.run_length();
  const bool a_moves = walk_.run_stride(0) != 0;
  const bool b_moves = walk_.run_stride(1) != 0;
  walk_.ForEachRun([&](int64_t begin, const int64_t* offsets) {
    const uint8_t* const a = a_data + offsets[0] * in_size_;
    const uint8_t* const b = b_data + offsets[1] * in_size_;
    uint8_t* const out = out_data + begin * out_size_;
    if (a_moves && b_moves) {
      ForEachPart(thread_count_, length, [&](int64_t first, int64_t last) {
        ComputeBoth(last - first, a + first * in_size_, b + first * in_size_,
                    out + first * out_size_);
      });
    } else if (a_moves) {
      ComputeFirst(length, a, b, out);
    } else {
      // Covers the case that neither advances: then the run has one element.
      ComputeSecond(length, a, b, out);
    }
  });
  return absl::OkStatus();
}

void RegisterElementwise(KernelRegistry* registry, absl::string_view op,
                         int input_count, DType in, DType out,
                         MakeElementwise make) {
  registry->Register(
      op,
      [=, make = std::move(make)](const KernelSpec& spec, int thread_count)
          -> absl::StatusOr<std::unique_ptr<Kernel>> {
        bool fits = static_cast<int>(spec.inputs.size()) == input_count &&
                    spec.outputs[0].dtype == out;
        for (const TensorType& input : spec.inputs) {
          fits = fits && input.dtype == in;
        }
        if (!fits) return absl::UnimplementedError("other types");
        return make(spec, IntraOpThreadCount(thread_count));
      });
}

}  // namespace muster::internal
