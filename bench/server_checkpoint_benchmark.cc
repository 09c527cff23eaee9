// The cost of checkpoints and recovery of parameter servers. In one process,
// with real sockets and files and two servers:
//
//   save      a model, compared with the same bytes written and synced to one
//             file; without and during training
//   step      the additional time of steps during a save
//   recovery  from the restart of a killed server to the next applied step
//
//   server_checkpoint_benchmark [--mebibytes=1024] [--recovery_mebibytes=100]
//                               [--rounds=5] [FOLDER]
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/measure.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/variable_ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/check.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/publish_tensor_bundle.h"
#include "common/io/storage/disk.h"
#include "coordinator/cluster_connection.h"
#include "coordinator/cluster_coordinator.h"
#include "coordinator/function.h"
#include "coordinator/server_recovery.h"
#include "proto/variable.pb.h"
#include "tests/cluster/test_cluster.h"

namespace muster {
namespace {

constexpr int64_t kVariableMebibytes = 4;
constexpr size_t kPieceBytes = 1 << 20;

const VariableHandle kStepped = {"stepped", {DType::kFloat32, {1024, 1024}}};

proto::VariableSpec Spec(const std::string& name) {
  proto::VariableSpec spec;
  spec.set_name(name);
  spec.set_dtype(proto::DT_FLOAT);
  for (const int64_t extent : kStepped.type.shape.dims()) {
    spec.mutable_shape()->add_dim(extent);
  }
  spec.mutable_initializer()->mutable_uniform()->set_maximum(1);
  spec.set_trainable(true);
  return spec;
}

// A cluster with a model of the given size, of which one variable is trained.
struct Trained {
  Trained(int64_t mebibytes, int worker_count)
      : cluster(worker_count, /*server_count=*/2),
        strategy(cluster.Connect().value()),
        coordinator(*strategy) {
    VariableStore& variables = strategy->variables();
    MUSTER_CHECK(variables.Create(Spec(kStepped.name)).ok());
    for (int64_t i = 1; i < mebibytes / kVariableMebibytes; ++i) {
      MUSTER_CHECK(variables.Create(Spec(absl::StrCat("rest_", i))).ok());
    }
    MUSTER_CHECK(variables.SetOptimizer(Sgd({.learning_rate = 1.0})).ok());
  }

  // Runs one step: pulls variables, computes a little, and pushes the same
  // number of bytes.
  void Step() {
    MUSTER_CHECK(coordinator.Schedule(step, {}).ok());
    MUSTER_CHECK(coordinator.Join().ok());
  }

  TestCluster cluster;
  std::unique_ptr<ParameterServerStrategy> strategy;
  ClusterCoordinator coordinator;
  const Function step = Function::Of("step", [](GraphBuilder& builder) {
    Value value = ReadVariable(builder, kStepped);
    for (int i = 0; i < 8; ++i) value = Tanh(value);
    ApplyGradient(kStepped, value);
  });
};

void WritePlain(const std::string& path, int64_t mebibytes) {
  const std::vector<uint8_t> piece(kPieceBytes, 7);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  MUSTER_CHECK(file >= 0);
  for (int64_t i = 0; i < mebibytes; ++i) {
    MUSTER_CHECK(write(file, piece.data(), kPieceBytes) ==
                 static_cast<ssize_t>(kPieceBytes));
  }
  MUSTER_CHECK(fsync(file) == 0);
  close(file);
  unlink(path.c_str());
}

void MeasureSaves(const std::string& folder, int64_t mebibytes, int rounds) {
  Trained trained(mebibytes, /*worker_count=*/1);
  VariableStore& variables = trained.strategy->variables();
  std::vector<double> plain, unpaced, saves, alone, beside;
  trained.Step();
  for (int round = 0; round < rounds; ++round) {
    plain.push_back(
        MicrosecondsOf([&] { WritePlain(folder + "/plain", mebibytes); }) /
        1e6);
    // Steps without a save, for about as long as a save takes.
    const absl::Time quiet_end = absl::Now() + absl::Seconds(plain.back());
    while (absl::Now() < quiet_end) {
      alone.push_back(MicrosecondsOf([&] { trained.Step(); }));
    }
    const std::string prefix = absl::StrCat(folder, "/ckpt-", round);
    const auto save_seconds = [&] {
      return MicrosecondsOf([&] {
               MUSTER_CHECK(variables.SaveShards(prefix, 2).ok());
               MUSTER_CHECK(PublishTensorBundle(Disk::Real(), prefix, 2).ok());
             }) /
             1e6;
    };
    unpaced.push_back(save_seconds());
    std::atomic<bool> is_saving = true;
    std::thread saver([&] {
      saves.push_back(save_seconds());
      is_saving = false;
    });
    while (is_saving) {
      beside.push_back(MicrosecondsOf([&] { trained.Step(); }));
    }
    saver.join();
    for (const char* part :
         {".index", ".data-00000-of-00002", ".data-00001-of-00002"}) {
      std::filesystem::remove(prefix + part);
    }
  }
  const auto mean = [](const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  };
  std::printf(
      "save      %lld MiB over 2 servers: %.3f s, and %.3f s during training; "
      "plain write and fsync %.3f s; ratios of times %.2f, %.2f\n",
      static_cast<long long>(mebibytes), Median(unpaced), Median(saves),
      Median(plain), Median(unpaced) / Median(plain),
      Median(saves) / Median(plain));
  std::printf(
      "step      alone %.0f us, during a save %.0f us (mean %.0f and %.0f): "
      "%+.1f %% (%+.1f %%)\n",
      Median(alone), Median(beside), mean(alone), mean(beside),
      100 * (Median(beside) / Median(alone) - 1),
      100 * (mean(beside) / mean(alone) - 1));
}

void MeasureRecoveries(const std::string& folder, int64_t mebibytes,
                       int rounds) {
  Trained trained(mebibytes, /*worker_count=*/2);
  std::atomic<int> rollback_count = 0;
  trained.coordinator.OnRollback(
      [&](const RollbackReport&) { ++rollback_count; });
  trained.Step();
  MUSTER_CHECK(trained.coordinator.SaveCheckpoint(folder).ok());
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    trained.cluster.KillServer(round % 2);
    // Steps that were scheduled before the recovery continue with it.
    MUSTER_CHECK(trained.coordinator.Schedule(trained.step, {}).ok());
    seconds.push_back(MicrosecondsOf([&] {
                        trained.cluster.StartServer(round % 2);
                        MUSTER_CHECK(trained.coordinator.Join().ok());
                        while (rollback_count <= round) {
                          trained.Step();
                        }
                      }) /
                      1e6);
  }
  std::printf(
      "recovery  of %lld MiB: %.3f s from the restart of the server to the "
      "next "
      "applied step, at worst %.3f s of %d\n",
      static_cast<long long>(mebibytes), Median(seconds),
      *std::max_element(seconds.begin(), seconds.end()), rounds);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  int64_t mebibytes = 1024;
  int64_t recovery_mebibytes = 100;
  int rounds = 5;
  std::string folder = ".";
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    bool is_understood = true;
    if (absl::ConsumePrefix(&argument, "--mebibytes=")) {
      is_understood = absl::SimpleAtoi(argument, &mebibytes);
    } else if (absl::ConsumePrefix(&argument, "--recovery_mebibytes=")) {
      is_understood = absl::SimpleAtoi(argument, &recovery_mebibytes);
    } else if (absl::ConsumePrefix(&argument, "--rounds=")) {
      is_understood = absl::SimpleAtoi(argument, &rounds);
    } else if (!absl::StartsWith(argument, "-")) {
      folder = std::string(argument);
    } else {
      is_understood = false;
    }
    if (!is_understood) {
      std::fprintf(stderr, "unknown argument: %s\n", argv[i]);
      return 2;
    }
  }
  folder += "/server_checkpoint_benchmark";
  std::filesystem::create_directories(folder);
  if (mebibytes > 0) muster::MeasureSaves(folder, mebibytes, rounds);
  if (recovery_mebibytes > 0) {
    muster::MeasureRecoveries(folder, recovery_mebibytes, rounds);
  }
  std::filesystem::remove_all(folder);
  return 0;
}
