#ifndef COMMON_CORE_PJRT_PLUGIN_H_
#define COMMON_CORE_PJRT_PLUGIN_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/pjrt/pjrt_api.h"

namespace muster {

// A loaded PJRT plugin: calls its functions, and translates its errors.
// Thread-safe.
class PjrtPlugin {
 public:
  // The versions of the API whose structs pjrt_api.h declares: 0.N for N of at
  // least kMinorVersionMin.
  static constexpr int kMajorVersion = 0;
  static constexpr int kMinorVersionMin = 81;

  // Loads the plugin at `path` and initializes it. The result lives as long as
  // the process: plugins cannot be unloaded. Calls with one path, also
  // concurrent ones, load it once and return the same plugin.
  //   kNotFound            there is no file at `path`
  //   kUnavailable         the file is not a library, or lacks GetPjrtApi()
  //   kFailedPrecondition  the API has another major version, or is too old
  //   kDeadlineExceeded    the plugin did not start within `timeout`; a thread
  //                        of the process goes on waiting for it, and a
  //                      later call waits for that thread
  //   other codes          the plugin refused to initialize, in its own words
  static absl::StatusOr<const PjrtPlugin*> Load(const std::string& path,
                                                absl::Duration timeout);

  const std::string& path() const { return path_; }
  // "0.115".
  std::string api_version() const;

  // Calls the function that takes `args`, whose struct_size need not be set.
  //   kUnimplemented  the plugin does not have the function
  //   other codes     of the function, in the plugin's words
  template <typename Args>
  absl::Status Call(Args& args) const {
    args.struct_size = sizeof(args);
    return CallFunction(Args::kFunction, &args);
  }

  // Returns the status of `error`, which may be null, and destroys `error`.
  absl::Status Consume(pjrt::Error* error) const;

  // Calls `done` when the event has happened, on any thread, and destroys the
  // event. An event that cannot be waited for is an error, with which `done` is
  // called at once.
  void WhenReady(pjrt::Event* event,
                 std::function<void(const absl::Status&)> done) const;

  // Blocks until the event has happened, and destroys it. Keeps `memory`, which
  // the work before the event uses, until then.
  //   kDeadlineExceeded  it did not happen before `deadline`; names `what`
  //   other codes        of the event, in the plugin's words
  absl::Status Await(pjrt::Event* event, absl::Time deadline,
                     absl::string_view what,
                     std::shared_ptr<void> memory = nullptr) const;

 private:
  PjrtPlugin(std::string path, const pjrt::ApiTable* api)
      : path_(std::move(path)), api_(api) {}

  static absl::StatusOr<const PjrtPlugin*> LoadAndInitialize(
      const std::string& path);

  absl::Status CheckVersion() const;
  absl::Status CallFunction(const pjrt::FunctionId& function, void* args) const;

  const std::string path_;
  const pjrt::ApiTable* const api_;
};

// Runs `work` on a thread of its own.
//   kDeadlineExceeded  `work` did not return within `timeout`: names `what`.
//                      The thread goes on, so `work` must own what it uses.
absl::Status RunWithTimeout(std::function<absl::Status()> work,
                            absl::Duration timeout, absl::string_view what);

}  // namespace muster

#endif  // COMMON_CORE_PJRT_PLUGIN_H_
