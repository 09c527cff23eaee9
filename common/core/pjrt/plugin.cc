#include "common/core/pjrt/plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/core/base/status_macros.h"
#include "common/core/pjrt/pjrt_api.h"

namespace muster {
namespace {

// The result of work on another thread, which may outlive the wait for it.
class Outcome {
 public:
  void Set(const absl::Status& status) {
    absl::MutexLock lock(&mutex_);
    status_ = status;
    is_set_ = true;
  }

  absl::Status Await(absl::Time deadline, absl::string_view what) {
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithDeadline(absl::Condition(&is_set_), deadline)) {
      return status_;
    }
    return absl::DeadlineExceededError(
        absl::StrCat("timed out waiting for ", what));
  }

 private:
  absl::Mutex mutex_;
  bool is_set_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// The functions follow the fixed part of the table.
const pjrt::AnyFunction* FunctionsOf(const pjrt::ApiTable& api) {
  return reinterpret_cast<const pjrt::AnyFunction*>(&api + 1);
}

// What an event's callback needs.
struct EventCallback {
  const PjrtPlugin* plugin;
  std::function<void(const absl::Status&)> done;
};

void CallWhenReady(pjrt::Error* error, void* argument) {
  const std::unique_ptr<EventCallback> callback(
      static_cast<EventCallback*>(argument));
  callback->done(callback->plugin->Consume(error));
}

}  // namespace

absl::Status RunWithTimeout(std::function<absl::Status()> work,
                            absl::Duration timeout, absl::string_view what) {
  const auto outcome = std::make_shared<Outcome>();
  std::thread([outcome, work = std::move(work)] {
    outcome->Set(work());
  }).detach();
  return outcome->Await(absl::Now() + timeout, what);
}

absl::StatusOr<const PjrtPlugin*> PjrtPlugin::LoadAndInitialize(
    const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::UnavailableError(dlerror());
  using GetApi = const pjrt::ApiTable* (*)();
  const auto get_api = reinterpret_cast<GetApi>(dlsym(library, "GetPjrtApi"));
  if (get_api == nullptr) {
    return absl::UnavailableError(
        absl::StrCat(path, " is not a PJRT plugin: it lacks GetPjrtApi()"));
  }
  const pjrt::ApiTable* const api = get_api();
  if (api == nullptr || api->struct_size < sizeof(pjrt::ApiTable)) {
    return absl::UnavailableError(
        absl::StrCat(path, " is not a PJRT plugin: GetPjrtApi() returned ",
                     api == nullptr ? "null" : "an incomplete table"));
  }
  std::unique_ptr<PjrtPlugin> plugin(new PjrtPlugin(path, api));
  RETURN_IF_ERROR(plugin->CheckVersion());
  pjrt::PluginInitializeArgs args = {};
  RETURN_IF_ERROR(plugin->Call(args));
  return plugin.release();
}

absl::StatusOr<const PjrtPlugin*> PjrtPlugin::Load(const std::string& path,
                                                   absl::Duration timeout) {
  // A plugin that is being loaded, or is loaded. Shared with the thread that
  // loads it, which may outlive the calls that wait for it.
  struct Loading {
    Outcome outcome;
    const PjrtPlugin* plugin = nullptr;  // Set before the outcome.
  };
  static absl::Mutex mutex;
  static auto& by_path = *new std::map<std::string, std::shared_ptr<Loading>>();
  if (access(path.c_str(), F_OK) != 0) {
    return absl::NotFoundError(absl::StrCat("there is no PJRT plugin ", path));
  }
  std::shared_ptr<Loading> loading;
  {
    absl::MutexLock lock(&mutex);
    std::shared_ptr<Loading>& known = by_path[path];
    if (known == nullptr) {
      known = std::make_shared<Loading>();
      std::thread([loading = known, path] {
        const absl::StatusOr<const PjrtPlugin*> made = LoadAndInitialize(path);
        if (made.ok()) loading->plugin = *made;
        loading->outcome.Set(made.status());
      }).detach();
    }
    loading = known;
  }
  RETURN_IF_ERROR(loading->outcome.Await(
      absl::Now() + timeout,
      absl::StrCat("the start of the PJRT plugin ", path)));
  return loading->plugin;
}

std::string PjrtPlugin::api_version() const {
  return absl::StrCat(api_->version.major_version, ".",
                      api_->version.minor_version);
}

absl::Status PjrtPlugin::CheckVersion() const {
  if (api_->version.major_version == kMajorVersion &&
      api_->version.minor_version >= kMinorVersionMin) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the PJRT plugin ", path_, " has version ", api_version(),
      " of the API; expected ", kMajorVersion, ".", kMinorVersionMin,
      " or later, below ", kMajorVersion + 1, ".0"));
}

absl::Status PjrtPlugin::CallFunction(const pjrt::FunctionId& function,
                                      void* args) const {
  const pjrt::AnyFunction* const entry = FunctionsOf(*api_) + function.index;
  const size_t end =
      sizeof(pjrt::ApiTable) + (function.index + 1) * sizeof(pjrt::AnyFunction);
  if (end > api_->struct_size || *entry == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("the PJRT plugin ", path_, " of version ", api_version(),
                     " has no ", function.name, "()"));
  }
  using Function = pjrt::Error* (*)(void*);
  return Consume(reinterpret_cast<Function>(*entry)(args));
}

absl::Status PjrtPlugin::Consume(pjrt::Error* error) const {
  if (error == nullptr) return absl::OkStatus();
  // These two return nothing, so they are not called as the others are.
  pjrt::ErrorMessageArgs message = {.struct_size = sizeof(message),
                                    .error = error};
  using Function = void (*)(void*);
  const pjrt::AnyFunction* const functions = FunctionsOf(*api_);
  reinterpret_cast<Function>(
      functions[pjrt::ErrorMessageArgs::kFunction.index])(&message);
  pjrt::ErrorGetCodeArgs code = {.error = error};
  const bool has_code = Call(code).ok();
  absl::Status status(has_code && code.code != 0
                          ? static_cast<absl::StatusCode>(code.code)
                          : absl::StatusCode::kUnknown,
                      absl::string_view(message.message, message.message_size));
  pjrt::ErrorDestroyArgs destroy = {.struct_size = sizeof(destroy),
                                    .error = error};
  reinterpret_cast<Function>(
      functions[pjrt::ErrorDestroyArgs::kFunction.index])(&destroy);
  return status;
}

void PjrtPlugin::WhenReady(
    pjrt::Event* event, std::function<void(const absl::Status&)> done) const {
  auto callback = std::make_unique<EventCallback>();
  *callback = {.plugin = this, .done = std::move(done)};
  pjrt::EventOnReadyArgs args = {
      .event = event, .callback = CallWhenReady, .argument = callback.get()};
  const absl::Status registered = Call(args);
  if (registered.ok()) {
    callback.release();  // CallWhenReady() owns it.
  } else {
    callback->done(registered);
  }
  pjrt::EventDestroyArgs destroy = {.event = event};
  Call(destroy).IgnoreError();
}

absl::Status PjrtPlugin::Await(pjrt::Event* event, absl::Time deadline,
                               absl::string_view what,
                               std::shared_ptr<void> memory) const {
  const auto outcome = std::make_shared<Outcome>();
  WhenReady(event, [outcome, memory = std::move(memory)](
                       const absl::Status& status) { outcome->Set(status); });
  return outcome->Await(deadline, what);
}

}  // namespace muster
