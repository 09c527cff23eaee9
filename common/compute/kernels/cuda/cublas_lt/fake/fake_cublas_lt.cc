#include "common/compute/kernels/cuda/cublas_lt/fake/fake_cublas_lt.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/compute/kernels/cuda/cublas_lt/fake/product.h"
#include "common/core/base/check.h"
#include "common/core/device/simulated/simulated_driver.h"

namespace muster {

using cublas_lt::Epilogue;
using cublas_lt::HeuristicResult;
using cublas_lt::MatmulAlgorithm;
using cublas_lt::MatmulDescription;
using cublas_lt::MatrixLayout;
using cublas_lt::Preference;
using cublas_lt::Result;

namespace cublas_lt {
struct Handle {};
struct Preference {
  uint64_t workspace_bytes_max = 0;
  uint32_t reduction_schemes = 7;
  uint32_t alignment_bytes[4] = {256, 256, 256, 256};  // Of A, B, C and D.
};
}  // namespace cublas_lt

namespace {

constexpr uint64_t kAlgorithmMark = 0x616c676f726974;
constexpr size_t kWorkspaceBytes = 4096;
constexpr uint64_t kWorkspaceAlignmentBytes = 16;

std::atomic<FakeCublasLt::State*> the_library = nullptr;

// The content of an MatmulAlgorithm.
struct Choice {
  uint64_t mark = kAlgorithmMark;
  uint64_t fingerprint = 0;
  uint64_t workspace_bytes = 0;
  uint32_t alignment_bytes[4] = {};
  uint64_t bias_alignment_bytes = 0;
  uint64_t unused[2] = {};
};
static_assert(sizeof(Choice) == sizeof(MatmulAlgorithm));

bool IsAligned(const void* address, uint64_t alignment_bytes) {
  return reinterpret_cast<uintptr_t>(address) % alignment_bytes == 0;
}

uint64_t AlignmentOf(const void* address) {
  const auto number = reinterpret_cast<uintptr_t>(address);
  return std::max<uint64_t>(number & ~(number - 1), 1);
}

// True if all memory of the product belongs to the GPU and has the promised
// alignment.
bool IsMemoryUsable(const FakeProduct& product, const Choice& choice) {
  const auto is_usable = [](const void* data, size_t size_bytes,
                            uint64_t alignment_bytes) {
    return IsAligned(data, alignment_bytes) &&
           SimulatedMachine::IsDeviceMemory(data, size_bytes);
  };
  const size_t bias_bytes = product.d.rows * FakeElementBytes(product.d.type);
  return is_usable(product.a_data, FakeSizeBytes(product.a),
                   choice.alignment_bytes[0]) &&
         is_usable(product.b_data, FakeSizeBytes(product.b),
                   choice.alignment_bytes[1]) &&
         is_usable(product.c_data, FakeSizeBytes(product.c),
                   choice.alignment_bytes[2]) &&
         is_usable(product.d_data, FakeSizeBytes(product.d),
                   choice.alignment_bytes[3]) &&
         (!FakeHasBias(product.operation.epilogue) ||
          is_usable(product.operation.bias, bias_bytes,
                    choice.bias_alignment_bytes));
}

// Copies an attribute that must have the size of the field.
template <typename T>
Result SetField(T* field, const void* value, size_t size_bytes) {
  if (value == nullptr || size_bytes != sizeof(T)) {
    return cublas_lt::kInvalidValue;
  }
  std::memcpy(field, value, sizeof(T));
  return cublas_lt::kSuccess;
}

}  // namespace

class FakeCublasLt::State {
 public:
  // Counts the call. Returns the error that a test has set for it, or kSuccess.
  Result Enter(const char* function) {
    const absl::MutexLock lock(&mutex_);
    ++counts_[function];
    const auto fault = faults_.find(function);
    if (fault == faults_.end() || fault->second.after-- > 0) {
      return cublas_lt::kSuccess;
    }
    const Result result = fault->second.result;
    faults_.erase(fault);
    return result;
  }

  Result Choose(const FakeProduct& product, const Preference& preference,
                HeuristicResult* found, int* found_count) {
    *found_count = 0;
    if (!product.IsValid()) return cublas_lt::kInvalidValue;
    const absl::MutexLock lock(&mutex_);
    if (refuses_epilogues_ &&
        product.operation.epilogue != Epilogue::kDefault) {
      return cublas_lt::kNotSupported;
    }
    Choice choice;
    choice.fingerprint = product.Fingerprint();
    choice.workspace_bytes =
        std::min<uint64_t>(kWorkspaceBytes, preference.workspace_bytes_max);
    std::copy_n(preference.alignment_bytes, 4, choice.alignment_bytes);
    choice.bias_alignment_bytes = AlignmentOf(product.operation.bias);
    found->algorithm = std::bit_cast<MatmulAlgorithm>(choice);
    found->workspace_bytes = choice.workspace_bytes;
    found->state = cublas_lt::kSuccess;
    *found_count = 1;
    return cublas_lt::kSuccess;
  }

  Result Launch(const FakeProduct& product, const MatmulAlgorithm* algorithm,
                void* workspace, size_t workspace_bytes,
                driver::StreamHandle* stream) {
    if (algorithm == nullptr) return cublas_lt::kInvalidValue;
    const auto choice = std::bit_cast<Choice>(*algorithm);
    if (!product.IsValid() || choice.mark != kAlgorithmMark ||
        choice.fingerprint != product.Fingerprint() ||
        !IsMemoryUsable(product, choice) ||
        workspace_bytes < choice.workspace_bytes ||
        !IsAligned(workspace, kWorkspaceAlignmentBytes) ||
        !SimulatedMachine::IsDeviceMemory(workspace, choice.workspace_bytes)) {
      return cublas_lt::kInvalidValue;
    }
    {
      const absl::MutexLock lock(&mutex_);
      ++epilogue_counts_[product.operation.epilogue];
    }
    const driver::Result result =
        SimulatedMachine::Enqueue(stream, [product, workspace, choice] {
          std::memset(workspace, 0xff, choice.workspace_bytes);
          product.Compute();
          return driver::kSuccess;
        });
    return result == driver::kSuccess ? cublas_lt::kSuccess
                                      : cublas_lt::kExecutionFailed;
  }

  struct Fault {
    Result result;
    int after;
  };

  mutable absl::Mutex mutex_;
  std::map<std::string, int64_t> counts_ ABSL_GUARDED_BY(mutex_);
  std::map<Epilogue, int64_t> epilogue_counts_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Fault> faults_ ABSL_GUARDED_BY(mutex_);
  bool refuses_epilogues_ ABSL_GUARDED_BY(mutex_) = false;
};

namespace {

// The beginning of each library function. Defines `library`, the fake.
#define MUSTER_ENTER(function)                               \
  FakeCublasLt::State* const library = the_library;          \
  if (library == nullptr) return cublas_lt::kNotInitialized; \
  if (const Result entered = library->Enter(function);       \
      entered != cublas_lt::kSuccess) {                      \
    return entered;                                          \
  }

void SetHandleFunctions(cublas_lt::CublasLtApi* api) {
  api->cublasLtGetVersion = []() -> size_t { return 130100; };
  api->cublasLtGetStatusString = [](Result) -> const char* {
    return "an error of the fake cuBLASLt";
  };
  api->cublasLtCreate = [](cublas_lt::Handle** handle) -> Result {
    MUSTER_ENTER("cublasLtCreate");
    *handle = new cublas_lt::Handle();
    return cublas_lt::kSuccess;
  };
  api->cublasLtDestroy = [](cublas_lt::Handle* handle) -> Result {
    MUSTER_ENTER("cublasLtDestroy");
    delete handle;
    return cublas_lt::kSuccess;
  };
}

void SetDescriptionFunctions(cublas_lt::CublasLtApi* api) {
  api->cublasLtMatmulDescCreate =
      [](MatmulDescription** description,
         cublas_lt::CublasComputeType compute_type,
         cublas_lt::CudaDataType scale_type) -> Result {
    MUSTER_ENTER("cublasLtMatmulDescCreate");
    *description = new MatmulDescription{.compute_type = compute_type,
                                         .scale_type = scale_type};
    return cublas_lt::kSuccess;
  };
  api->cublasLtMatmulDescDestroy =
      [](MatmulDescription* description) -> Result {
    MUSTER_ENTER("cublasLtMatmulDescDestroy");
    delete description;
    return cublas_lt::kSuccess;
  };
  api->cublasLtMatmulDescSetAttribute =
      [](MatmulDescription* description, cublas_lt::MatmulAttribute attribute,
         const void* value, size_t size_bytes) -> Result {
    MUSTER_ENTER("cublasLtMatmulDescSetAttribute");
    using Attribute = cublas_lt::MatmulAttribute;
    switch (attribute) {
      case Attribute::kComputeType:
        return SetField(&description->compute_type, value, size_bytes);
      case Attribute::kScaleType:
        return SetField(&description->scale_type, value, size_bytes);
      case Attribute::kTransposeA:
        return SetField(&description->transpose_a, value, size_bytes);
      case Attribute::kTransposeB:
        return SetField(&description->transpose_b, value, size_bytes);
      case Attribute::kEpilogue:
        return SetField(&description->epilogue, value, size_bytes);
      case Attribute::kBiasPointer:
        return SetField(&description->bias, value, size_bytes);
    }
    return cublas_lt::kInvalidValue;
  };
}

void SetLayoutFunctions(cublas_lt::CublasLtApi* api) {
  api->cublasLtMatrixLayoutCreate =
      [](MatrixLayout** layout, cublas_lt::CudaDataType type, uint64_t rows,
         uint64_t columns, int64_t leading_dimension) -> Result {
    MUSTER_ENTER("cublasLtMatrixLayoutCreate");
    *layout = new MatrixLayout{.type = type,
                               .rows = rows,
                               .columns = columns,
                               .leading_dimension = leading_dimension};
    return cublas_lt::kSuccess;
  };
  api->cublasLtMatrixLayoutDestroy = [](MatrixLayout* layout) -> Result {
    MUSTER_ENTER("cublasLtMatrixLayoutDestroy");
    delete layout;
    return cublas_lt::kSuccess;
  };
  api->cublasLtMatrixLayoutSetAttribute =
      [](MatrixLayout* layout, cublas_lt::LayoutAttribute attribute,
         const void* value, size_t size_bytes) -> Result {
    MUSTER_ENTER("cublasLtMatrixLayoutSetAttribute");
    using Attribute = cublas_lt::LayoutAttribute;
    switch (attribute) {
      case Attribute::kType:
        return SetField(&layout->type, value, size_bytes);
      case Attribute::kRows:
        return SetField(&layout->rows, value, size_bytes);
      case Attribute::kColumns:
        return SetField(&layout->columns, value, size_bytes);
      case Attribute::kLeadingDimension:
        return SetField(&layout->leading_dimension, value, size_bytes);
      case Attribute::kBatchCount:
        return SetField(&layout->batch_count, value, size_bytes);
      case Attribute::kBatchStride:
        return SetField(&layout->batch_stride, value, size_bytes);
    }
    return cublas_lt::kInvalidValue;
  };
}

void SetPreferenceFunctions(cublas_lt::CublasLtApi* api) {
  api->cublasLtMatmulPreferenceCreate = [](Preference** preference) -> Result {
    MUSTER_ENTER("cublasLtMatmulPreferenceCreate");
    *preference = new Preference();
    return cublas_lt::kSuccess;
  };
  api->cublasLtMatmulPreferenceDestroy = [](Preference* preference) -> Result {
    MUSTER_ENTER("cublasLtMatmulPreferenceDestroy");
    delete preference;
    return cublas_lt::kSuccess;
  };
  api->cublasLtMatmulPreferenceSetAttribute =
      [](Preference* preference, cublas_lt::PreferenceAttribute attribute,
         const void* value, size_t size_bytes) -> Result {
    MUSTER_ENTER("cublasLtMatmulPreferenceSetAttribute");
    using Attribute = cublas_lt::PreferenceAttribute;
    uint32_t* const alignments = preference->alignment_bytes;
    switch (attribute) {
      case Attribute::kWorkspaceBytesMax:
        return SetField(&preference->workspace_bytes_max, value, size_bytes);
      case Attribute::kReductionSchemes:
        return SetField(&preference->reduction_schemes, value, size_bytes);
      case Attribute::kAlignmentABytes:
        return SetField(&alignments[0], value, size_bytes);
      case Attribute::kAlignmentBBytes:
        return SetField(&alignments[1], value, size_bytes);
      case Attribute::kAlignmentCBytes:
        return SetField(&alignments[2], value, size_bytes);
      case Attribute::kAlignmentDBytes:
        return SetField(&alignments[3], value, size_bytes);
    }
    return cublas_lt::kInvalidValue;
  };
}

double FactorOf(const MatmulDescription& operation, const void* factor) {
  return operation.scale_type == cublas_lt::CudaDataType::kFloat64
             ? *static_cast<const double*>(factor)
             : *static_cast<const float*>(factor);
}

void SetProductFunctions(cublas_lt::CublasLtApi* api) {
  api->cublasLtMatmulAlgoGetHeuristic =
      [](cublas_lt::Handle*, MatmulDescription* operation, MatrixLayout* a,
         MatrixLayout* b, MatrixLayout* c, MatrixLayout* d,
         Preference* preference, int wanted_count, HeuristicResult* found,
         int* found_count) -> Result {
    MUSTER_ENTER("cublasLtMatmulAlgoGetHeuristic");
    if (wanted_count < 1) return cublas_lt::kInvalidValue;
    const FakeProduct product = {
        .operation = *operation, .a = *a, .b = *b, .c = *c, .d = *d};
    return library->Choose(product, *preference, found, found_count);
  };
  api->cublasLtMatmul =
      [](cublas_lt::Handle*, MatmulDescription* operation, const void* alpha,
         const void* a_data, MatrixLayout* a, const void* b_data,
         MatrixLayout* b, const void* beta, const void* c_data, MatrixLayout* c,
         void* d_data, MatrixLayout* d, const MatmulAlgorithm* algorithm,
         void* workspace, size_t workspace_bytes,
         driver::StreamHandle* stream) -> Result {
    MUSTER_ENTER("cublasLtMatmul");
    const FakeProduct product = {.operation = *operation,
                                 .a = *a,
                                 .b = *b,
                                 .c = *c,
                                 .d = *d,
                                 .alpha = FactorOf(*operation, alpha),
                                 .beta = FactorOf(*operation, beta),
                                 .a_data = a_data,
                                 .b_data = b_data,
                                 .c_data = c_data,
                                 .d_data = d_data};
    return library->Launch(product, algorithm, workspace, workspace_bytes,
                           stream);
  };
}

#undef MUSTER_ENTER

}  // namespace

FakeCublasLt::FakeCublasLt() : state_(std::make_unique<State>()) {
  MUSTER_CHECK(the_library.exchange(state_.get()) == nullptr);
}

FakeCublasLt::~FakeCublasLt() { the_library = nullptr; }

const cublas_lt::CublasLtApi& FakeCublasLt::api() const {
  static const cublas_lt::CublasLtApi api = [] {
    cublas_lt::CublasLtApi made;
    SetHandleFunctions(&made);
    SetDescriptionFunctions(&made);
    SetLayoutFunctions(&made);
    SetPreferenceFunctions(&made);
    SetProductFunctions(&made);
    made.version = made.cublasLtGetVersion();
    made.is_simulated = true;
    return made;
  }();
  return api;
}

void FakeCublasLt::Fail(absl::string_view function, Result result, int after) {
  const absl::MutexLock lock(&state_->mutex_);
  state_->faults_[std::string(function)] = {result, after};
}

void FakeCublasLt::RefuseEpilogues() {
  const absl::MutexLock lock(&state_->mutex_);
  state_->refuses_epilogues_ = true;
}

std::map<std::string, int64_t> FakeCublasLt::counts() const {
  const absl::MutexLock lock(&state_->mutex_);
  return state_->counts_;
}

std::map<Epilogue, int64_t> FakeCublasLt::epilogue_counts() const {
  const absl::MutexLock lock(&state_->mutex_);
  return state_->epilogue_counts_;
}

}  // namespace muster
