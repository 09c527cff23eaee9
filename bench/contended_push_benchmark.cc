// The rate at which a server applies the pushes of several workers that update
// one variable at the same time: over shared memory, and in the server without
// a transport. The second rate shows what waiting for each other costs.
//
//   contended_push_benchmark [--seconds=2]

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/or_die.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/base/check.h"
#include "common/core/base/random.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/network.h"
#include "proto/optimizer.pb.h"
#include "proto/parameter_server.pb.h"
#include "proto/variable.pb.h"
#include "ps/client/remote_variable_store.h"
#include "ps/parameter_server.h"
#include "ps/parameter_shard.h"

namespace muster {
namespace {

struct Case {
  const char* name = "";
  Shape shape;
  int64_t pushed_rows = 0;  // 0: a dense gradient.
};

// A gradient of the variable, and a request that contains it.
struct Push {
  UpdateKind kind = UpdateKind::kApplyGradient;
  Tensor gradient;
  Tensor rows;
  proto::ExchangeRequest request;
  std::vector<ReceivedTensor> tensors;
};

Push MakePush(const Case& what, RandomStream* random) {
  Push push;
  Shape shape = what.shape;
  if (what.pushed_rows > 0) {
    push.kind = UpdateKind::kApplySparseGradient;
    push.rows = Tensor(DType::kInt64, Shape({what.pushed_rows}));
    for (int64_t& row : push.rows.mutable_flat<int64_t>()) {
      row = static_cast<int64_t>(random->Below(what.shape.dim(0)));
    }
    push.tensors.push_back(ReceivedTensor::FromTensor(push.rows));
    shape.set_dim(0, what.pushed_rows);
  }
  push.gradient = Tensor::Full(DType::kFloat32, shape, 1e-3);
  push.tensors.push_back(ReceivedTensor::FromTensor(push.gradient));
  push.request.add_update_handles(0);
  push.request.add_update_kinds(what.pushed_rows > 0
                                    ? proto::APPLY_SPARSE_GRADIENT
                                    : proto::APPLY_GRADIENT);
  return push;
}

std::vector<Push> MakePushes(const Case& what, int worker) {
  RandomStream random(worker);
  std::vector<Push> pushes;
  for (int i = 0; i < 16; ++i) pushes.push_back(MakePush(what, &random));
  return pushes;
}

proto::VariableSpec SpecOf(const Case& what) {
  proto::VariableSpec spec;
  spec.set_name("x");
  spec.set_dtype(EncodeDType(DType::kFloat32));
  *spec.mutable_shape() = EncodeShape(what.shape);
  return spec;
}

proto::Optimizer Adam() {
  proto::Optimizer optimizer;
  optimizer.mutable_adam()->set_learning_rate(0.01);
  return optimizer;
}

// Returns the pushes per second of all workers together. `work` pushes once for
// each call of its argument that returns true.
double Measure(
    int worker_count, absl::Duration duration,
    absl::FunctionRef<void(int worker, absl::FunctionRef<bool()>)> work) {
  std::atomic<int64_t> push_count{0};
  std::atomic<bool> is_measured{false};
  std::atomic<bool> is_over{false};
  std::vector<std::thread> workers;
  for (int worker = 0; worker < worker_count; ++worker) {
    workers.emplace_back([&, worker] {
      work(worker, [&] {
        if (is_measured.load()) push_count.fetch_add(1);
        return !is_over.load();
      });
    });
  }
  absl::SleepFor(absl::Milliseconds(200));
  is_measured = true;
  const absl::Time begin = absl::Now();
  absl::SleepFor(duration);
  const int64_t count = push_count.load();
  const absl::Duration measured = absl::Now() - begin;
  is_over = true;
  for (std::thread& worker : workers) worker.join();
  return static_cast<double>(count) / absl::ToDoubleSeconds(measured);
}

double MeasureInServer(const Case& what, int worker_count,
                       absl::Duration duration) {
  ParameterShard shard({.thread_count = 2});
  proto::ShardSpec spec;
  *spec.mutable_variable() = SpecOf(what);
  spec.set_shard_name("x");
  spec.set_row_end(what.shape.dim(0));
  OrDie(shard.Create(spec));
  OkOrDie(shard.SetOptimizer(Adam()));
  return Measure(worker_count, duration,
                 [&](int worker, absl::FunctionRef<bool()> must_push) {
                   const std::vector<Push> pushes = MakePushes(what, worker);
                   for (size_t i = 0; must_push(); ++i) {
                     const Push& push = pushes[i % pushes.size()];
                     proto::ExchangeResponse response;
                     std::vector<Tensor> answers;
                     OkOrDie(shard.Exchange(push.request, push.tensors,
                                            &response, &answers));
                   }
                 });
}

std::unique_ptr<RemoteVariableStore> OpenStore(const std::string& address,
                                               int worker) {
  RemoteVariableStore::Options options;
  options.tasks.push_back({.address = address,
                           .peer_task_type = "ps",
                           .caller = {"worker", worker, RandomIdentity()},
                           .job_id = "benchmark"});
  return OrDie(RemoteVariableStore::Open(Network::Grpc(), std::move(options)));
}

double MeasureOverSharedMemory(const Case& what, int worker_count,
                               absl::Duration duration) {
  ParameterServer::Options options;
  options.self = {"ps", 0, RandomIdentity()};
  options.address = "127.0.0.1:0";
  options.shard.thread_count = 2;
  const auto server = OrDie(ParameterServer::Start(Network::Grpc(), options));
  const auto chief = OpenStore(server->address(), worker_count);
  OkOrDie(chief->Create(SpecOf(what)));
  OkOrDie(chief->SetOptimizer(Adam()));
  return Measure(
      worker_count, duration,
      [&](int worker, absl::FunctionRef<bool()> must_push) {
        const auto store = OpenStore(server->address(), worker);
        OkOrDie(store->Create(SpecOf(what)));
        const auto session =
            OrDie(store->OpenSession({{{.name = "x", .is_updated = true}}}));
        const std::vector<Push> pushes = MakePushes(what, worker);
        uint64_t step_id = worker * uint64_t{1'000'000'000};
        while (must_push()) {
          const Push& push = pushes[++step_id % pushes.size()];
          OkOrDie(session->Begin(step_id));
          OkOrDie(session->Update(0, push.kind, push.gradient, push.rows));
          OkOrDie(session->Commit());
        }
      });
}

int Main(int argc, char** argv) {
  double seconds = 2;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    MUSTER_CHECK(absl::ConsumePrefix(&argument, "--seconds=") &&
                 absl::SimpleAtod(argument, &seconds));
  }
  const Case cases[] = {
      {"dense, 16 KiB", Shape({64, 64}), 0},
      {"dense, 4 MiB", Shape({1024, 1024}), 0},
      {"256 rows of 64 MiB", Shape({262144, 64}), 256},
  };
  for (const Case& what : cases) {
    for (const int worker_count : {1, 2, 4}) {
      const absl::Duration duration = absl::Seconds(seconds);
      std::printf("%s, %d worker(s), shared memory: %.0f pushes/s\n", what.name,
                  worker_count,
                  MeasureOverSharedMemory(what, worker_count, duration));
      std::printf("%s, %d worker(s), in the server: %.0f pushes/s\n", what.name,
                  worker_count, MeasureInServer(what, worker_count, duration));
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) { return muster::Main(argc, argv); }
