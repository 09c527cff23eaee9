// The time of operations on parameter servers. Each server and worker is a
// process on one host. Compares tensors in shared memory with gRPC only. Ratios
// above 1 miss the budget.
//
//   parameter_server_benchmark [dense] [small] [embedding] [--rows=10000000]
//                              [--lane=shared|grpc]
//   parameter_server_benchmark protected [--lane=shared|grpc]
//
// "protected" measures the steps of protection_benchmark.py. The variables in
// benchmark_network.h select the protection. With
// MUSTER_BENCHMARK_SERVER_LOG=FOLDER servers keep logs there. With
// MUSTER_BENCHMARK_COPIES=1 each has a copy in another process.
//
// The program runs itself as servers and workers.

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "bench/benchmark_child.h"
#include "bench/benchmark_copy.h"
#include "bench/benchmark_network.h"
#include "bench/measure.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/check.h"
#include "common/core/base/random.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/network.h"
#include "proto/optimizer.pb.h"
#include "proto/parameter_server.pb.h"
#include "proto/variable.pb.h"
#include "ps/client/partitioner.h"
#include "ps/client/remote_variable_store.h"
#include "ps/parameter_server.h"
#include "ps/parameter_shard.h"

extern char** environ;

namespace muster {
namespace {

constexpr int kDenseCount = 25;
constexpr int64_t kRowElements = 64;
constexpr int64_t kIdCount = 4096;
// The rows of this many batches exceed the caches.
constexpr int kBatchCount = 600;

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::_Exit(1);
}

template <typename T>
T Check(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

// The transport of tensors.
enum class LaneKind { kGrpc, kShared };

const char* LaneName(LaneKind lane) {
  return lane == LaneKind::kGrpc ? "gRPC" : "shared memory";
}

struct Figure {
  double median = 0;
  // The minimum time or the maximum rate, which is least affected by other
  // processes.
  double best = 0;
};

Figure TimesFigure(const std::vector<double>& times) {
  return {Median(times), *std::min_element(times.begin(), times.end())};
}

Figure RatesFigure(const std::vector<double>& rates) {
  return {Median(rates), *std::max_element(rates.begin(), rates.end())};
}

void Report(const std::string& what, Figure measured, const char* unit,
            double budget, bool more_is_better) {
  std::printf("%-62s %9.4g (best %9.4g) %-10s", what.c_str(), measured.median,
              measured.best, unit);
  if (budget > 0) {
    const double ratio =
        more_is_better ? budget / measured.median : measured.median / budget;
    std::printf(" budget %6.4g  ratio %.2f", budget, ratio);
  }
  std::printf("\n");
  std::fflush(stdout);
}

struct Budgets {
  double grpc = 0;  // 0 for no budget.
  double shared = 0;
};

// Measures every requested transport, one right after the other.
class Lanes {
 public:
  explicit Lanes(std::vector<LaneKind> lanes) : lanes_(std::move(lanes)) {}

  template <typename Measure>
  void Compare(const std::string& what, const char* unit, Budgets budgets,
               bool more_is_better, Measure measure) const {
    std::vector<Figure> figures;
    for (LaneKind lane : lanes_) {
      figures.push_back(measure(lane));
      Report(absl::StrCat(what, ", ", LaneName(lane)), figures.back(), unit,
             lane == LaneKind::kGrpc ? budgets.grpc : budgets.shared,
             more_is_better);
    }
    if (figures.size() != 2) return;
    const auto gain = [more_is_better](double grpc, double shared) {
      return more_is_better ? shared / grpc : grpc / shared;
    };
    std::printf("%-62s %9.2fx (best %9.2fx)\n", "  shared memory against gRPC",
                gain(figures[0].median, figures[1].median),
                gain(figures[0].best, figures[1].best));
    std::fflush(stdout);
  }

 private:
  const std::vector<LaneKind> lanes_;
};

// ---- Processes.

void WriteLine(int descriptor, const std::string& text) {
  const std::string line = text + "\n";
  MUSTER_CHECK(write(descriptor, line.data(), line.size()) ==
               static_cast<ssize_t>(line.size()));
}

int Serve(int index, int descriptor) {
  ParameterServer::Options options;
  options.self = {"ps", index, RandomIdentity()};
  options.address = "127.0.0.1:0";
  options.shard.thread_count = 2;
  if (const char* const folder = std::getenv("MUSTER_BENCHMARK_SERVER_LOG")) {
    options.log = LogKeeper::Options{
        .folder = absl::StrCat(folder, "/", options.self.incarnation),
        .boot_id = "benchmark"};
  }
  auto server =
      Check(ParameterServer::Start(BenchmarkNetwork("ps", index), options));
  WriteLine(descriptor, server->address());
  server->AwaitEnd();
  server->service().EndLog();
  return 0;
}

// `worker` 0 is the chief, which creates variables.
std::unique_ptr<RemoteVariableStore> OpenStore(const std::string& addresses,
                                               int worker, LaneKind lane) {
  static Network* const network =
      BenchmarkNetwork(worker == 0 ? "chief" : "worker", worker);
  RemoteVariableStore::Options options;
  options.shared_memory = lane == LaneKind::kShared;
  for (absl::string_view address : absl::StrSplit(addresses, ',')) {
    ChannelOptions server;
    server.address = std::string(address);
    server.peer_task_type = "ps";
    server.peer_task_index = static_cast<int>(options.tasks.size());
    server.caller = {worker == 0 ? "chief" : "worker", worker,
                     RandomIdentity()};
    server.job_id = "benchmark";
    options.tasks.push_back(server);
  }
  options.partitioner = Check(MakeFixedShardsPartitioner(options.tasks.size()));
  auto store = Check(RemoteVariableStore::Open(network, std::move(options)));
  store->NoteScheduled(~uint64_t{0});
  return store;
}

// Servers that run as long as this object exists.
class Servers {
 public:
  Servers(int count, LaneKind lane) {
    for (int i = 0; i < count; ++i) {
      children_.push_back(std::make_unique<BenchmarkChild>(
          "parameter_server_benchmark",
          std::vector<std::string>{"serve", absl::StrCat(i)}));
      if (i > 0) addresses_ += ",";
      addresses_ += children_.back()->ReadLine();
    }
    if (std::getenv("MUSTER_BENCHMARK_COPIES") != nullptr) KeepCopies(count);
    store_ = OpenStore(addresses_, 0, lane);
  }
  ~Servers() { Check(store_->ShutdownServers(0)); }

  const std::string& addresses() const { return addresses_; }
  RemoteVariableStore& store() { return *store_; }

 private:
  void KeepCopies(int count) {
    const std::vector<std::string> sources = absl::StrSplit(addresses_, ',');
    for (int i = 0; i < count; ++i) {
      children_.push_back(std::make_unique<BenchmarkChild>(
          "parameter_server_benchmark",
          std::vector<std::string>{"serve", absl::StrCat(count + i)}));
      copies_.push_back(std::make_unique<BenchmarkCopy>(
          i, sources[i], count + i, children_.back()->ReadLine()));
    }
  }

  std::vector<std::unique_ptr<BenchmarkChild>> children_;
  std::vector<std::unique_ptr<BenchmarkCopy>> copies_;
  std::string addresses_;
  std::unique_ptr<RemoteVariableStore> store_;
};

// ---- Variables.

proto::VariableSpec Spec(const std::string& name, const Shape& shape) {
  proto::VariableSpec spec;
  spec.set_name(name);
  spec.set_dtype(EncodeDType(DType::kFloat32));
  *spec.mutable_shape() = EncodeShape(shape);
  spec.set_trainable(true);
  return spec;
}

proto::Optimizer MakeOptimizer(const std::string& name) {
  proto::Optimizer optimizer;
  if (name == "sgd") {
    optimizer.mutable_sgd()->set_learning_rate(0.01);
  } else if (name == "adam") {
    optimizer.mutable_adam()->set_learning_rate(0.01);
  } else {
    optimizer.mutable_adagrad()->set_learning_rate(0.01);
  }
  return optimizer;
}

// A step that pushes a gradient to each of `count` variables and pulls their
// new values.
class DenseStep {
 public:
  DenseStep(RemoteVariableStore* store, int count, const Shape& shape,
            bool is_read) {
    std::vector<VariableUse> uses;
    for (int i = 0; i < count; ++i) {
      const std::string name = absl::StrCat("v", i);
      Check(store->Create(Spec(name, shape)));
      uses.push_back({.name = name, .is_read = is_read, .is_updated = true});
      gradients_.push_back(Tensor::Full(DType::kFloat32, shape, 1e-3));
    }
    session_ = Check(store->OpenSession(uses));
  }

  void Run(uint64_t step_id) {
    Check(session_->Begin(step_id));
    for (size_t i = 0; i < gradients_.size(); ++i) {
      Check(session_->Update(static_cast<int>(i), UpdateKind::kApplyGradient,
                             gradients_[i], Tensor()));
    }
    Check(session_->Commit());
  }

 private:
  std::vector<Tensor> gradients_;
  std::unique_ptr<VariableSession> session_;
};

// Returns the time of one step in microseconds.
Figure TimeSteps(DenseStep* step, int worker, int warm_up_count, int count) {
  std::vector<double> times;
  for (int i = 0; i < warm_up_count + count; ++i) {
    const uint64_t step_id = 1 + i + worker * uint64_t{1000000};
    const double time = MicrosecondsOf([&] { step->Run(step_id); });
    if (i >= warm_up_count) times.push_back(time);
  }
  return TimesFigure(times);
}

int Work(const std::string& addresses, int worker, LaneKind lane,
         int descriptor) {
  auto store = OpenStore(addresses, worker, lane);
  DenseStep step(store.get(), kDenseCount, Shape({1024, 1024}), true);
  const Figure time = TimeSteps(&step, worker, 5, 30);
  WriteLine(descriptor, absl::StrCat(time.median, " ", time.best));
  return 0;
}

// ---- The claims.

// Returns the time of the slowest of `worker_count` workers in milliseconds.
Figure MeasureDense(const std::string& optimizer, int worker_count,
                    LaneKind lane) {
  Servers servers(1, lane);
  Check(servers.store().SetOptimizer(MakeOptimizer(optimizer)));
  { DenseStep(&servers.store(), kDenseCount, Shape({1024, 1024}), true); }
  std::vector<std::unique_ptr<BenchmarkChild>> workers;
  for (int i = 1; i <= worker_count; ++i) {
    workers.push_back(std::make_unique<BenchmarkChild>(
        "parameter_server_benchmark",
        std::vector<std::string>{"work", servers.addresses(), absl::StrCat(i),
                                 absl::StrCat(static_cast<int>(lane))}));
  }
  Figure slowest;
  for (const auto& worker : workers) {
    Figure time;
    const std::vector<std::string> words =
        absl::StrSplit(worker->ReadLine(), ' ');
    MUSTER_CHECK(words.size() == 2 &&
                 absl::SimpleAtod(words[0], &time.median) &&
                 absl::SimpleAtod(words[1], &time.best));
    slowest.median = std::max(slowest.median, time.median / 1000);
    slowest.best = std::max(slowest.best, time.best / 1000);
  }
  return slowest;
}

void BenchDense(const Lanes& lanes) {
  for (const std::string optimizer : {"sgd", "adam"}) {
    for (int worker_count : {1, 2}) {
      const bool has_budget = optimizer == "sgd" && worker_count == 1;
      lanes.Compare(absl::StrCat("push + pull of 25 x 4 MiB, ", optimizer, ", ",
                                 worker_count, " worker(s)"),
                    "ms", has_budget ? Budgets{90, 28} : Budgets{}, false,
                    [&](LaneKind lane) {
                      return MeasureDense(optimizer, worker_count, lane);
                    });
    }
  }
}

// Returns the time of a step over `count` variables.
Figure MeasureSteps(int count, const Shape& shape, bool is_read,
                    LaneKind lane) {
  Servers servers(1, lane);
  Check(servers.store().SetOptimizer(MakeOptimizer("sgd")));
  DenseStep step(&servers.store(), count, shape, is_read);
  return TimeSteps(&step, 0, 100, 1000);
}

void BenchSmall(const Lanes& lanes) {
  lanes.Compare("one step over 200 variables of 1 KB", "us", {300, 300}, false,
                [&](LaneKind lane) {
                  return MeasureSteps(200, Shape({256}), true, lane);
                });
  lanes.Compare(
      "push of 64 bytes, round trip", "us", {115, 115}, false,
      [&](LaneKind lane) { return MeasureSteps(1, Shape({16}), false, lane); });
}

void BenchProtected(const Lanes& lanes) {
  lanes.Compare("push + pull of 1 MiB", "us", {}, false, [&](LaneKind lane) {
    return MeasureSteps(1, Shape({512, 512}), true, lane);
  });
  lanes.Compare("push + pull of 200 x 1 KB", "us", {}, false,
                [&](LaneKind lane) {
                  return MeasureSteps(200, Shape({256}), true, lane);
                });
}

// Returns batches of row indices: uniform, or Zipf(1.05) with the popular rows
// spread over the table.
std::vector<Tensor> MakeIds(bool zipf, int64_t row_count, uint64_t seed) {
  RandomStream random(seed);
  std::vector<Tensor> batches;
  for (int batch = 0; batch < kBatchCount; ++batch) {
    Tensor ids(DType::kInt64, Shape({kIdCount}));
    for (int64_t& id : ids.mutable_flat<int64_t>()) {
      if (!zipf) {
        id = static_cast<int64_t>(random.Below(row_count));
        continue;
      }
      const double u = random.Below(1 << 30) * 0x1.0p-30;
      const double tail = 1 - std::pow(row_count, -0.05);
      const double rank = std::pow(1 - u * tail, -1 / 0.05);
      id = static_cast<int64_t>(FoldIn(1, static_cast<uint64_t>(rank)) %
                                row_count);
    }
    batches.push_back(ids);
  }
  return batches;
}

// Returns the rows as a client requests them from one shard: distinct and
// ascending.
Tensor UniqueSorted(const Tensor& ids) {
  std::vector<int64_t> rows(ids.flat<int64_t>().begin(),
                            ids.flat<int64_t>().end());
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return Tensor::FromSpan<int64_t>(Shape({static_cast<int64_t>(rows.size())}),
                                   rows);
}

// Returns the millions of rows per second of one thread, without a network.
Figure MeasureShard(ParameterShard* shard, const std::vector<Tensor>& batches,
                    bool update) {
  std::vector<double> rates;
  for (int i = 0; i < kBatchCount; ++i) {
    const Tensor rows = UniqueSorted(batches[i % batches.size()]);
    const int64_t count = rows.element_count();
    proto::ExchangeRequest request;
    std::vector<ReceivedTensor> tensors = {ReceivedTensor::FromTensor(rows)};
    if (update) {
      request.add_update_handles(0);
      request.add_update_kinds(proto::APPLY_SPARSE_GRADIENT);
      tensors.push_back(ReceivedTensor::FromTensor(
          Tensor::Full(DType::kFloat32, Shape({count, kRowElements}), 1e-3)));
    } else {
      request.add_gather_handles(0);
    }
    proto::ExchangeResponse response;
    std::vector<Tensor> answers;
    const double time_us = MicrosecondsOf(
        [&] { Check(shard->Exchange(request, tensors, &response, &answers)); });
    if (i >= 64) rates.push_back(count / time_us);
  }
  return RatesFigure(rates);
}

void BenchShard(int64_t row_count, const std::string& optimizer,
                bool with_lookups) {
  ParameterShard shard({.thread_count = 1});
  proto::ShardSpec spec;
  *spec.mutable_variable() = Spec("table", Shape({row_count, kRowElements}));
  spec.set_shard_name("table");
  spec.set_row_end(row_count);
  Check(shard.Create(spec).status());
  Check(shard.SetOptimizer(MakeOptimizer(optimizer)));
  for (bool zipf : {false, true}) {
    const auto batches = MakeIds(zipf, row_count, 1);
    const char* kind = zipf ? "Zipf(1.05)" : "uniform";
    if (with_lookups) {
      Report(absl::StrCat("in the server: lookup, ", kind),
             MeasureShard(&shard, batches, false), "M rows/s", 18, true);
    }
    Report(absl::StrCat("in the server: ", optimizer, " update, ", kind),
           MeasureShard(&shard, batches, true), "M rows/s",
           optimizer == "adagrad" ? 10 : 0, true);
  }
}

// Returns the sequential requests per second of a session.
Figure MeasureRequests(VariableSession* session,
                       const std::vector<Tensor>& batches, bool update,
                       uint64_t* step_id) {
  const Tensor gradient =
      Tensor::Full(DType::kFloat32, Shape({kIdCount, kRowElements}), 1e-3);
  Tensor rows;
  std::vector<double> rates;
  for (int i = 0; i < kBatchCount; ++i) {
    const Tensor& ids = batches[i % batches.size()];
    const double time = MicrosecondsOf([&] {
      Check(session->Begin(++*step_id));
      if (update) {
        Check(session->Update(0, UpdateKind::kApplySparseGradient, gradient,
                              ids));
      } else {
        Check(session->Gather(0, ids, &rows));
      }
      Check(session->Commit());
    });
    if (i >= 100) rates.push_back(1e6 / time);
  }
  return RatesFigure(rates);
}

// A table on two servers, accessed over one transport.
struct Table {
  Table(int64_t row_count, const std::string& optimizer, LaneKind lane)
      : servers(2, lane) {
    Check(servers.store().SetOptimizer(MakeOptimizer(optimizer)));
    Check(servers.store().Create(
        Spec("table", Shape({row_count, kRowElements}))));
    session = Check(servers.store().OpenSession(
        {{{.name = "table", .is_gathered = true, .is_updated = true}}}));
  }

  Servers servers;
  std::unique_ptr<VariableSession> session;
  uint64_t step_id = 0;
};

void BenchEmbedding(const Lanes& lanes, int64_t row_count) {
  BenchShard(row_count / 2, "sgd", true);
  BenchShard(row_count / 2, "adagrad", false);
  const auto compare = [&](const std::string& optimizer, bool update,
                           bool zipf) {
    const auto batches = MakeIds(zipf, row_count, 2);
    lanes.Compare(
        absl::StrCat("2 servers: ", update ? optimizer + " update" : "lookup",
                     " of 4096 rows, ", zipf ? "Zipf(1.05)" : "uniform"),
        "requests/s", {1000, update ? 0.0 : 3000}, true, [&](LaneKind lane) {
          Table table(row_count, optimizer, lane);
          return MeasureRequests(table.session.get(), batches, update,
                                 &table.step_id);
        });
  };
  for (bool zipf : {false, true}) {
    compare("sgd", /*update=*/false, zipf);
    compare("sgd", /*update=*/true, zipf);
    compare("adagrad", /*update=*/true, zipf);
  }
}

int64_t AvailableMemoryBytes() {
  return static_cast<int64_t>(sysconf(_SC_AVPHYS_PAGES)) *
         sysconf(_SC_PAGESIZE);
}

int Main(const std::vector<std::string>& arguments) {
  bool dense = false, small = false, embedding = false, is_protected = false;
  std::vector<LaneKind> kinds = {LaneKind::kGrpc, LaneKind::kShared};
  int64_t row_count = 10'000'000;
  for (const std::string& argument : arguments) {
    if (argument == "dense") dense = true;
    if (argument == "small") small = true;
    if (argument == "embedding") embedding = true;
    if (argument == "protected") is_protected = true;
    if (argument == "--lane=grpc") kinds = {LaneKind::kGrpc};
    if (argument == "--lane=shared") kinds = {LaneKind::kShared};
    if (absl::StartsWith(argument, "--rows=")) {
      MUSTER_CHECK(absl::SimpleAtoi(argument.substr(7), &row_count));
    }
  }
  Network::Grpc();  // Configures the allocator, as in a server.
  if (!dense && !small && !embedding && !is_protected) {
    dense = small = embedding = true;
  }
  const Lanes lanes(std::move(kinds));
  if (is_protected) BenchProtected(lanes);
  if (dense) BenchDense(lanes);
  if (small) BenchSmall(lanes);
  if (embedding) {
    // The table, its accumulator, and a reserve.
    const int64_t needed_bytes =
        row_count * kRowElements * 4 * 2 + (int64_t{1} << 30);
    if (AvailableMemoryBytes() < needed_bytes) {
      std::printf("embedding: skipped, it needs %.1f GB free\n",
                  needed_bytes / 1e9);
    } else {
      BenchEmbedding(lanes, row_count);
    }
  }
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 3 && arguments[0] == "serve") {
    return muster::Serve(std::atoi(argv[2]), std::atoi(argv[3]));
  }
  if (arguments.size() == 5 && arguments[0] == "work") {
    return muster::Work(arguments[1], std::atoi(argv[3]),
                        static_cast<muster::LaneKind>(std::atoi(argv[4])),
                        std::atoi(argv[5]));
  }
  return muster::Main(arguments);
}
