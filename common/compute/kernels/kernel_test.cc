#include "common/compute/kernels/kernel.h"

#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NamedKernel : public Kernel {
 public:
  explicit NamedKernel(std::string name) : name_(std::move(name)) {}
  absl::Status Run(const KernelArguments&) override {
    return absl::CancelledError(name_);
  }

 private:
  const std::string name_;
};

KernelRegistry::Factory Makes(std::string name) {
  return [name](const KernelSpec&, int) {
    return std::make_unique<NamedKernel>(name);
  };
}

KernelRegistry::Factory Fails(absl::Status status) {
  return [status](const KernelSpec&,
                  int) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    return status;
  };
}

const KernelSpec& AddSpec() {
  static const KernelSpec* const kSpec =
      new KernelSpec{.op = "Add",
                     .attributes = {},
                     .inputs = {{DType::kFloat32, {2}}, {DType::kFloat32, {}}},
                     .outputs = {{DType::kFloat32, {2}}}};
  return *kSpec;
}

std::string NameOf(const absl::StatusOr<std::unique_ptr<Kernel>>& kernel) {
  if (!kernel.ok()) return kernel.status().ToString();
  return std::string((*kernel)->Run({}).message());
}

TEST(KernelRegistryTest, TriesTheLatestRegistrationFirst) {
  KernelRegistry registry;
  registry.Register("Add", Makes("plain"));
  registry.Register("Add", Makes("fast"));
  EXPECT_EQ(NameOf(registry.Create(AddSpec(), 1)), "fast");
  EXPECT_THAT(registry.ops(), ElementsAre("Add"));
}

TEST(KernelRegistryTest, FallsBackWhenALaterKernelDoesNotSupportTheTypes) {
  KernelRegistry registry;
  registry.Register("Add", Makes("plain"));
  registry.Register("Add", Fails(absl::UnimplementedError("no")));
  EXPECT_EQ(NameOf(registry.Create(AddSpec(), 1)), "plain");
}

TEST(KernelRegistryTest, ReturnsOtherErrorsOfAFactory) {
  KernelRegistry registry;
  registry.Register("Add", Makes("plain"));
  registry.Register("Add", Fails(absl::InternalError("broken")));
  EXPECT_THAT(registry.Create(AddSpec(), 1),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("broken")));
}

TEST(KernelRegistryTest, NamesAMissingKernelWithItsTypes) {
  const KernelRegistry registry;
  EXPECT_THAT(registry.Create(AddSpec(), 1),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("Add (float32[2], float32[]) -> "
                                 "(float32[2])")));
}

}  // namespace
}  // namespace muster
