#ifndef TESTS_ENGINES_SLURM_UNDER_TEST_H_
#define TESTS_ENGINES_SLURM_UNDER_TEST_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/cluster/process_under_test.h"
#include "tests/faults/network_namespaces.h"

namespace muster {

// A real Slurm that exists only for a test: munged, slurmctld, and a slurmd for
// each of the hosts node0, node1, and so on, of a network. The last host of the
// network is "control", where user commands run. The destructor ends all jobs.
//
// Not thread-safe.
class SlurmUnderTest {
 public:
  // Returns OK if this machine has Slurm and this process may run it.
  //   kUnavailable       a program of Slurm is not installed; the message names
  //                      it and the packages
  //   kPermissionDenied  this process is not root
  static absl::Status CheckAvailable();

  // Starts Slurm and waits until all nodes run a step. `network` is borrowed.
  static absl::StatusOr<std::unique_ptr<SlurmUnderTest>> Create(
      NetworkNamespaces* network);

  SlurmUnderTest(const SlurmUnderTest&) = delete;
  SlurmUnderTest& operator=(const SlurmUnderTest&) = delete;

  int node_count() const { return node_count_; }

  // Starts a command on the control host.
  absl::StatusOr<std::unique_ptr<ProcessUnderTest>> Start(
      const std::vector<std::string>& command,
      ProcessUnderTest::Environment environment = {});

  // Runs a command on the control host and returns its output.
  //   kInternal  the command failed; the message has its output
  absl::StatusOr<std::string> Run(
      const std::vector<std::string>& command,
      ProcessUnderTest::Environment environment = {});

 private:
  explicit SlurmUnderTest(NetworkNamespaces* network);

  absl::Status StartDaemons();
  // Starts `command` on a host with the host name `name`.
  absl::StatusOr<std::unique_ptr<ProcessUnderTest>> StartOn(
      int host, const std::string& name,
      const std::vector<std::string>& command,
      ProcessUnderTest::Environment environment);

  NetworkNamespaces* const network_;
  const int node_count_;
  std::vector<std::unique_ptr<ProcessUnderTest>> daemons_;
};

}  // namespace muster

#endif  // TESTS_ENGINES_SLURM_UNDER_TEST_H_
