#ifndef TESTS_FAULTS_NETWORK_NAMESPACES_H_
#define TESTS_FAULTS_NETWORK_NAMESPACES_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

// Hosts of a network that exists only for this test: network namespaces, each
// with one address, joined by a bridge. Packets between two hosts can be
// dropped in one direction, connections can be reset, and rates can be limited;
// no packet leaves the namespaces. The hosts are removed when the process ends.
//
// Uses ip(8), iptables(8), tc(8), ss(8) and nsenter(1). Not thread-safe.
class NetworkNamespaces {
 public:
  // Moves this process into separate namespaces, in which it may create
  // networks. Call it first in main(), while the process has one thread.
  //   kPermissionDenied  the system does not permit it
  static absl::Status Enter();

  // Creates the hosts. Call it once, after Enter().
  static absl::StatusOr<std::unique_ptr<NetworkNamespaces>> Create(
      int host_count);

  int host_count() const { return host_count_; }
  // "10.9.0.1" for host 0.
  std::string address(int host) const;
  // Returns the beginning of a command that runs on the host.
  std::vector<std::string> Prefix(int host) const;

  // Drops all packets from host `from` to host `to`. Neither host is notified.
  absl::Status Drop(int from, int to);
  // Ends Drop().
  absl::Status Deliver(int from, int to);
  // Drops all packets from other hosts to this one, except for TCP connections
  // to these ports and responses on connections that this host has opened.
  // Cannot be undone.
  absl::Status OpenOnly(int host, const std::vector<int>& ports);
  // Resets all TCP connections of the host, at both ends.
  absl::Status ResetConnections(int host);
  // Drops each packet to the host with this probability, in percent.
  absl::Status LoseAtRandom(int host, int percent);
  // Ends LoseAtRandom().
  absl::Status LoseNone(int host, int percent);
  // Limits the rate at which the host sends, in bits per second.
  absl::Status LimitRate(int host, int bits_per_second);
  // Ends LimitRate().
  absl::Status RemoveLimit(int host);

  // Makes these names known to the processes of all hosts with /etc/hosts.
  // Replaces earlier names.
  absl::Status SetNames(const std::map<std::string, int>& host_of_name);
  // Makes the processes of all hosts ask `host` for other names. It is a DNS
  // server that never answers, because packets to it are dropped.
  absl::Status SetSilentNameServer(int host);

 private:
  explicit NetworkNamespaces(int host_count) : host_count_(host_count) {}

  const int host_count_;
};

}  // namespace muster

#endif  // TESTS_FAULTS_NETWORK_NAMESPACES_H_
