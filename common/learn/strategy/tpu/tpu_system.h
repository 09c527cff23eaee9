#ifndef COMMON_LEARN_STRATEGY_TPU_TPU_SYSTEM_H_
#define COMMON_LEARN_STRATEGY_TPU_TPU_SYSTEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/pjrt/pjrt_client.h"

namespace muster {

// A step or a copy to the host that takes longer counts as hanging.
inline constexpr absl::Duration kTpuTimeout = absl::Minutes(10);

// Names the devices of a TpuStrategy: those of a PJRT plugin on this machine.
//
// Equivalent to: tf.distribute.cluster_resolver.TPUClusterResolver("local").
struct TpuClusterResolver {
  // "tpu", "cuda", "cpu" or the path of a plugin, as for FindPjrtPlugin().
  std::string plugin = "tpu";
  // The devices that the plugin for CPUs simulates, for tests; 0: its default,
  // one. Must be 0 for other plugins.
  int64_t cpu_device_count = 0;
};

// The devices of a plugin. Thread-safe.
//
// Equivalent to: tf.tpu.experimental.Topology.
class TpuSystem {
 public:
  explicit TpuSystem(std::shared_ptr<PjrtClient> client,
                     std::vector<std::string> device_names);

  // "tpu", "cpu", ...: what the plugin calls the platform.
  const std::string& platform() const { return client_->platform_name(); }
  int device_count() const { return client_->device_count(); }
  const std::vector<std::string>& device_names() const { return device_names_; }
  const PjrtClient& client() const { return *client_; }

 private:
  const std::shared_ptr<PjrtClient> client_;
  const std::vector<std::string> device_names_;
};

// Starts the plugin that `resolver` names. Calls with equal resolvers return
// the same system while it is in use, because a process can use a TPU once. The
// devices are released with the last reference; there is no other shutdown.
//   kInvalidArgument  cpu_device_count is negative
//   others            as PjrtClient::Create()
//
// Equivalent to: tf.tpu.experimental.initialize_tpu_system().
absl::StatusOr<std::shared_ptr<TpuSystem>> InitializeTpuSystem(
    const TpuClusterResolver& resolver);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_TPU_TPU_SYSTEM_H_
