// Tests the cuBLASLt of this machine as far as possible without a GPU, and the
// errors if there is no cuBLASLt.
#include "common/compute/kernels/cuda/cublas_lt/real_cublas_lt.h"

#include <dlfcn.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/kernels/cuda/cublas_lt/cublas_lt.h"
#include "common/compute/kernels/cuda/cublas_lt/cublas_lt_api.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/driver/cuda_library.h"
#include "common/core/tensor/dtype.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using cublas_lt::LayoutAttribute;
using cublas_lt::MatmulAttribute;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kNewestDriver = 13000;

TEST(LoadCublasLtTest, AMissingLibraryIsNamedWithTheAlternative) {
  EXPECT_THAT(LoadCublasLt("libcublasLt_nobody_has.so.13"),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("no cuBLASLt 12.0.0 or later"),
                             HasSubstr("libcublasLt_nobody_has.so.13"),
                             HasSubstr("MUSTER_CUDA_PATH"))));
}

TEST(LoadCublasLtTest, ALibraryWithoutAFunctionIsNamedWithTheFunction) {
  EXPECT_THAT(
      LoadCublasLt("libm.so.6"),
      StatusIs(absl::StatusCode::kUnavailable,
               HasSubstr("libm.so.6 has no function cublasLtGetVersion")));
}

TEST(LoadCublasLtTest, TheLibraryOfTheMachineIsLoadedOnce) {
  const absl::StatusOr<const cublas_lt::CublasLtApi*> api =
      RealCublasLt(kNewestDriver);
  if (!api.ok()) GTEST_SKIP() << api.status();
  EXPECT_GE((*api)->version, cublas_lt::kVersionMin);
  EXPECT_FALSE((*api)->is_simulated);
  EXPECT_EQ(*RealCublasLt(kNewestDriver), *api);
}

// Reads the attributes of descriptors with functions that only this test needs.
class RealDescriptorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<const cublas_lt::CublasLtApi*> api =
        RealCublasLt(kNewestDriver);
    if (!api.ok()) GTEST_SKIP() << api.status();
    api_ = *api;
    const std::string name =
        api_->version >= 130000 ? "libcublasLt.so.13" : "libcublasLt.so.12";
    ASSERT_OK_AND_ASSIGN(void* const library, LoadCudaLibrary(name));
    get_operation_ = reinterpret_cast<GetFunction>(
        dlsym(library, "cublasLtMatmulDescGetAttribute"));
    get_layout_ = reinterpret_cast<GetFunction>(
        dlsym(library, "cublasLtMatrixLayoutGetAttribute"));
    ASSERT_NE(get_operation_, nullptr);
    ASSERT_NE(get_layout_, nullptr);
  }

  template <typename T>
  T Get(cublas_lt::MatmulDescription* operation, MatmulAttribute attribute) {
    return GetBy<T>(get_operation_, operation, static_cast<int>(attribute));
  }
  template <typename T>
  T Get(cublas_lt::MatrixLayout* layout, LayoutAttribute attribute) {
    return GetBy<T>(get_layout_, layout, static_cast<int>(attribute));
  }

  void ExpectLayout(cublas_lt::MatrixLayout* layout, uint64_t rows,
                    uint64_t columns, int64_t batch_stride) {
    EXPECT_EQ(Get<uint64_t>(layout, LayoutAttribute::kRows), rows);
    EXPECT_EQ(Get<uint64_t>(layout, LayoutAttribute::kColumns), columns);
    EXPECT_EQ(Get<int64_t>(layout, LayoutAttribute::kLeadingDimension), rows);
    EXPECT_EQ(Get<int64_t>(layout, LayoutAttribute::kBatchStride),
              batch_stride);
  }

  const cublas_lt::CublasLtApi* api_ = nullptr;

 private:
  using GetFunction = cublas_lt::Result (*)(void*, int, void*, size_t, size_t*);

  template <typename T>
  static T GetBy(GetFunction function, void* descriptor, int attribute) {
    T value = {};
    size_t written_bytes = 0;
    EXPECT_EQ(
        function(descriptor, attribute, &value, sizeof(value), &written_bytes),
        cublas_lt::kSuccess)
        << "attribute " << attribute;
    EXPECT_EQ(written_bytes, sizeof(value)) << "attribute " << attribute;
    return value;
  }

  GetFunction get_operation_ = nullptr;
  GetFunction get_layout_ = nullptr;
};

TEST_F(RealDescriptorsTest, TheLibraryReadsThemAsTheyAreMeant) {
  const MatMulProblem problem = {.dtype = DType::kBfloat16,
                                 .rows = 3,
                                 .columns = 5,
                                 .inner = 7,
                                 .transpose_a = true,
                                 .batch_count = 11,
                                 .a_batch_stride = 21,
                                 .b_batch_stride = 0,
                                 .epilogue = cublas_lt::Epilogue::kReluBias};
  ASSERT_OK_AND_ASSIGN(const MatMulDescriptors descriptors,
                       MatMulDescriptors::Create(api_, problem));
  cublas_lt::MatmulDescription* const operation = descriptors.operation();
  EXPECT_EQ(Get<cublas_lt::CublasComputeType>(operation,
                                              MatmulAttribute::kComputeType),
            cublas_lt::CublasComputeType::kFloat32);
  EXPECT_EQ(
      Get<cublas_lt::CudaDataType>(operation, MatmulAttribute::kScaleType),
      cublas_lt::CudaDataType::kFloat32);
  EXPECT_EQ(Get<cublas_lt::Operation>(operation, MatmulAttribute::kTransposeA),
            cublas_lt::Operation::kNone);
  EXPECT_EQ(Get<cublas_lt::Operation>(operation, MatmulAttribute::kTransposeB),
            cublas_lt::Operation::kTranspose);
  EXPECT_EQ(Get<cublas_lt::Epilogue>(operation, MatmulAttribute::kEpilogue),
            cublas_lt::Epilogue::kReluBias);
  ExpectLayout(descriptors.b(), 5, 7, 0);
  ExpectLayout(descriptors.a(), 3, 7, 21);
  ExpectLayout(descriptors.y(), 5, 3, 15);
  EXPECT_EQ(Get<int32_t>(descriptors.y(), LayoutAttribute::kBatchCount), 11);
  EXPECT_EQ(
      Get<cublas_lt::CudaDataType>(descriptors.y(), LayoutAttribute::kType),
      cublas_lt::CudaDataType::kBfloat16);
}

TEST_F(RealDescriptorsTest, TensorFloat32AppliesToFloat32Only) {
  const auto compute_type_of = [&](DType dtype, bool tensor_float_32) {
    const absl::StatusOr<MatMulDescriptors> made =
        MatMulDescriptors::Create(api_, {.dtype = dtype,
                                         .rows = 1,
                                         .columns = 1,
                                         .inner = 1,
                                         .tensor_float_32 = tensor_float_32});
    EXPECT_OK(made);
    return Get<cublas_lt::CublasComputeType>(made->operation(),
                                             MatmulAttribute::kComputeType);
  };
  EXPECT_EQ(compute_type_of(DType::kFloat32, false),
            cublas_lt::CublasComputeType::kFloat32);
  EXPECT_EQ(compute_type_of(DType::kFloat32, true),
            cublas_lt::CublasComputeType::kTensorFloat32);
  EXPECT_EQ(compute_type_of(DType::kFloat16, true),
            cublas_lt::CublasComputeType::kFloat32);
  EXPECT_EQ(compute_type_of(DType::kFloat64, true),
            cublas_lt::CublasComputeType::kFloat64);
}

}  // namespace
}  // namespace muster
