#ifndef COMMON_CORE_DEVICE_DEVICE_CONTEXT_H_
#define COMMON_CORE_DEVICE_DEVICE_CONTEXT_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/core/device/driver/driver_api.h"

namespace muster {

// The payload of errors after which this process cannot use the device again.
// Its content is the device's name.
inline constexpr char kDeviceLostUrl[] = "type.muster/DeviceLost";

// Calls the driver for one device, and returns its errors as statuses. Shared
// by the classes of this room. Thread-safe.
class DeviceContext {
 public:
  struct Properties {
    int ordinal = 0;
    std::string name;
    // True if the device can launch a kernel while the previous one runs:
    // compute capability 9.
    bool overlaps_launches = false;
  };

  // `api` and `context` are borrowed.
  DeviceContext(const driver::DriverApi* api, driver::ContextHandle* context,
                Properties properties)
      : api_(*api), context_(context), properties_(std::move(properties)) {}

  const driver::DriverApi& api() const { return api_; }
  driver::ContextHandle* handle() const { return context_; }
  int ordinal() const { return properties_.ordinal; }
  const std::string& name() const { return properties_.name; }
  bool overlaps_launches() const { return properties_.overlaps_launches; }

  // Calls a function in the device's context: Call("cuMemUnmap",
  // api().cuMemUnmap, address, size).
  //   kResourceExhausted  out of memory
  //   kUnavailable        the device is lost, with the payload kDeviceLostUrl
  //   kInternal           any other error of the driver
  // All name the device, the function and the driver's error.
  template <typename... Parameters, typename... Arguments>
  absl::Status Call(absl::string_view function,
                    driver::Result (*pointer)(Parameters...),
                    Arguments... arguments) {
    driver::Result result = api_.cuCtxSetCurrent(context_);
    if (result == driver::kSuccess) result = pointer(arguments...);
    if (result == driver::kSuccess) return absl::OkStatus();
    return ToStatus(result, function);
  }

  // As Call(), but returns the driver's error.
  template <typename... Parameters, typename... Arguments>
  driver::Result TryCall(driver::Result (*pointer)(Parameters...),
                         Arguments... arguments) {
    const driver::Result result = api_.cuCtxSetCurrent(context_);
    return result == driver::kSuccess ? pointer(arguments...) : result;
  }

  // Makes this the context of the calling thread, for libraries that use the
  // thread's own.
  //   as Call()
  absl::Status MakeCurrent() {
    const driver::Result result = api_.cuCtxSetCurrent(context_);
    return result == driver::kSuccess ? absl::OkStatus()
                                      : ToStatus(result, "cuCtxSetCurrent");
  }

  absl::Status ToStatus(driver::Result result, absl::string_view function);
  // Returns the message of that status. Does not mark the device as lost.
  std::string Describe(driver::Result result, absl::string_view function) const;

  // OK, or why the device is lost.
  absl::Status health() const;

 private:
  const driver::DriverApi& api_;
  driver::ContextHandle* const context_;
  const Properties properties_;
  mutable absl::Mutex mutex_;
  absl::Status health_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_CORE_DEVICE_DEVICE_CONTEXT_H_
