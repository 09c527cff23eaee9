#include "common/net/collectives/transports/transports.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/small_file.h"
#include "proto/peer_group.pb.h"

namespace muster {
namespace {

// Tasks with the same name run under the same kernel and in the same network
// namespace.
std::string OwnHostName() {
  std::string boot_id =
      ReadKernelFile("/proc/sys/kernel/random/boot_id").value_or("");
  absl::StripTrailingAsciiWhitespace(&boot_id);
  char network[PATH_MAX] = {};
  const ssize_t length =
      readlink("/proc/self/ns/net", network, sizeof(network) - 1);
  return absl::StrCat(boot_id, "/", length > 0 ? network : "");
}

}  // namespace

const Transport* FindTransport(absl::string_view name) {
  const auto found = std::find_if(
      std::begin(kTransports), std::end(kTransports),
      [name](const Transport* transport) { return transport->name() == name; });
  return found == std::end(kTransports) ? nullptr : *found;
}

proto::TransportOffer OfferTransports(const TransportSettings& settings) {
  proto::TransportOffer offer;
  offer.set_host(settings.host.empty() ? OwnHostName() : settings.host);
  for (const Transport* const transport : kTransports) {
    transport->Offer(settings, &offer);
  }
  return offer;
}

}  // namespace muster
