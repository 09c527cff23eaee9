#ifndef COMMON_NET_CLUSTER_NAME_LOOKUP_H_
#define COMMON_NET_CLUSTER_NAME_LOOKUP_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"

namespace muster {

// Finds out whether the system's resolver can resolve the host name of a peer,
// so that logs distinguish a wait for a name from a wait for a process.
// Channels resolve names themselves and report nothing until the resolver has
// answered. This takes many seconds if a DNS server does not answer.
//
// Thread-safe.
class NameLookup {
 public:
  // Resolves a host name. May block. Returns the resolver's error; empty if the
  // name is known.
  using Resolve = std::function<std::string(const std::string& host)>;

  // `clock` is borrowed and must outlive this object and its lookups.
  NameLookup(Resolve resolve, Clock* clock);

  // Returns a lookup that uses getaddrinfo(3) and the real clock. It lives as
  // long as the process.
  static NameLookup* OfSystem();

  // Returns why the host of `address` ("host:port") cannot be reached: "the
  // name h1 is still being looked up, after 4 s" or "the name h1 is not known:
  // Name or service not known". Empty for IP addresses, for names that are
  // known, and in the first second of a lookup.
  //
  // Does not block: starts a lookup on a separate thread if no lookup of this
  // host is in progress and the last one is older than 500 ms.
  std::string DescribeProblem(absl::string_view address);

 private:
  struct Lookup {
    bool is_running = false;
    absl::Time start;
    // When DescribeProblem() first saw that the lookup had ended. The thread of
    // the lookup does not read the clock, which it may outlive.
    std::optional<absl::Time> end;
    std::string error;
  };
  // Shared with the lookup threads, which may outlive this object: the
  // destructor does not wait for a thread that hangs in the resolver.
  struct State {
    absl::Mutex mutex;
    std::map<std::string, Lookup> lookups ABSL_GUARDED_BY(mutex);
  };

  const Resolve resolve_;
  Clock* const clock_;
  const std::shared_ptr<State> state_;
};

}  // namespace muster

#endif  // COMMON_NET_CLUSTER_NAME_LOOKUP_H_
