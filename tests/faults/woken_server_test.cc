// A parameter server is suspended, replaced by a process at another address,
// and continued. Its name resolves to the replacement, but old connections
// still lead to it.
#include <signal.h>

#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/process/port_reservation.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/faulty_link.h"

namespace muster {
namespace {

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kPs0 = {TaskType::kPs, 0};
constexpr int kRestartMe = 138;

TEST(WokenServerTest, NobodyReadsFromOrWritesToAServerThatWasReplaced) {
  ASSERT_OK_AND_ASSIGN(const auto cluster,
                       ClusterUnderTest::Create("woken", 2, 2));
  std::filesystem::remove_all(cluster->run_dir());
  ASSERT_OK_AND_ASSIGN(FaultyLink* const link, cluster->Link(kPs0));
  ASSERT_OK_AND_ASSIGN(const auto other_port, PortReservation::Create());
  cluster->set_program("tests/faults/chaos_program");
  ASSERT_OK(cluster->StartAll(
      {"--shared_memory=false", "--coordinator_timeout=2s", "--set",
       "heartbeat_timeout=1s", "--set", "seconds=1000", "--set",
       absl::StrCat("folder=", cluster->run_dir(), "/checkpoints")}));
  ProcessUnderTest& chief = cluster->process(kChief);
  ASSERT_OK(chief.AwaitLine("durable: "));

  const std::unique_ptr<ProcessUnderTest> stopped = cluster->Release(kPs0);
  stopped->SendSignal(SIGSTOP);
  link->Retarget(other_port->port());
  ASSERT_OK(cluster->Start(
      kPs0, {absl::StrCat("--bind_address=127.0.0.1:", other_port->port())}));
  ASSERT_OK(chief.AwaitLine("rolled back: "));
  ASSERT_OK(chief.AwaitLine("through: "));
  stopped->SendSignal(SIGCONT);
  // The continued server serves no task.
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, stopped->AwaitEnd());
  EXPECT_EQ(end.ShellCode(), kRestartMe) << stopped->output();
  // Every round checks that all steps so far were applied once.
  for (int round = 0; round < 4; ++round) {
    ASSERT_OK(chief.AwaitLine("through: "));
  }
}

}  // namespace
}  // namespace muster
