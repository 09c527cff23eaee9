#include "common/core/device/device_context.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// True for errors that the driver then returns from every call of the process.
bool LosesDevice(driver::Result result) {
  switch (result) {
    case driver::kDeviceUnavailable:
    case driver::kEccUncorrectable:
    case driver::kIllegalAddress:
    case driver::kLaunchTimeout:
    case driver::kAssert:
    case driver::kHardwareStackError:
    case driver::kMisalignedAddress:
    case driver::kLaunchFailed:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string DeviceContext::Describe(driver::Result result,
                                    absl::string_view function) const {
  const char* error = nullptr;
  const char* text = nullptr;
  api_.cuGetErrorName(result, &error);
  api_.cuGetErrorString(result, &text);
  return absl::StrCat(name(), ": ", function,
                      " failed: ", error == nullptr ? "error" : error, " (",
                      result, ")", text == nullptr ? "" : ", ",
                      text == nullptr ? "" : text);
}

absl::Status DeviceContext::ToStatus(driver::Result result,
                                     absl::string_view function) {
  const std::string message = Describe(result, function);
  if (result == driver::kOutOfMemory) {
    return absl::ResourceExhaustedError(message);
  }
  if (!LosesDevice(result)) return absl::InternalError(message);
  absl::Status lost = absl::UnavailableError(absl::StrCat(
      message, "; this process cannot use the device again: restart it"));
  lost.SetPayload(kDeviceLostUrl, absl::Cord(name()));
  const absl::MutexLock lock(&mutex_);
  if (health_.ok()) health_ = lost;
  return health_;
}

absl::Status DeviceContext::health() const {
  const absl::MutexLock lock(&mutex_);
  return health_;
}

}  // namespace muster
