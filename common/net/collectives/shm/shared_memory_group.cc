#include "common/net/collectives/shm/shared_memory_group.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/available_cpus.h"
#include "common/core/system/clock.h"
#include "common/net/collectives/shm/control_block.h"
#include "common/net/collectives/shm/process_memory.h"
#include "common/net/collectives/shm/rank_barrier.h"
#include "common/net/collectives/shm/rank_sockets.h"
#include "common/net/collectives/shm/shared_memory_communicator.h"
#include "common/net/collectives/shm/shared_segment.h"
#include "common/net/collectives/shm/thread_memory.h"

namespace muster {
namespace {

using internal::Collective;
using internal::ControlBlock;
using internal::MappedMemory;
using internal::PeerLink;
using internal::PeerWatch;
using internal::ProcessMemory;
using internal::PublishedCall;
using internal::RankBarrier;
using internal::SharedMemoryCommunicator;
using internal::ThreadMemory;
using internal::WaitPolicy;

static_assert(kSharedMemoryRanksMax <= internal::kBarrierRanksMax);

absl::Status CheckGroup(int size, const SharedMemoryTuning& tuning) {
  if (size < 1 || size > kSharedMemoryRanksMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a shared-memory group has 1 to ", kSharedMemoryRanksMax,
                     " ranks, not ", size));
  }
  if (tuning.one_shot_bytes_max > ControlBlock::kSlotBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("one_shot_bytes_max is ", tuning.one_shot_bytes_max,
                     ", over ", ControlBlock::kSlotBytes));
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const SharedMemoryGroupOptions& options) {
  RETURN_IF_ERROR(CheckGroup(options.size, options.tuning));
  if (options.rank < 0 || options.rank >= options.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", options.rank, " of a group of ", options.size));
  }
  if (options.addresses.size() != static_cast<size_t>(options.size)) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.addresses.size(), " addresses for ", options.size, " ranks"));
  }
  if (options.token.empty() || options.token.size() > 64) {
    return absl::InvalidArgumentError(
        absl::StrCat("a token has 1 to 64 bytes, not ", options.token.size()));
  }
  for (int rank = 0; rank < options.size; ++rank) {
    const std::string& address = options.addresses[rank];
    RETURN_IF_ERROR(LocalEndpoint::SocketAddress(address).status());
    if (!LocalEndpoint::IsOnThisHost(address)) {
      return absl::UnavailableError(
          absl::StrCat("rank ", rank, " (", address, ") is not on this host"));
    }
  }
  return absl::OkStatus();
}

// The objects from which the communicator of a process borrows.
struct ProcessResources {
  std::vector<PeerLink> links;
  std::shared_ptr<std::vector<MappedMemory>> control;
  // Other ranks read it to verify that they can read this process's memory.
  uint64_t probe = RandomIdentity();
};

// Returns true if this process can read the memory of all others.
bool CanReadAll(const ProcessMemory& memory, int rank,
                const std::vector<std::array<uint64_t, 2>>& probes) {
  for (int peer = 0; peer < static_cast<int>(probes.size()); ++peer) {
    uint64_t seen = 0;
    if (peer == rank) continue;
    if (!memory.Read(peer, probes[peer][0], sizeof(seen), &seen).ok() ||
        seen != probes[peer][1]) {
      return false;
    }
  }
  return true;
}

// The first barrier. When it returns, every rank has mapped all control blocks.
absl::Status ExchangeMappings(RankBarrier& barrier, ProcessMemory& memory,
                              bool can_read, absl::Time deadline) {
  const CollectiveCall call = {.name = "the group",
                               .timeout = deadline - Clock::Real()->Now()};
  RETURN_IF_ERROR(barrier.Begin(Collective::kConnect, call));
  const absl::Status met = barrier.ArriveAndWait(
      {.signature = {.collective = Collective::kConnect},
       .location = {.offset = can_read ? uint64_t{1} : uint64_t{0}}},
      RankBarrier::Exposure::kNone);
  bool all_can_read = true;
  for (int rank = 0; rank < barrier.size(); ++rank) {
    all_can_read = all_can_read && barrier.card(rank).location.offset == 1;
  }
  barrier.End();
  memory.set_can_read(met.ok() && all_can_read);
  return met;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> ConnectSharedMemoryGroup(
    std::unique_ptr<LocalEndpoint> endpoint,
    const SharedMemoryGroupOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  const absl::Time deadline = Clock::Real()->Now() + options.timeout;
  auto owned = std::make_shared<ProcessResources>();
  ASSIGN_OR_RETURN(owned->links,
                   internal::LinkPeers(*endpoint, options, deadline));
  auto memory = std::make_unique<ProcessMemory>(options.rank, &owned->links);
  std::vector<std::array<uint64_t, 2>> probes;
  ASSIGN_OR_RETURN(
      owned->control,
      memory->ExchangeSegments(
          sizeof(ControlBlock),
          {reinterpret_cast<uint64_t>(&owned->probe), owned->probe}, deadline,
          &probes));
  // New segments are filled with zeros, which are a valid initial block.
  std::vector<ControlBlock*> blocks;
  for (const MappedMemory& mapped : *owned->control) {
    blocks.push_back(reinterpret_cast<ControlBlock*>(mapped.data()));
  }
  auto barrier = std::make_unique<RankBarrier>(
      options.rank, std::move(blocks),
      WaitPolicy::For(options.size, AvailableCpus()));
  auto watch = std::make_unique<PeerWatch>(
      &owned->links,
      [barrier = barrier.get()](int rank, absl::string_view reason) {
        barrier->MarkGone(rank, reason);
      });
  RETURN_IF_ERROR(ExchangeMappings(
      *barrier, *memory, CanReadAll(*memory, options.rank, probes), deadline));
  return std::make_unique<SharedMemoryCommunicator>(
      SharedMemoryCommunicator::Options{.generation = options.generation,
                                        .transport = "shared memory",
                                        .tuning = options.tuning},
      SharedMemoryCommunicator::MemoryResources{.owned = std::move(owned),
                                                .barrier = std::move(barrier),
                                                .memory = std::move(memory),
                                                .watch = std::move(watch)});
}

absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> CreateLocalGroup(
    int size, const LocalGroupOptions& options) {
  RETURN_IF_ERROR(CheckGroup(size, options.tuning));
  auto owned = std::make_shared<std::vector<std::unique_ptr<ControlBlock>>>();
  std::vector<ControlBlock*> blocks;
  for (int rank = 0; rank < size; ++rank) {
    owned->push_back(std::make_unique<ControlBlock>());
    blocks.push_back(owned->back().get());
  }
  const WaitPolicy policy = WaitPolicy::For(size, AvailableCpus());
  std::vector<std::unique_ptr<Communicator>> group;
  for (int rank = 0; rank < size; ++rank) {
    group.push_back(std::make_unique<SharedMemoryCommunicator>(
        SharedMemoryCommunicator::Options{.generation = options.generation,
                                          .transport = "local memory",
                                          .tuning = options.tuning},
        SharedMemoryCommunicator::MemoryResources{
            .owned = owned,
            .barrier = std::make_unique<RankBarrier>(rank, blocks, policy),
            .memory = std::make_unique<ThreadMemory>(),
            .watch = nullptr}));
  }
  return group;
}

}  // namespace muster
