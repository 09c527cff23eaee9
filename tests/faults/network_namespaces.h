#ifndef TESTS_FAULTS_NETWORK_NAMESPACES_H_
#define TESTS_FAULTS_NETWORK_NAMESPACES_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

// Hosts of a network that exists for this test only: network namespaces, each
// with one address, joined by a bridge. Packets between two hosts can be
// dropped in one direction, connections reset, and rates limited; no packet
// leaves the namespaces. The hosts end with the process.
//
// Uses ip(8), iptables(8), tc(8), ss(8) and nsenter(1). Not thread-safe.
class NetworkNamespaces {
 public:
  // Moves this process into namespaces of its own, where it may make networks.
  // Called first in main(): the process has one thread.
  //   kPermissionDenied  the system does not let this process do that
  static absl::Status Enter();

  // After Enter(), once.
  static absl::StatusOr<std::unique_ptr<NetworkNamespaces>> Create(
      int host_count);

  int host_count() const { return host_count_; }
  // "10.9.0.1" for host 0.
  std::string address(int host) const;
  // The beginning of a command that is to run on the host.
  std::vector<std::string> Prefix(int host) const;

  // Drops all packets from host `from` to host `to`. Neither host is told.
  absl::Status Drop(int from, int to);
  // Ends Drop().
  absl::Status Deliver(int from, int to);
  // Drops what other hosts send to this one, but for TCP connections that they
  // open to these ports and answers on those that it opened itself. For good.
  absl::Status OpenOnly(int host, const std::vector<int>& ports);
  // Resets all TCP connections of the host, at both ends.
  absl::Status ResetConnections(int host);
  // Drops each packet to the host with this probability, in percent.
  absl::Status LoseAtRandom(int host, int percent);
  // Ends LoseAtRandom().
  absl::Status LoseNone(int host, int percent);
  // Limits what the host sends, in bits per second.
  absl::Status LimitRate(int host, int bits_per_second);
  // Ends LimitRate().
  absl::Status RemoveLimit(int host);

  // Lets processes of all hosts know these names by /etc/hosts, in place of
  // those set before.
  absl::Status SetNames(const std::map<std::string, int>& host_of_name);
  // Lets processes of all hosts ask `host` for other names: a DNS server that
  // never answers, since packets to it are dropped.
  absl::Status SetSilentNameServer(int host);

 private:
  explicit NetworkNamespaces(int host_count) : host_count_(host_count) {}

  const int host_count_;
};

}  // namespace muster

#endif  // TESTS_FAULTS_NETWORK_NAMESPACES_H_
