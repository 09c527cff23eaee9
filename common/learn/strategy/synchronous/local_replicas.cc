#include "common/learn/strategy/synchronous/local_replicas.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "common/learn/strategy/synchronous/cross_device_communicator.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/device_communicator.h"
#include "common/net/collectives/nccl/local_nccl_group.h"
#include "common/net/collectives/nccl/nccl_api.h"
#include "common/net/collectives/nccl/real_nccl.h"
#include "common/net/collectives/on_device/local_device_group.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "common/net/collectives/transports/transport_choice.h"
#include "common/net/collectives/transports/transports.h"
#include "proto/peer_group.pb.h"

namespace muster {
namespace {

using Communicators = std::vector<std::unique_ptr<Communicator>>;

constexpr absl::Duration kConnectTimeout = absl::Minutes(1);

absl::StatusOr<Communicators> ConnectOverNccl(const TransportSettings& settings,
                                              uint64_t generation) {
  const nccl::Api* api = settings.nccl;
  if (api == nullptr) {
    ASSIGN_OR_RETURN(api, RealNccl());
  }
  ASSIGN_OR_RETURN(auto connected, CreateLocalNcclGroup(
                                       api, settings.devices, generation,
                                       Clock::Real()->Now() + kConnectTimeout));
  Communicators communicators;
  for (std::unique_ptr<DeviceCommunicator>& communicator : connected) {
    communicators.push_back(std::move(communicator));
  }
  return communicators;
}

// The transport over which replicas combine gradients.
struct Choice {
  bool uses_nccl = false;
  bool uses_gpus = false;  // Uses the memory of GPUs, if not NCCL.
  DeviceReduction reduction = DeviceReduction::kByParts;
  std::string reason;
};

bool AreAllOnGpus(const TransportSettings& settings, int replica_count) {
  return static_cast<int>(settings.devices.size()) == replica_count &&
         std::none_of(settings.devices.begin(), settings.devices.end(),
                      [](const Device* device) { return device == nullptr; });
}

absl::StatusOr<Choice> Choose(int replica_count,
                              const LocalCommunication& communication) {
  const auto implementation = communication.implementation;
  const CrossDeviceOps* const ops = communication.ops.get();
  const TransportChoice nccl = ChooseTransport(
      CommunicationImplementation::kNccl,
      {OfferTransports(communication.transports)}, replica_count);
  Choice choice{.reason = nccl.reason};
  if (implementation == CommunicationImplementation::kNccl) {
    if (ops != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "communication over NCCL is asked for, and cross_device_ops is ",
          ops->name(), "; set only one of the two"));
    }
    if (nccl.transport == nullptr) {
      return absl::UnimplementedError(
          absl::StrCat(nccl.reason, "; use RING or AUTO"));
    }
    choice.uses_nccl = true;
    return choice;
  }
  const bool wants_nccl =
      ops == nullptr ? implementation == CommunicationImplementation::kAuto
                     : !ops->device_reduction().has_value();
  choice.uses_gpus = !communication.gradients_on_host &&
                     AreAllOnGpus(communication.transports, replica_count);
  choice.uses_nccl = wants_nccl && choice.uses_gpus && replica_count > 1 &&
                     nccl.transport != nullptr;
  if (ops != nullptr) {
    choice.reduction =
        ops->device_reduction().value_or(DeviceReduction::kToOneDevice);
    if (wants_nccl && !choice.uses_nccl) {
      LOG(WARNING) << ops->name()
                   << " is ReductionToOneDevice: " << nccl.reason;
    }
  }
  if (!wants_nccl) {
    choice.reason = ops == nullptr
                        ? "RING was asked for"
                        : absl::StrCat(ops->name(), " was asked for");
  }
  return choice;
}

void LogChoice(const Choice& choice, const TransportSettings& settings) {
  if (!choice.uses_gpus) return;
  LOG(INFO) << "replicas on "
            << absl::StrJoin(settings.devices, ", ",
                             [](std::string* out, const Device* device) {
                               absl::StrAppend(out, device->name());
                             })
            << " combine gradients "
            << (choice.uses_nccl ? "over NCCL" : "in the memory of the GPUs")
            << " (" << choice.reason << ")";
}

absl::StatusOr<Communicators> ConnectOverMemory(
    int replica_count, const LocalCommunication& communication,
    const Choice& choice, uint64_t generation) {
  ASSIGN_OR_RETURN(Communicators communicators,
                   CreateLocalGroup(replica_count, {.generation = generation}));
  if (communication.ops != nullptr) {
    communicators = ReduceBy(communication.ops, std::move(communicators));
  }
  if (!choice.uses_gpus) return communicators;
  ASSIGN_OR_RETURN(
      auto on_gpus,
      CreateLocalDeviceGroup(communication.transports.devices,
                             std::move(communicators), choice.reduction));
  Communicators made;
  for (auto& communicator : on_gpus) made.push_back(std::move(communicator));
  return made;
}

// AUTO continues without NCCL if NCCL cannot connect.
absl::StatusOr<Communicators> Connect(int replica_count,
                                      const LocalCommunication& communication,
                                      uint64_t generation, Choice* choice) {
  if (choice->uses_nccl) {
    absl::StatusOr<Communicators> connected =
        ConnectOverNccl(communication.transports, generation);
    if (connected.ok() || !choice->uses_gpus) return connected;
    LOG(WARNING) << "NCCL did not connect the replicas, which combine "
                    "gradients in the memory of the GPUs: "
                 << connected.status().message();
    choice->uses_nccl = false;
  }
  return ConnectOverMemory(replica_count, communication, *choice, generation);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReplicaGroup>> MakeLocalReplicas(
    int replica_count, const LocalCommunication& communication) {
  ASSIGN_OR_RETURN(const Choice choice, Choose(replica_count, communication));
  LogChoice(choice, communication.transports);
  auto make = [replica_count, communication, choice = choice,
               generation = uint64_t{0}]() mutable
      -> absl::StatusOr<ReplicaGroup::Communicators> {
    ++generation;
    ASSIGN_OR_RETURN(Communicators made, Connect(replica_count, communication,
                                                 generation, &choice));
    ReplicaGroup::Communicators communicators;
    for (std::unique_ptr<Communicator>& communicator : made) {
      communicators.push_back(std::move(communicator));
    }
    return communicators;
  };
  ASSIGN_OR_RETURN(ReplicaGroup::Communicators communicators, make());
  return ReplicaGroup::Create(std::move(communicators),
                              {.renew = std::move(make)});
}

}  // namespace muster
