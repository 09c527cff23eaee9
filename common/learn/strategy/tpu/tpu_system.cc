#include "common/learn/strategy/tpu/tpu_system.h"

#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

// The systems that are in use, by plugin and number of devices.
struct Systems {
  absl::Mutex mutex;
  std::map<std::pair<std::string, int64_t>, std::weak_ptr<TpuSystem>> by_name
      ABSL_GUARDED_BY(mutex);
};

Systems& SystemsOfProcess() {
  static auto* const kSystems = new Systems;
  return *kSystems;
}

}  // namespace

TpuSystem::TpuSystem(std::shared_ptr<PjrtClient> client,
                     std::vector<std::string> device_names)
    : client_(std::move(client)), device_names_(std::move(device_names)) {}

absl::StatusOr<std::shared_ptr<TpuSystem>> InitializeTpuSystem(
    const TpuClusterResolver& resolver) {
  if (resolver.cpu_device_count < 0) {
    return absl::InvalidArgumentError(absl::StrCat("tpu: cpu_device_count is ",
                                                   resolver.cpu_device_count,
                                                   "; expected at least 0"));
  }
  Systems& systems = SystemsOfProcess();
  const absl::MutexLock lock(&systems.mutex);
  std::weak_ptr<TpuSystem>& known =
      systems.by_name[{resolver.plugin, resolver.cpu_device_count}];
  if (std::shared_ptr<TpuSystem> system = known.lock()) return system;
  PjrtClientOptions options;
  if (resolver.cpu_device_count > 0) {
    options.options = {{"cpu_device_count", resolver.cpu_device_count}};
  }
  ASSIGN_OR_RETURN(std::shared_ptr<PjrtClient> client,
                   PjrtClient::Create(resolver.plugin, options));
  std::vector<std::string> names;
  for (int device = 0; device < client->device_count(); ++device) {
    ASSIGN_OR_RETURN(std::string name, client->DeviceName(device));
    names.push_back(std::move(name));
  }
  auto system =
      std::make_shared<TpuSystem>(std::move(client), std::move(names));
  known = system;
  return system;
}

}  // namespace muster
