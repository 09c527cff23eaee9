#include "common/compute/kernels/cuda/cudnn/fake/fake_cudnn.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "common/compute/kernels/cuda/cudnn/fake/fake_attention.h"
#include "common/compute/kernels/cuda/cudnn/fake/fake_convolution.h"
#include "common/compute/kernels/cuda/cudnn/fake/fake_descriptor.h"
#include "common/core/base/check.h"
#include "common/core/device/simulated/simulated_driver.h"

namespace muster {

using cudnn::AttributeName;
using cudnn::AttributeType;
using cudnn::Descriptor;
using cudnn::DescriptorType;
using cudnn::NumericalNote;
using cudnn::Result;

namespace cudnn {
struct Handle {
  driver::StreamHandle* stream = nullptr;
};
}  // namespace cudnn

namespace {

constexpr size_t kWorkspaceBytes = 2048;
constexpr int64_t kHungryBytes = int64_t{1} << 40;
constexpr uint64_t kWorkspaceAlignmentBytes = 16;

std::atomic<FakeCudnn::State*> the_library = nullptr;

std::optional<NumericalNote> NoteOf(FakeEngine engine) {
  switch (engine) {
    case FakeEngine::kNondeterministic:
      return NumericalNote::kNondeterministic;
    case FakeEngine::kDownConverting:
      return NumericalNote::kDownConvertInputs;
    case FakeEngine::kReducingImprecisely:
      return NumericalNote::kReducedPrecisionReduction;
    case FakeEngine::kTensorCore:
      return NumericalNote::kTensorCore;
    default:
      return std::nullopt;
  }
}

// Returns the elements of an attribute, as cudnnBackendGetAttribute() does.
template <typename T>
Result Return(const std::vector<T>& values, int64_t wanted_count,
              int64_t* count, void* elements) {
  *count = static_cast<int64_t>(values.size());
  if (wanted_count == 0) return cudnn::kSuccess;
  *count = std::min(*count, wanted_count);
  std::memcpy(elements, values.data(), *count * sizeof(T));
  return cudnn::kSuccess;
}

std::vector<FakeDescriptor*> OperationsOf(const FakeDescriptor& graph) {
  return graph.List<FakeDescriptor*>(AttributeName::kGraphOperations);
}

bool IsConvolution(const FakeDescriptor& operation) {
  return operation.type() == DescriptorType::kConvolutionForward ||
         operation.type() == DescriptorType::kConvolutionBackwardData ||
         operation.type() == DescriptorType::kConvolutionBackwardFilter;
}

// Returns the address that a pack assigns to a tensor; nothing if there is none
// or it is not valid for the tensor.
std::optional<void*> AddressOf(const FakeDescriptor& pack,
                               const FakeTensor& tensor) {
  const auto ids = pack.List<int64_t>(AttributeName::kPackUniqueIds);
  const auto addresses = pack.List<void*>(AttributeName::kPackDataPointers);
  const auto found = std::find(ids.begin(), ids.end(), tensor.id);
  if (found == ids.end() || ids.size() != addresses.size()) return std::nullopt;
  void* const address = addresses[found - ids.begin()];
  if (reinterpret_cast<uintptr_t>(address) % tensor.alignment_bytes != 0 ||
      !SimulatedMachine::IsDeviceMemory(address, tensor.size_bytes())) {
    return std::nullopt;
  }
  return address;
}

// Returns the number in host memory that a pack assigns to a tensor.
std::optional<float> NumberOf(const FakeDescriptor& pack, int64_t id) {
  const auto ids = pack.List<int64_t>(AttributeName::kPackUniqueIds);
  const auto addresses = pack.List<void*>(AttributeName::kPackDataPointers);
  const auto found = std::find(ids.begin(), ids.end(), id);
  if (found == ids.end() || ids.size() != addresses.size()) return std::nullopt;
  const void* const address = addresses[found - ids.begin()];
  if (SimulatedMachine::IsDeviceMemory(address, sizeof(float))) {
    return std::nullopt;
  }
  return *static_cast<const float*>(address);
}

// Sets the tensors' addresses from a pack. Returns false if an address is not
// valid.
bool SetAddresses(const FakeDescriptor& pack, FakeConvolution* convolution) {
  for (FakeTensor* tensor :
       {&convolution->x, &convolution->w, &convolution->y}) {
    const std::optional<void*> address = AddressOf(pack, *tensor);
    if (!address.has_value()) return false;
    tensor->data = *address;
  }
  return true;
}

bool SetAddresses(const FakeDescriptor& pack, FakeAttention* attention) {
  for (auto& [id, operand] : attention->operands()) {
    if (operand.is_virtual) continue;
    if (operand.is_by_value) {
      const std::optional<float> number = NumberOf(pack, id);
      if (!number.has_value()) return false;
      operand.value = *number;
      continue;
    }
    const std::optional<void*> address = AddressOf(pack, operand.tensor);
    if (!address.has_value()) return false;
    operand.tensor.data = *address;
  }
  return true;
}

// Returns the computation of a plan with the addresses of a pack; null if an
// address is not valid.
std::function<void()> ComputationOf(const FakeDescriptor& plan,
                                    const FakeDescriptor& pack) {
  const std::vector<FakeDescriptor*> operations = OperationsOf(*plan.graph);
  if (!IsConvolution(*operations[0])) {
    std::optional<FakeAttention> attention = FakeAttention::Of(operations);
    if (!attention.has_value() || !SetAddresses(pack, &*attention)) return {};
    return
        [attention = *std::move(attention)]() mutable { attention.Compute(); };
  }
  std::optional<FakeConvolution> convolution =
      FakeConvolution::Of(*operations[0]);
  if (!convolution.has_value() || !SetAddresses(pack, &*convolution)) return {};
  convolution->rounds_to_tensor_float_32 =
      static_cast<FakeEngine>(plan.engine) == FakeEngine::kTensorCore &&
      convolution->x.type == cudnn::CudnnDataType::kFloat32;
  return [convolution = *convolution]() mutable { convolution.Compute(); };
}

}  // namespace

class FakeCudnn::State {
 public:
  // Counts the call. Returns the error that a test has set for it, or kSuccess.
  Result Enter(const char* function) {
    const absl::MutexLock lock(&mutex_);
    ++counts_[function];
    const auto fault = faults_.find(function);
    if (fault == faults_.end() || fault->second.after-- > 0) {
      return cudnn::kSuccess;
    }
    const Result result = fault->second.result;
    faults_.erase(fault);
    return result;
  }

  Descriptor Make(DescriptorType type) {
    auto made = std::make_unique<FakeDescriptor>(type);
    const Descriptor handle = made.get();
    const absl::MutexLock lock(&mutex_);
    descriptors_[handle] = std::move(made);
    return handle;
  }
  Result Destroy(Descriptor handle) {
    const absl::MutexLock lock(&mutex_);
    return descriptors_.erase(handle) == 1 ? cudnn::kSuccess : cudnn::kBadParam;
  }
  // Returns null if `handle` is not an existing descriptor.
  FakeDescriptor* Find(Descriptor handle) {
    const absl::MutexLock lock(&mutex_);
    const auto found = descriptors_.find(handle);
    return found == descriptors_.end() ? nullptr : found->second.get();
  }

  Result Finalize(FakeDescriptor* descriptor) {
    if (descriptor == nullptr || descriptor->is_finalized() ||
        !IsUsable(*descriptor)) {
      return cudnn::kBadParam;
    }
    const Result result = Check(descriptor);
    if (result == cudnn::kSuccess) descriptor->set_finalized();
    return result;
  }

  Result Get(const FakeDescriptor& descriptor, AttributeName attribute,
             AttributeType type, int64_t wanted_count, int64_t* count,
             void* elements) {
    const auto engine = static_cast<FakeEngine>(descriptor.engine);
    if (attribute == AttributeName::kHeuristicResults &&
        type == AttributeType::kDescriptor) {
      return GetConfigs(descriptor, wanted_count, count,
                        static_cast<Descriptor*>(elements));
    }
    if (attribute == AttributeName::kEngineConfigEngine &&
        type == AttributeType::kDescriptor) {
      return Fill(descriptor, DescriptorType::kEngine, {descriptor.engine},
                  wanted_count, count, static_cast<Descriptor*>(elements));
    }
    if (attribute == AttributeName::kEngineNumericalNotes &&
        type == AttributeType::kNumericalNote) {
      std::vector<NumericalNote> notes;
      if (NoteOf(engine).has_value()) notes.push_back(*NoteOf(engine));
      return Return(notes, wanted_count, count, elements);
    }
    if (attribute == AttributeName::kEngineBehaviorNotes &&
        type == AttributeType::kBehaviorNote) {
      std::vector<cudnn::BehaviorNote> notes;
      if (engine == FakeEngine::kCompiled ||
          !IsConvolution(*OperationsOf(*descriptor.graph)[0])) {
        notes.push_back(cudnn::BehaviorNote::kRuntimeCompilation);
      }
      return Return(notes, wanted_count, count, elements);
    }
    if (attribute == AttributeName::kPlanWorkspaceSize &&
        type == AttributeType::kInt64 && descriptor.is_finalized()) {
      const int64_t bytes = engine == FakeEngine::kLargeWorkspace
                                ? kHungryBytes
                                : int64_t{kWorkspaceBytes};
      return Return(std::vector<int64_t>{bytes}, wanted_count, count, elements);
    }
    return cudnn::kBadParam;
  }

  Result Execute(cudnn::Handle* handle, FakeDescriptor* plan,
                 FakeDescriptor* pack) {
    if (plan == nullptr || pack == nullptr || !plan->is_finalized() ||
        !pack->is_finalized() ||
        plan->type() != DescriptorType::kExecutionPlan ||
        pack->type() != DescriptorType::kVariantPack || !IsUsable(*plan)) {
      return cudnn::kBadParam;
    }
    void* const workspace = pack->Get<void*>(AttributeName::kPackWorkspace);
    std::function<void()> compute = ComputationOf(*plan, *pack);
    if (compute == nullptr ||
        reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAlignmentBytes !=
            0 ||
        !SimulatedMachine::IsDeviceMemory(workspace, kWorkspaceBytes)) {
      return cudnn::kBadParam;
    }
    {
      const absl::MutexLock lock(&mutex_);
      ++engine_counts_[static_cast<FakeEngine>(plan->engine)];
    }
    const driver::Result result = SimulatedMachine::Enqueue(
        handle->stream, [compute = std::move(compute), workspace] {
          std::memset(workspace, 0xff, kWorkspaceBytes);
          compute();
          return driver::kSuccess;
        });
    return result == driver::kSuccess ? cudnn::kSuccess
                                      : cudnn::kExecutionFailed;
  }

  struct Fault {
    Result result;
    int after;
  };

  mutable absl::Mutex mutex_;
  std::map<std::string, int64_t> counts_ ABSL_GUARDED_BY(mutex_);
  std::map<FakeEngine, int64_t> engine_counts_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Fault> faults_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Descriptor, std::unique_ptr<FakeDescriptor>> descriptors_
      ABSL_GUARDED_BY(mutex_);

 private:
  // True if all descriptors to which this one refers exist and are finalized.
  bool IsUsable(const FakeDescriptor& descriptor) {
    for (FakeDescriptor* const reference : descriptor.References()) {
      if (Find(reference) == nullptr || !reference->is_finalized() ||
          !IsUsable(*reference)) {
        return false;
      }
    }
    return descriptor.graph == nullptr ||
           (Find(descriptor.graph) != nullptr && IsUsable(*descriptor.graph));
  }

  Result Check(FakeDescriptor* descriptor) {
    if (!descriptor->IsComplete()) return cudnn::kBadParam;
    switch (descriptor->type()) {
      case DescriptorType::kTensor:
        return FakeTensor::Of(*descriptor).has_value() ? cudnn::kSuccess
                                                       : cudnn::kBadParam;
      case DescriptorType::kConvolutionForward:
      case DescriptorType::kConvolutionBackwardData:
      case DescriptorType::kConvolutionBackwardFilter:
        return FakeConvolution::Of(*descriptor).has_value() ? cudnn::kSuccess
                                                            : cudnn::kBadParam;
      case DescriptorType::kOperationGraph: {
        const std::vector<FakeDescriptor*> operations =
            OperationsOf(*descriptor);
        const bool is_known = IsConvolution(*operations[0])
                                  ? operations.size() == 1
                                  : FakeAttention::Of(operations).has_value();
        return is_known ? cudnn::kSuccess : cudnn::kBadParam;
      }
      case DescriptorType::kEngineHeuristic:
        descriptor->graph =
            descriptor->Descriptor(AttributeName::kHeuristicOperationGraph);
        return cudnn::kSuccess;
      case DescriptorType::kExecutionPlan: {
        const FakeDescriptor& config =
            *descriptor->Descriptor(AttributeName::kPlanEngineConfig);
        descriptor->engine = config.engine;
        descriptor->graph = config.graph;
        return static_cast<FakeEngine>(config.engine) ==
                       FakeEngine::kUnsupported
                   ? cudnn::kNotSupported
                   : cudnn::kSuccess;
      }
      default:
        return cudnn::kSuccess;
    }
  }

  Result GetConfigs(const FakeDescriptor& heuristic, int64_t wanted_count,
                    int64_t* count, Descriptor* elements) {
    std::vector<int> engines = {static_cast<int>(FakeEngine::kPlain)};
    if (heuristic.Get<cudnn::HeuristicMode>(AttributeName::kHeuristicMode) ==
        cudnn::HeuristicMode::kA) {
      engines.clear();
      for (int i = 0; i < static_cast<int>(FakeEngine::kPlain); ++i) {
        engines.push_back(i);
      }
    }
    return Fill(heuristic, DescriptorType::kEngineConfig, engines, wanted_count,
                count, elements);
  }

  // Fills and finalizes the descriptors that the caller has created for the
  // results.
  Result Fill(const FakeDescriptor& from, DescriptorType type,
              const std::vector<int>& engines, int64_t wanted_count,
              int64_t* count, Descriptor* elements) {
    if (!from.is_finalized()) return cudnn::kBadParam;
    *count = static_cast<int64_t>(engines.size());
    if (wanted_count == 0) return cudnn::kSuccess;
    *count = std::min(*count, wanted_count);
    for (int64_t i = 0; i < *count; ++i) {
      FakeDescriptor* const made = Find(elements[i]);
      if (made == nullptr || made->type() != type || made->is_finalized()) {
        return cudnn::kBadParam;
      }
      made->engine = engines[i];
      made->graph = from.graph;
      made->set_finalized();
    }
    return cudnn::kSuccess;
  }
};

namespace {

// The beginning of each library function. Defines `library`, the fake.
#define MUSTER_ENTER(function)                           \
  FakeCudnn::State* const library = the_library;         \
  if (library == nullptr) return cudnn::kNotInitialized; \
  if (const Result entered = library->Enter(function);   \
      entered != cudnn::kSuccess) {                      \
    return entered;                                      \
  }

void SetHandleFunctions(cudnn::CudnnApi* api) {
  api->cudnnGetVersion = []() -> size_t { return 91900; };
  api->cudnnGetErrorString = [](Result) -> const char* {
    return "an error of the fake cuDNN";
  };
  api->cudnnGetLastErrorString = [](char* message, size_t size) {
    if (size > 0) message[0] = '\0';
  };
  api->cudnnCreate = [](cudnn::Handle** handle) -> Result {
    MUSTER_ENTER("cudnnCreate");
    *handle = new cudnn::Handle();
    return cudnn::kSuccess;
  };
  api->cudnnDestroy = [](cudnn::Handle* handle) -> Result {
    MUSTER_ENTER("cudnnDestroy");
    delete handle;
    return cudnn::kSuccess;
  };
  api->cudnnSetStream = [](cudnn::Handle* handle,
                           driver::StreamHandle* stream) -> Result {
    MUSTER_ENTER("cudnnSetStream");
    handle->stream = stream;
    return cudnn::kSuccess;
  };
}

void SetDescriptorFunctions(cudnn::CudnnApi* api) {
  api->cudnnBackendCreateDescriptor = [](DescriptorType type,
                                         Descriptor* descriptor) -> Result {
    MUSTER_ENTER("cudnnBackendCreateDescriptor");
    *descriptor = library->Make(type);
    return cudnn::kSuccess;
  };
  api->cudnnBackendDestroyDescriptor = [](Descriptor descriptor) -> Result {
    MUSTER_ENTER("cudnnBackendDestroyDescriptor");
    return library->Destroy(descriptor);
  };
  api->cudnnBackendSetAttribute = [](Descriptor handle, AttributeName attribute,
                                     AttributeType type, int64_t count,
                                     const void* values) -> Result {
    MUSTER_ENTER("cudnnBackendSetAttribute");
    FakeDescriptor* const descriptor = library->Find(handle);
    return descriptor == nullptr
               ? cudnn::kBadParam
               : descriptor->Set(attribute, type, count, values);
  };
  api->cudnnBackendFinalize = [](Descriptor handle) -> Result {
    MUSTER_ENTER("cudnnBackendFinalize");
    return library->Finalize(library->Find(handle));
  };
  api->cudnnBackendGetAttribute = [](Descriptor handle, AttributeName attribute,
                                     AttributeType type, int64_t wanted_count,
                                     int64_t* count, void* elements) -> Result {
    MUSTER_ENTER("cudnnBackendGetAttribute");
    FakeDescriptor* const descriptor = library->Find(handle);
    return descriptor == nullptr ? cudnn::kBadParam
                                 : library->Get(*descriptor, attribute, type,
                                                wanted_count, count, elements);
  };
  api->cudnnBackendExecute = [](cudnn::Handle* handle, Descriptor plan,
                                Descriptor pack) -> Result {
    MUSTER_ENTER("cudnnBackendExecute");
    return library->Execute(handle, library->Find(plan), library->Find(pack));
  };
}

#undef MUSTER_ENTER

}  // namespace

FakeCudnn::FakeCudnn() : state_(std::make_unique<State>()) {
  MUSTER_CHECK(the_library.exchange(state_.get()) == nullptr);
}

FakeCudnn::~FakeCudnn() { the_library = nullptr; }

const cudnn::CudnnApi& FakeCudnn::api() const {
  static const cudnn::CudnnApi api = [] {
    cudnn::CudnnApi made;
    SetHandleFunctions(&made);
    SetDescriptorFunctions(&made);
    made.version = made.cudnnGetVersion();
    made.is_simulated = true;
    return made;
  }();
  return api;
}

void FakeCudnn::Fail(absl::string_view function, Result result, int after) {
  const absl::MutexLock lock(&state_->mutex_);
  state_->faults_[std::string(function)] = {result, after};
}

std::map<std::string, int64_t> FakeCudnn::counts() const {
  const absl::MutexLock lock(&state_->mutex_);
  return state_->counts_;
}

std::map<FakeEngine, int64_t> FakeCudnn::engine_counts() const {
  const absl::MutexLock lock(&state_->mutex_);
  return state_->engine_counts_;
}

int64_t FakeCudnn::descriptor_count() const {
  const absl::MutexLock lock(&state_->mutex_);
  return static_cast<int64_t>(state_->descriptors_.size());
}

}  // namespace muster
