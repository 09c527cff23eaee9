#include "common/net/cluster/name_lookup.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/net/cluster/address.h"

namespace muster {
namespace {

// Channels resolve the name of an unreachable peer at the same interval.
constexpr absl::Duration kLookupInterval = absl::Milliseconds(500);
// A lookup that takes longer is reported. A working resolver answers faster.
constexpr absl::Duration kPatience = absl::Seconds(1);

bool IsIpAddress(const std::string& host) {
  in6_addr parsed;
  return inet_pton(AF_INET, host.c_str(), &parsed) == 1 ||
         inet_pton(AF_INET6, host.substr(0, host.find('%')).c_str(), &parsed) ==
             1;
}

std::string ResolveWithSystem(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0) return gai_strerror(error);
  freeaddrinfo(found);
  return "";
}

}  // namespace

NameLookup::NameLookup(Resolve resolve, Clock* clock)
    : resolve_(std::move(resolve)),
      clock_(clock),
      state_(std::make_shared<State>()) {}

NameLookup* NameLookup::OfSystem() {
  static auto* const lookup = new NameLookup(ResolveWithSystem, Clock::Real());
  return lookup;
}

std::string NameLookup::DescribeProblem(absl::string_view address) {
  const auto parsed = ParseHostPort(address);
  if (!parsed.ok() || IsIpAddress(parsed->host)) return "";
  const std::string& host = parsed->host;
  const absl::Time now = clock_->Now();
  bool is_due = false;
  std::string trouble;
  {
    absl::MutexLock lock(&state_->mutex);
    const auto [it, is_new] = state_->lookups.try_emplace(host);
    Lookup& lookup = it->second;
    if (!is_new && !lookup.is_running && !lookup.end.has_value()) {
      lookup.end = now;
    }
    if (lookup.is_running && now - lookup.start >= kPatience) {
      trouble =
          absl::StrCat("the name ", host, " is still being looked up, after ",
                       absl::ToInt64Seconds(now - lookup.start), " s");
    } else if (!lookup.error.empty()) {
      trouble =
          absl::StrCat("the name ", host, " is not known: ", lookup.error);
    }
    is_due =
        is_new || (!lookup.is_running && now - *lookup.end >= kLookupInterval);
    if (is_due) {
      lookup.is_running = true;
      lookup.start = now;
      lookup.end = std::nullopt;
    }
  }
  if (is_due) {
    std::thread([state = state_, resolve = resolve_, host] {
      std::string error = resolve(host);
      absl::MutexLock lock(&state->mutex);
      Lookup& lookup = state->lookups[host];
      lookup.error = std::move(error);
      lookup.is_running = false;
    }).detach();
  }
  return trouble;
}

}  // namespace muster
