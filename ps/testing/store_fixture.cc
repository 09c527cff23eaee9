#include "ps/testing/store_fixture.h"

#include <utility>

#include "common/core/tensor/tensor_codec.h"
#include "common/net/rpc/fault_point.h"
#include "common/net/rpc/network.h"

namespace muster {

void StoreFixture::SetUp() {
  for (int i = 0; i < 2; ++i) servers_.push_back(StartServer(i, 100 + i));
  partitioner_ = MakeFixedShardsPartitioner(2).value();
  store_ = OpenStore("chief");
}

void StoreFixture::TearDown() { SetFaults({}); }

std::unique_ptr<ParameterServer> StoreFixture::StartServer(
    int index, uint64_t incarnation, const std::string& address,
    bool shared_memory) {
  ParameterServer::Options options;
  options.self = {"ps", index, incarnation};
  options.address = address;
  options.shard.thread_count = 2;
  options.shared_memory = shared_memory;
  return ParameterServer::Start(Network::Grpc(), options).value();
}

std::unique_ptr<RemoteVariableStore> StoreFixture::OpenStore(
    const std::string& caller, absl::Duration retry_for,
    absl::Duration timeout) {
  RemoteVariableStore::Options options;
  for (size_t i = 0; i < servers_.size(); ++i) {
    ChannelOptions server;
    server.address = servers_[i]->address();
    server.peer_task_type = "ps";
    server.peer_task_index = static_cast<int>(i);
    server.caller = {caller, 0, 7};
    server.job_id = "job";
    options.tasks.push_back(server);
  }
  options.partitioner = partitioner_;
  options.gradients_per_step = gradients_per_step_;
  options.timeout = timeout;
  options.retry_for = retry_for;
  options.shared_memory = shared_memory_;
  options.shared_memory_bytes_max = shared_memory_bytes_max_;
  options.generation = generation_;
  options.copy_count = copy_count_;
  return RemoteVariableStore::Open(Network::Grpc(), std::move(options)).value();
}

proto::VariableSpec StoreFixture::Spec(const std::string& name, DType dtype,
                                       const Shape& shape) {
  proto::VariableSpec spec;
  spec.set_name(name);
  spec.set_dtype(EncodeDType(dtype));
  *spec.mutable_shape() = EncodeShape(shape);
  spec.set_trainable(true);
  return spec;
}

proto::VariableSpec StoreFixture::RandomSpec(const std::string& name,
                                             const Shape& shape,
                                             uint64_t seed) {
  proto::VariableSpec spec = Spec(name, DType::kFloat32, shape);
  spec.mutable_initializer()->set_seed(seed);
  spec.mutable_initializer()->mutable_normal()->set_standard_deviation(1);
  return spec;
}

}  // namespace muster
