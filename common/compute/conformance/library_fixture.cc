#include "common/compute/conformance/library_fixture.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "common/compute/conformance/kernel_comparison.h"
#include "common/compute/kernels/reference/reference_kernels.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/dtype.h"
#include "gmock/gmock.h"

namespace muster {
namespace {

constexpr size_t kGuardBytes = 64;

}  // namespace

void LibraryTest::MakeDevice(bool tensor_float_32) {
  stream_ = nullptr;
  device_ = nullptr;
  auto device = Device::Create(
      &machine_.driver(),
      {.memory = {.limit_bytes = 64 << 20, .piece_bytes = 1 << 20},
       .tensor_float_32 = tensor_float_32});
  ASSERT_OK(device);
  device_ = *std::move(device);
  ASSERT_OK_AND_ASSIGN(stream_, device_->CreateStream());
}

std::shared_ptr<Buffer> LibraryTest::Allocate(size_t size_bytes) {
  auto buffer = device_->memory().Allocate(std::max<size_t>(size_bytes, 1),
                                           {"tensor", "of a test"});
  EXPECT_OK(buffer);
  EXPECT_OK(stream_->Fill((*buffer)->data(), 0xff, (*buffer)->size_bytes()));
  return *buffer;
}

Tensor LibraryTest::OnDevice(const TensorType& type) {
  return Tensor(type.dtype, type.shape,
                Allocate(type.shape.element_count() * SizeOf(type.dtype)));
}

Tensor LibraryTest::OnDevice(const Tensor& tensor) {
  Tensor copy = OnDevice(tensor.type());
  EXPECT_OK(stream_->Copy(tensor, &copy));
  return copy;
}

void LibraryTest::Drain() {
  EXPECT_OK(stream_->Drain(Clock::Real()->Now() + absl::Minutes(5), "test"));
}

Tensor LibraryTest::RunOnDevice(Kernel* kernel, const KernelSpec& spec,
                                const std::vector<Tensor>& inputs) {
  std::vector<Tensor> operands;
  for (const Tensor& input : inputs) operands.push_back(OnDevice(input));
  Tensor output = OnDevice(spec.outputs[0]);
  Tensor* const outputs[] = {&output};
  const size_t scratch_bytes = kernel->scratch_bytes();
  const auto scratch = Allocate(scratch_bytes + kGuardBytes);
  uint8_t* const guard = scratch->data() + scratch_bytes;
  EXPECT_OK(stream_->Fill(guard, 0, kGuardBytes));
  EXPECT_OK(kernel->Run({.inputs = Pointers(operands),
                         .outputs = outputs,
                         .scratch = {scratch->data(), scratch_bytes},
                         .stream = stream_.get()}));
  Tensor result(output.dtype(), output.shape());
  EXPECT_OK(stream_->Copy(output, &result));
  std::vector<uint8_t> after_scratch(kGuardBytes, 1);
  EXPECT_OK(stream_->Copy(guard, after_scratch.data(), kGuardBytes));
  Drain();
  EXPECT_THAT(after_scratch, ::testing::Each(0))
      << "the kernel writes more than its scratch memory";
  return result;
}

std::vector<Tensor> RandomInputs(const OpCase& c) {
  RandomStream random(FoldIn(11, Describe(c)));
  std::vector<Tensor> inputs;
  for (const OpInput& input : c.inputs) {
    inputs.push_back(RandomTensor(input, &random));
  }
  return inputs;
}

Tensor Reference(const KernelSpec& spec, const std::vector<Tensor>& inputs) {
  const auto kernel = ReferenceKernels().Create(spec, 1);
  EXPECT_OK(kernel);
  return RunKernel(kernel->get(), spec, inputs)[0];
}

bool IsForLibrary(const KernelSpec& spec) {
  for (const TensorType& input : spec.inputs) {
    if (!IsFloating(input.dtype) || input.shape.element_count() == 0) {
      return false;
    }
  }
  return spec.outputs[0].shape.element_count() > 0;
}

std::map<std::string, int64_t> CountedSince(
    const std::map<std::string, int64_t>& before,
    const std::map<std::string, int64_t>& now) {
  std::map<std::string, int64_t> counted;
  for (const auto& [name, count] : now) {
    const auto earlier = before.find(name);
    const int64_t since =
        count - (earlier == before.end() ? 0 : earlier->second);
    if (since > 0) counted[name] = since;
  }
  return counted;
}

}  // namespace muster
