// A task of a synchronous cluster that reduces until the group ends. Tests of
// real processes start it.
//
//   peer_program WORKER_INDEX TRANSPORT ADDRESS...
//
// Prints "reduced" after the first collective and finally "ended with kind K:
// status". Log lines are printed in between.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/tensor.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/peers/peer_group.h"
#include "common/net/rpc/network.h"

namespace muster {
namespace {

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

absl::Status Train(PeerGroup& group) {
  Tensor gradients(DType::kFloat32, {1000});
  for (int step = 1;; ++step) {
    RETURN_IF_ERROR(group.communicator(0)->AllReduce(
        ReduceOp::kMean, SpanOf(gradients), {.name = "dense/kernel"}));
    if (step == 1) Say("reduced");
  }
}

absl::Status Run(int index, const std::string& transport,
                 const std::vector<std::string>& addresses) {
  PeerGroup::Options options;
  ASSIGN_OR_RETURN(options.config.cluster,
                   ClusterSpec::FromLists({{TaskType::kWorker, addresses}}));
  options.config.task = {TaskType::kWorker, index};
  options.identity = {"worker", index, RandomIdentity()};
  options.listen_address = addresses[index];
  options.startup_timeout = absl::Seconds(60);
  options.transports.shared_memory = transport == "shm";
  options.transports.raw_sockets = transport != "grpc";
  ASSIGN_OR_RETURN(const std::unique_ptr<PeerGroup> group,
                   PeerGroup::Join(options, Network::Grpc(), Clock::Real()));
  return group->Leave(Train(*group), absl::Seconds(60));
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  // The test reads output and log lines as one text, in order.
  if (dup2(STDOUT_FILENO, STDERR_FILENO) < 0) return 2;
  int index = 0;
  if (argc < 4 || !absl::SimpleAtoi(argv[1], &index)) return 2;
  const absl::Status status =
      muster::Run(index, argv[2], {argv + 3, argv + argc});
  const auto kind = muster::GroupErrorKindOf(status);
  muster::Say("ended with kind " +
              std::to_string(kind.has_value() ? static_cast<int>(*kind) : 0) +
              ": " + status.ToString());
  return 1;
}
