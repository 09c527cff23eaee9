#include "common/compute/programs/compiled/custom_calls.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/compute/programs/compiled/program_compiler.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/pjrt/pjrt_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// XLA's compiler for CPUs makes a call of a library function out of this.
constexpr absl::string_view kTopK = R"(
func.func public @main(%x: tensor<16xf32>) -> tensor<4xf32> {
  %values, %indices = chlo.top_k(%x, k = 4)
      : tensor<16xf32> -> (tensor<4xf32>, tensor<4xi32>)
  return %values : tensor<4xf32>
})";

constexpr absl::string_view kDouble = R"(
func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %x, %x : tensor<2xf32>
  return %0 : tensor<2xf32>
})";

TEST(CustomCallsTest, PermitsLibrariesAndWhatTheUserNames) {
  EXPECT_TRUE(IsPermittedCustomCall("TopK", ""));
  EXPECT_TRUE(IsPermittedCustomCall("lapack_sgeqrf_ffi", ""));
  EXPECT_TRUE(IsPermittedCustomCall("__cublas$lt$matmul", ""));
  EXPECT_FALSE(IsPermittedCustomCall("tpu_custom_call", ""));
  EXPECT_FALSE(IsPermittedCustomCall("xla_ffi_python_cpu_callback", ""));
  EXPECT_FALSE(IsPermittedCustomCall("", ""));
  EXPECT_TRUE(IsPermittedCustomCall("my_kernel", "other,my_kernel"));
  EXPECT_FALSE(IsPermittedCustomCall("my_kernel", "other,my_kernel_2"));
  EXPECT_TRUE(IsPermittedCustomCall("my_kernel", "*"));
}

TEST(CustomCallsTest, AProgramMayCallPermittedFunctionsOnly) {
  const std::vector<std::string> names = {"TopK", "my_kernel"};
  EXPECT_THAT(CheckCustomCalls(names, ""),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("\"my_kernel\"")));
  EXPECT_OK(CheckCustomCalls(names, "my_kernel"));
}

TEST(CustomCallsTest, AProgramWhoseCallsAreUnknownIsRefused) {
  const absl::Status unknown = absl::UnimplementedError("not shown");
  EXPECT_THAT(
      CheckCustomCalls(unknown, "my_kernel"),
      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("not shown")));
  EXPECT_OK(CheckCustomCalls(unknown, "*"));
}

// These tests need a plugin: MUSTER_PJRT_PLUGIN is its path.
class CheckCustomCallsTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* const plugin = std::getenv(kPluginVariable);
    if (plugin == nullptr || *plugin == '\0') {
      GTEST_SKIP() << "MUSTER_PJRT_PLUGIN does not name a PJRT plugin for "
                      "CPUs: export $(tests/setup_tools.sh)";
    }
    ASSERT_OK_AND_ASSIGN(client_,
                         PjrtClient::Create(plugin, {.thread_count = 1}));
  }

  std::shared_ptr<PjrtClient> client_;
};

TEST_F(CheckCustomCallsTest, FindsTheCallsOfTheCompiledProgram) {
  ASSERT_OK_AND_ASSIGN(const auto none, client_->Compile(kDouble));
  EXPECT_THAT(none->CustomCalls(), IsOkAndHolds(IsEmpty()));
  ASSERT_OK_AND_ASSIGN(const auto one, client_->Compile(kTopK));
  EXPECT_THAT(one->CustomCalls(), IsOkAndHolds(ElementsAre("TopK")));
  EXPECT_OK(CompileChecked(*client_, kTopK));
}

}  // namespace
}  // namespace muster::internal
