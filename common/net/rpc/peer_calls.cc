#include "common/net/rpc/peer_calls.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {

void PeerCalls::Call::End::operator()(const std::string* peer) const {
  calls->EndCall(*peer);
  delete peer;
}

absl::StatusOr<PeerCalls::Call> PeerCalls::Begin(absl::string_view peer) {
  {
    absl::MutexLock lock(&mutex_);
    const auto [entry, is_new] = counts_.try_emplace(peer, 0);
    if (entry->second >= count_max_) {
      return absl::ResourceExhaustedError(
          absl::StrCat(peer, " already has ", count_max_,
                       " calls in progress, which is the most for one peer"));
    }
    ++entry->second;
  }
  return Call(std::unique_ptr<const std::string, Call::End>(
      new std::string(peer), Call::End{this}));
}

void PeerCalls::EndCall(const std::string& peer) {
  absl::MutexLock lock(&mutex_);
  const auto entry = counts_.find(peer);
  if (--entry->second == 0) counts_.erase(entry);
}

}  // namespace muster
