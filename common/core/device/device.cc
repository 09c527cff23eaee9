#include "common/core/device/device.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

// Required by programmatic dependent launch.
constexpr int kOverlappingComputeCapability = 90;

absl::Status CheckQuery(const driver::DriverApi& api, driver::Result result,
                        int ordinal) {
  if (result == driver::kSuccess) return absl::OkStatus();
  const char* text = nullptr;
  api.cuGetErrorString(result, &text);
  const std::string message =
      absl::StrCat("cannot query GPU ", ordinal, ": ",
                   text == nullptr ? "?" : text, " (", result, ")");
  return result == driver::kInvalidDevice ? absl::InvalidArgumentError(message)
                                          : absl::InternalError(message);
}

// Returns the argument of cuLibraryLoadData(): code for the GPU or, under a
// simulated driver, the image itself, whose kernels are functions of this
// process.
const void* CodeOf(const KernelImage& image, const driver::DriverApi& api) {
  if (api.is_simulated) return &image;
  return image.fatbin.empty() ? nullptr : image.fatbin.data();
}

}  // namespace

std::string DeviceDescription::ToString() const {
  return absl::StrFormat("%s: %s, sm_%d, %.1f GiB, CUDA %d.%d", name, model,
                         compute_capability,
                         static_cast<double>(memory_bytes) / (1 << 30),
                         driver_version / 1000, driver_version % 1000 / 10);
}

absl::StatusOr<DeviceDescription> DescribePhysicalDevice(
    const driver::DriverApi& api, int ordinal) {
  using driver::DeviceAttribute;
  DeviceDescription description{.ordinal = ordinal,
                                .is_simulated = api.is_simulated};
  int device = 0;
  RETURN_IF_ERROR(CheckQuery(api, api.cuDeviceGet(&device, ordinal), ordinal));
  char model[128] = {};
  driver::Uuid uuid{};
  int major = 0;
  int minor = 0;
  int l2_cache_bytes = 0;
  for (const driver::Result result :
       {api.cuDeviceGetName(model, sizeof(model), device),
        api.cuDeviceGetUuid_v2(&uuid, device),
        api.cuDeviceTotalMem_v2(&description.memory_bytes, device),
        api.cuDriverGetVersion(&description.driver_version),
        api.cuDeviceGetAttribute(
            &major, DeviceAttribute::kComputeCapabilityMajor, device),
        api.cuDeviceGetAttribute(
            &minor, DeviceAttribute::kComputeCapabilityMinor, device),
        api.cuDeviceGetAttribute(&l2_cache_bytes,
                                 DeviceAttribute::kL2CacheBytes, device),
        api.cuDeviceGetAttribute(&description.multiprocessor_count,
                                 DeviceAttribute::kMultiprocessorCount,
                                 device)}) {
    RETURN_IF_ERROR(CheckQuery(api, result, ordinal));
  }
  description.model = model;
  description.uuid =
      absl::StrCat("GPU-", absl::BytesToHexString(absl::string_view(
                               reinterpret_cast<const char*>(uuid.bytes), 16)));
  description.compute_capability = 10 * major + minor;
  description.l2_cache_bytes = l2_cache_bytes;
  return description;
}

absl::StatusOr<std::unique_ptr<Device>> Device::Create(
    const driver::DriverApi* api, const Options& options) {
  auto device = absl::WrapUnique(new Device);
  ASSIGN_OR_RETURN(device->description_,
                   DescribePhysicalDevice(*api, options.ordinal));
  device->description_.name = options.name;
  device->tensor_float_32_ = options.tensor_float_32;
  device->captures_steps_ = options.captures_steps;
  driver::ContextHandle* context = nullptr;
  RETURN_IF_ERROR(
      CheckQuery(*api, api->cuDevicePrimaryCtxRetain(&context, options.ordinal),
                 options.ordinal));
  device->context_ = std::make_unique<DeviceContext>(
      api, context,
      DeviceContext::Properties{
          .ordinal = options.ordinal,
          .name = options.name,
          .overlaps_launches = device->description_.compute_capability >=
                               kOverlappingComputeCapability});
  device->pinned_memory_ =
      std::make_unique<PinnedMemory>(device->context_.get());
  ASSIGN_OR_RETURN(device->memory_, DeviceMemory::Create(device->context_.get(),
                                                         options.memory));
  return device;
}

Device::~Device() {
  // Releases everything. Errors are ignored: no caller could act on them.
  if (context_ == nullptr) return;
  const driver::DriverApi& api = context_->api();
  memory_ = nullptr;
  pinned_memory_ = nullptr;
  {
    const absl::MutexLock lock(&mutex_);
    for (const auto& [image, library] : libraries_) {
      (void)context_->TryCall(api.cuLibraryUnload, library);
    }
  }
  (void)api.cuDevicePrimaryCtxRelease_v2(description_.ordinal);
}

absl::Status Device::CheckHealth() {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  return context_->Call("cuMemGetInfo", context_->api().cuMemGetInfo_v2,
                        &free_bytes, &total_bytes);
}

absl::StatusOr<std::unique_ptr<DeviceStream>> Device::CreateStream() {
  ASSIGN_OR_RETURN(std::unique_ptr<Event> drained, CreateEvent());
  driver::StreamHandle* handle = nullptr;
  RETURN_IF_ERROR(context_->Call("cuStreamCreateWithPriority",
                                 context_->api().cuStreamCreateWithPriority,
                                 &handle, driver::kStreamNonBlocking, 0));
  return std::make_unique<DeviceStream>(context_.get(), handle,
                                        std::move(drained));
}

absl::StatusOr<std::unique_ptr<Event>> Device::CreateEvent() {
  return CreateEventWith(driver::kEventDisableTiming);
}

absl::StatusOr<std::unique_ptr<Event>> Device::CreateTimedEvent() {
  return CreateEventWith(/*flags=*/0);
}

absl::StatusOr<std::unique_ptr<Event>> Device::CreateEventWith(unsigned flags) {
  driver::EventHandle* handle = nullptr;
  RETURN_IF_ERROR(context_->Call("cuEventCreate", context_->api().cuEventCreate,
                                 &handle, flags));
  return std::make_unique<Event>(context_.get(), handle);
}

absl::StatusOr<KernelFunction> Device::FindKernel(const KernelImage& image,
                                                  absl::string_view name) {
  const absl::MutexLock lock(&mutex_);
  const auto entry = kernels_.try_emplace({&image, std::string(name)}).first;
  KernelFunction& kernel = entry->second;
  if (kernel.handle() != nullptr) return kernel;
  ASSIGN_OR_RETURN(driver::LibraryHandle* const library, LoadImage(image));
  driver::KernelHandle* handle = nullptr;
  const char* const name_in_image = entry->first.second.c_str();
  const driver::Result result = context_->TryCall(
      context_->api().cuLibraryGetKernel, &handle, library, name_in_image);
  if (result == driver::kNotFound) {
    return absl::NotFoundError(absl::StrCat(
        description_.name, ": \"", image.name, "\" has no kernel \"", name,
        "\"; expected the name of an extern \"C\" __global__ function"));
  }
  if (result != driver::kSuccess) {
    return context_->ToStatus(result, "cuLibraryGetKernel");
  }
  kernel = KernelFunction(handle, name_in_image);
  return kernel;
}

absl::StatusOr<driver::LibraryHandle*> Device::LoadImage(
    const KernelImage& image) {
  const auto found = libraries_.find(&image);
  if (found != libraries_.end()) return found->second;
  const void* const code = CodeOf(image, context_->api());
  driver::LibraryHandle* library = nullptr;
  const driver::Result result =
      code == nullptr
          ? driver::kNoBinaryForGpu
          : context_->TryCall(context_->api().cuLibraryLoadData, &library, code,
                              nullptr, nullptr, 0u, nullptr, nullptr, 0u);
  if (result == driver::kNoBinaryForGpu || result == driver::kInvalidImage) {
    return absl::FailedPreconditionError(absl::StrCat(
        description_.name, ": \"", image.name, "\" has no code for sm_",
        description_.compute_capability,
        image.fatbin.empty() ? "; this build has no code for GPUs: build with "
                               "--config=device_code"
                             : "; build with this GPU's architecture"));
  }
  if (result != driver::kSuccess) {
    return context_->ToStatus(result, "cuLibraryLoadData");
  }
  libraries_[&image] = library;
  return library;
}

}  // namespace muster
