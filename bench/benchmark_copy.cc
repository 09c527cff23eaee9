#include "bench/benchmark_copy.h"

#include "bench/benchmark_network.h"
#include "bench/or_die.h"
#include "common/net/cluster/task_methods.h"
#include "proto/parameter_server.pb.h"
#include "proto/rpc.pb.h"
#include "proto/task.pb.h"
#include "ps/client/methods.h"

namespace muster {
namespace {

std::unique_ptr<Channel> Connect(int task, const std::string& address) {
  ChannelOptions channel;
  channel.address = address;
  channel.peer_task_type = "ps";
  channel.peer_task_index = task;
  channel.caller = {"chief", 0, 1};
  channel.job_id = "benchmark";
  return BenchmarkNetwork("chief", 0)->Connect(channel);
}

ReceivedMessage Describe(Channel& task) {
  return OrDie(task.CallAndWait(
      kDescribeMethod,
      Message{proto::DescribeRequest().SerializeAsString(), {}}, {}));
}

}  // namespace

BenchmarkCopy::BenchmarkCopy(int source_task, const std::string& source_address,
                             int holder_task, const std::string& holder_address)
    : holder_(Connect(holder_task, holder_address)) {
  const std::unique_ptr<Channel> source = Connect(source_task, source_address);
  source->SetTargetIncarnation(
      Describe(*source).identity().caller_incarnation());
  proto::KeepCopyRequest request;
  request.mutable_holder()->set_task_index(holder_task);
  request.mutable_holder()->set_address(holder_address);
  request.mutable_holder()->set_incarnation(
      Describe(*holder_).identity().caller_incarnation());
  OrDie(source->Call<proto::KeepCopyResponse>(kKeepCopyMethod, request, {}));
  while (!OrDie(Describe(*holder_).ParseBody<proto::DescribeResponse>())
              .is_copy()) {
  }
}

BenchmarkCopy::~BenchmarkCopy() {
  OrDie(holder_->Call<proto::EndTaskResponse>(kEndTaskMethod,
                                              proto::EndTaskRequest(), {}));
}

}  // namespace muster
