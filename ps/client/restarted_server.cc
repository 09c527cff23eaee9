// The part of ServerGroup that goes on with servers that were restarted.
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "common/net/rpc/identity.h"
#include "proto/parameter_server.pb.h"
#include "proto/rpc.pb.h"
#include "ps/client/methods.h"
#include "ps/client/segment_offer.h"
#include "ps/client/server_group.h"

namespace muster {
namespace {

// How long a save waits for a server that was killed during it.
constexpr absl::Duration kRestartTimeout = absl::Seconds(2);
constexpr absl::Duration kPause = absl::Milliseconds(100);

}  // namespace

absl::Status ServerGroup::Follow(int server) {
  Channel* const channel = watch_channels_[server].get();
  absl::MutexLock lock(&follow_mutex_);
  channel->SetTargetIncarnation(0);
  ASSIGN_OR_RETURN(
      const ReceivedMessage message,
      channel->CallAndWait(
          kDescribeMethod,
          Message{proto::DescribeRequest().SerializeAsString(), {}},
          {.timeout = timeout_}));
  ASSIGN_OR_RETURN(const auto described,
                   message.ParseBody<proto::DescribeResponse>());
  if (described.state_id() != state_ids_[server]) {
    return absl::FailedPreconditionError(
        absl::StrCat(channel->peer(), " was restarted without its variables"));
  }
  const uint64_t incarnation = message.identity().caller_incarnation();
  // Another caller may have followed it.
  if (servers_[server]->target_incarnation() == incarnation) {
    return absl::OkStatus();
  }
  servers_[server]->SetTargetIncarnation(incarnation);
  LOG(INFO) << channel->peer() << " was restarted with its variables; "
            << "incarnation " << IncarnationString(incarnation);
  if (offer_ != nullptr) offer_->Renew(server, servers_[server].get());
  return absl::OkStatus();
}

bool ServerGroup::AwaitRestart(int server) {
  const uint64_t before = servers_[server]->target_incarnation();
  const absl::Time deadline = Clock::Real()->Now() + kRestartTimeout;
  while (Clock::Real()->Now() < deadline) {
    const absl::Status followed = Follow(server);
    if (followed.ok()) return servers_[server]->target_incarnation() != before;
    if (!absl::IsUnavailable(followed)) return false;
    absl::Mutex mutex;
    absl::MutexLock lock(&mutex);
    bool never = false;
    Clock::Real()->AwaitWithDeadline(&mutex, absl::Condition(&never),
                                     Clock::Real()->Now() + kPause);
  }
  return false;
}

void ServerGroup::SetProcess(int server, uint64_t incarnation,
                             uint64_t state_id) {
  absl::MutexLock lock(&follow_mutex_);
  servers_[server]->SetTargetIncarnation(incarnation);
  state_ids_[server] = state_id;
}

}  // namespace muster
