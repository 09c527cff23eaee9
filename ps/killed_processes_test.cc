// Kills clients and servers while they use shared memory. The test starts its
// own executable in both roles.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/check.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/system/testing/await_true.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/net/rpc/network.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/variable.pb.h"
#include "ps/client/remote_variable_store.h"
#include "ps/parameter_server.h"
#include "ps/segment_intake.h"

extern char** environ;

namespace muster {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr uint64_t kStepsPerClient = 1'000'000;

Shape TestShape() { return Shape({512, 512}); }
Tensor Ones() { return Tensor::Full(DType::kFloat32, TestShape(), 1); }

// A child process that runs this executable in another role.
class Child {
 public:
  explicit Child(std::vector<std::string> arguments) {
    int ends[2];
    MUSTER_CHECK(pipe(ends) == 0);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    arguments.insert(arguments.begin(), "killed_processes_test");
    arguments.push_back(absl::StrCat(ends[1]));
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    MUSTER_CHECK(posix_spawn(&pid_, "/proc/self/exe", nullptr, nullptr,
                             argv.data(), environ) == 0);
    close(ends[1]);
    output_ = ends[0];
  }
  ~Child() {
    Kill();
    close(output_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Returns the next line of its output.
  //   kDeadlineExceeded    the child has written no line in time
  //   kFailedPrecondition  the child has ended
  absl::StatusOr<std::string> ReadLine() {
    const int timeout_milliseconds =
        static_cast<int>(absl::ToInt64Milliseconds(kTestWaitMax));
    std::string line;
    while (true) {
      pollfd polled = {output_, POLLIN, 0};
      if (poll(&polled, 1, timeout_milliseconds) != 1) {
        return absl::DeadlineExceededError("no line after \"" + line + "\"");
      }
      char c;
      if (read(output_, &c, 1) != 1) {
        return absl::FailedPreconditionError("the process has ended");
      }
      if (c == '\n') return line;
      line.push_back(c);
    }
  }

  void Kill() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  int output_ = -1;
};

void WriteLine(int descriptor, const std::string& text) {
  const std::string line = text + "\n";
  // The parent may have exited.
  [[maybe_unused]] const ssize_t written =
      write(descriptor, line.data(), line.size());
}

absl::StatusOr<std::unique_ptr<ParameterServer>> StartServer(
    const std::string& address) {
  ParameterServer::Options options;
  options.self = {"ps", 0, RandomIdentity()};
  options.address = address;
  options.shard.thread_count = 2;
  return ParameterServer::Start(Network::Grpc(), options);
}

absl::StatusOr<std::unique_ptr<RemoteVariableStore>> OpenStore(
    const std::string& address, int worker) {
  ChannelOptions server;
  server.address = address;
  server.peer_task_type = "ps";
  server.caller = {"worker", worker, RandomIdentity()};
  server.job_id = "job";
  RemoteVariableStore::Options options;
  options.tasks.push_back(server);
  options.retry_for = absl::ZeroDuration();
  return RemoteVariableStore::Open(Network::Grpc(), options);
}

// A client that adds one to every element of "x" in each step.
class Counter {
 public:
  Counter(RemoteVariableStore* store, int worker)
      : session_(store
                     ->OpenSession(
                         {{{.name = "x", .is_read = true, .is_updated = true}}})
                     .value()),
        next_step_(1 + worker * kStepsPerClient) {}

  absl::Status Step() {
    absl::Status status = session_->Begin(next_step_++);
    status.Update(session_->Update(0, UpdateKind::kAssignAdd, ones_, Tensor()));
    status.Update(session_->Commit());
    return status;
  }

 private:
  const Tensor ones_ = Ones();
  const std::unique_ptr<VariableSession> session_;
  uint64_t next_step_;
};

int Count(const std::string& address, int worker, int descriptor) {
  auto store = OpenStore(address, worker).value();
  Counter counter(store.get(), worker);
  while (counter.Step().ok()) WriteLine(descriptor, "stepped");
  return 1;
}

int Serve(const std::string& address, int descriptor) {
  auto server = StartServer(address).value();
  WriteLine(descriptor, server->address());
  server->AwaitEnd();
  return 0;
}

absl::Status CreateX(RemoteVariableStore* store) {
  proto::VariableSpec spec;
  spec.set_name("x");
  spec.set_dtype(EncodeDType(DType::kFloat32));
  *spec.mutable_shape() = EncodeShape(TestShape());
  return store->Create(spec);
}

TEST(KilledProcessesTest, KilledClientsDoNotAffectOthersAndLeakNothing) {
  constexpr int kKills = 12;
  RandomStream random(3);
  ASSERT_OK_AND_ASSIGN(const auto server, StartServer("127.0.0.1:0"));
  SegmentIntake& segments = server->service().segments();
  ASSERT_OK_AND_ASSIGN(const auto store, OpenStore(server->address(), 0));
  ASSERT_OK(CreateX(store.get()));
  Counter counter(store.get(), 0);
  int steps = 0;
  for (int worker = 1; worker <= kKills; ++worker) {
    Child client({"count", server->address(), absl::StrCat(worker)});
    for (uint64_t lines = 1 + random.Below(20); lines > 0; --lines) {
      ASSERT_THAT(client.ReadLine(), IsOkAndHolds("stepped"));
      ++steps;
      ASSERT_OK(counter.Step());
      ++steps;
    }
    ASSERT_EQ(segments.segment_count(), 2);
    client.Kill();
    ASSERT_TRUE(segments.AwaitSegmentCount(1, kTestWaitMax)) << worker;
  }
  ASSERT_OK_AND_ASSIGN(const Tensor value, store->Read("x"));
  // A killed client may have pushed more than it reported, but never a part of
  // a push.
  const float first = value.flat<float>()[0];
  EXPECT_GE(first, steps);
  EXPECT_THAT(value.flat<float>(), Each(first));
}

TEST(KilledProcessesTest, NamesAKilledServerAndSharesMemoryWithItsReplacement) {
  auto child =
      std::make_unique<Child>(std::vector<std::string>{"serve", "127.0.0.1:0"});
  ASSERT_OK_AND_ASSIGN(const std::string address, child->ReadLine());
  ASSERT_OK_AND_ASSIGN(const auto store, OpenStore(address, 0));
  ASSERT_OK(CreateX(store.get()));
  Counter counter(store.get(), 0);
  for (int step = 0; step < 5; ++step) ASSERT_OK(counter.Step());
  ASSERT_OK_AND_ASSIGN(const Tensor before, store->Read("x"));
  child->Kill();
  const absl::Time killed = Clock::Real()->Now();
  EXPECT_THAT(counter.Step(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("ps 0 (")));
  EXPECT_LT(Clock::Real()->Now() - killed, absl::Seconds(30));
  // Values that were read stay valid.
  EXPECT_THAT(before.flat<float>(), Each(5.0f));

  ASSERT_OK_AND_ASSIGN(const auto successor, StartServer(address));
  absl::Status status;
  EXPECT_TRUE(AwaitTrue([&] {
    status = counter.Step();
    return status.code() != absl::StatusCode::kUnavailable;
  })) << "the channel has not reconnected: "
      << status;
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("was restarted")));
  ASSERT_OK_AND_ASSIGN(const auto again, OpenStore(address, 1));
  EXPECT_EQ(successor->service().segments().segment_count(), 1);
  ASSERT_OK(CreateX(again.get()));
  Counter second(again.get(), 1);
  ASSERT_OK(second.Step());
  ASSERT_OK_AND_ASSIGN(const Tensor value, again->Read("x"));
  EXPECT_THAT(value.flat<float>(), Each(1.0f));
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc == 5 && std::string(argv[1]) == "count") {
    return muster::Count(argv[2], std::atoi(argv[3]), std::atoi(argv[4]));
  }
  if (argc == 4 && std::string(argv[1]) == "serve") {
    return muster::Serve(argv[2], std::atoi(argv[3]));
  }
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
