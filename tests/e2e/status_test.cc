// Scrapes the status pages of real clusters.
#include <signal.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/status/testing/http_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"

namespace muster {
namespace {

using Json = nlohmann::json;
using testing::Contains;
using testing::ContainsRegex;
using testing::HasSubstr;

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
constexpr TaskId kPs0 = {TaskType::kPs, 0};
constexpr TaskId kPs1 = {TaskType::kPs, 1};

// Polls until `condition` holds.
bool Await(const std::function<bool()>& condition) {
  const absl::Time deadline = absl::Now() + ProcessUnderTest::kPatience;
  absl::Notification never;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    never.WaitForNotificationWithTimeout(absl::Milliseconds(50));
  }
  return true;
}

// Returns the sum of all series of `name` ("muster_steps_total") in /metrics.
double ValueOf(const std::string& metrics, const std::string& name) {
  double sum = 0;
  for (const absl::string_view line : absl::StrSplit(metrics, '\n')) {
    if (!absl::StartsWith(line, absl::StrCat(name, "{"))) continue;
    double value = 0;
    if (absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &value)) {
      sum += value;
    }
  }
  return sum;
}

std::set<std::string> NamesOf(const std::string& metrics) {
  std::set<std::string> names;
  for (absl::string_view line : absl::StrSplit(metrics, '\n')) {
    if (!absl::ConsumePrefix(&line, "# TYPE ")) continue;
    names.insert(std::string(line.substr(0, line.find(' '))));
  }
  return names;
}

void ExpectPassesLinter(const std::string& metrics) {
  if (std::system("promtool --version > /dev/null 2>&1") != 0) return;
  FILE* const linter = popen("promtool check metrics", "w");
  ASSERT_NE(linter, nullptr);
  std::fwrite(metrics.data(), 1, metrics.size(), linter);
  EXPECT_EQ(pclose(linter), 0) << metrics;
}

class StatusTest : public testing::Test {
 protected:
  void Create(int worker_count, int ps_count) {
    cluster_ = *ClusterUnderTest::Create(
        testing::UnitTest::GetInstance()->current_test_info()->name(),
        worker_count, ps_count);
    cluster_->set_epochs(1'000'000);
  }

  // Waits for the log line with the URL of the task's pages.
  void FindPages(TaskId task) {
    const absl::StatusOr<std::string> line =
        cluster_->process(task).AwaitLine("status page: ");
    ASSERT_OK(line);
    urls_[task] = line->substr(line->find("http://"));
  }

  std::string Get(TaskId task, const std::string& path) {
    const absl::StatusOr<HttpAnswer> answer = HttpGet(urls_[task], path);
    return answer.ok() && answer->status_code == 200 ? answer->body : "";
  }

  // Waits until `holds` returns true for the task's /status.json. Returns false
  // on timeout.
  bool AwaitStatus(TaskId task, const std::function<bool(const Json&)>& holds) {
    return Await([&] {
      const Json json = Json::parse(Get(task, "/status.json"), nullptr,
                                    /*allow_exceptions=*/false);
      if (json.is_discarded()) return false;
      last_ = json;
      return holds(json);
    });
  }

  void ExpectMoves(TaskId task, const std::string& name) {
    const double before = ValueOf(Get(task, "/metrics"), name);
    EXPECT_TRUE(Await([&] {
      return ValueOf(Get(task, "/metrics"), name) > before;
    })) << name
        << " of " << task << " stays " << before;
  }

  std::unique_ptr<ClusterUnderTest> cluster_;
  std::map<TaskId, std::string> urls_;
  Json last_;
};

Json TaskIn(const Json& status, const std::string& name) {
  for (const Json& task : status["tasks"]) {
    if (task["task"] == name) return task;
  }
  return Json::object();
}

// Returns the names that dashboards and alerts use, without the suffixes of
// histograms.
std::set<std::string> NamesUsedBy(const std::string& path) {
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)),
                         std::istreambuf_iterator<char>());
  EXPECT_FALSE(text.empty()) << path;
  const std::regex name("muster_[a-z0-9_]+");
  std::set<std::string> names;
  for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end;
       ++it) {
    absl::string_view used = text;
    used = used.substr(it->position(), it->length());
    if (used == "muster_job") continue;  // A label.
    for (const char* const suffix : {"_bucket", "_sum", "_count"}) {
      if (absl::ConsumeSuffix(&used, suffix)) break;
    }
    names.insert(std::string(used));
  }
  return names;
}

TEST_F(StatusTest, ShowsAClusterWithParameterServers) {
  Create(2, 2);
  ASSERT_OK(cluster_->StartAll({"--status_port=0", "--status_job=digits"}));
  const std::vector<TaskId> tasks = {kChief, kWorker0, kWorker1, kPs0, kPs1};
  for (const TaskId task : tasks) FindPages(task);
  ASSERT_OK(cluster_->process(kChief).AwaitLine("Epoch 2/"));

  ExpectMoves(kChief, "muster_steps_total");
  ExpectMoves(kChief, "muster_examples_total");
  ExpectMoves(kChief, "muster_closures_done_total");
  ExpectMoves(kWorker0, "muster_worker_steps_total");
  ExpectMoves(kWorker0, "muster_closure_seconds_count");
  ExpectMoves(kWorker0, "muster_exchange_round_trip_seconds_count");
  ExpectMoves(kPs0, "muster_updates_total");
  ExpectMoves(kPs0, "muster_tensor_bytes_received_total");
  ExpectMoves(kPs1, "muster_exchange_seconds_count");

  std::set<std::string> exported;
  for (const TaskId task : tasks) {
    EXPECT_NE(Get(task, "/readyz"), "") << task;
    EXPECT_THAT(Get(task, "/"), HasSubstr("<!DOCTYPE html>"));
    const std::string metrics = Get(task, "/metrics");
    ExpectPassesLinter(metrics);
    EXPECT_EQ(ValueOf(metrics, "muster_ready"), 1) << task;
    EXPECT_GT(ValueOf(metrics, "muster_process_resident_memory_bytes"), 0);
    EXPECT_THAT(metrics, HasSubstr("muster_job=\"digits\""));
    exported.merge(NamesOf(metrics));
  }
  // Only synchronous training exports these metrics; another test checks them.
  exported.insert({"muster_collective_seconds", "muster_collective_bytes_total",
                   "muster_straggler_seconds_total"});
  for (const char* const file : {"dashboard.json", "alerts.yml"}) {
    for (const std::string& name :
         NamesUsedBy(absl::StrCat("deploy/monitoring/", file))) {
      EXPECT_THAT(exported, Contains(name)) << file;
    }
  }
}

TEST_F(StatusTest, ShowsALostWorkerAndItsReturn) {
  Create(2, 1);
  ASSERT_OK(cluster_->StartAll({"--status_port=0"}));
  FindPages(kChief);
  ASSERT_TRUE(AwaitStatus(kChief, [](const Json& status) {
    return TaskIn(status, "worker 1").value("closures_done", 0) > 0 &&
           TaskIn(status, "ps 0").value("updates", 0) > 0 &&
           status.contains("training") &&
           status["training"].value("steps_per_second", 0.0) > 0;
  })) << last_.dump(1);
  const std::string incarnation = TaskIn(last_, "worker 1")["incarnation"];
  EXPECT_EQ(TaskIn(last_, "worker 1")["state"], "connected");
  EXPECT_GT(TaskIn(last_, "ps 0")["bytes_received"], 0);
  EXPECT_FALSE(last_["training"]["series"].empty());

  cluster_->process(kWorker1).SendSignal(SIGKILL);
  ASSERT_TRUE(AwaitStatus(kChief, [](const Json& status) {
    return TaskIn(status, "worker 1")["state"] == "lost";
  })) << last_.dump(1);
  EXPECT_NE(TaskIn(last_, "worker 1").value("problem", ""), "");
  EXPECT_GT(last_["problems"]["warnings"], 0);
  EXPECT_EQ(ValueOf(Get(kChief, "/metrics"), "muster_peers_lost_total"), 1);

  ASSERT_OK(cluster_->Start(kWorker1));
  ASSERT_TRUE(AwaitStatus(kChief, [](const Json& status) {
    return TaskIn(status, "worker 1")["state"] == "connected";
  })) << last_.dump(1);
  EXPECT_NE(TaskIn(last_, "worker 1")["incarnation"], incarnation);
  EXPECT_EQ(ValueOf(Get(kChief, "/metrics"), "muster_peers_returned_total"), 1);
}

// Returns the page at `url` as a browser shows it after its scripts have run
// for a while.
std::string PageIn(const std::string& browser, const std::string& url) {
  const std::string command = absl::StrCat(
      browser,
      " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage"
      " --user-data-dir=",
      testing::TempDir(), "/browser --virtual-time-budget=5000 --dump-dom ",
      url, " 2>/dev/null");
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string page;
  char part[4096];
  while (const size_t size = std::fread(part, 1, sizeof(part), pipe)) {
    page.append(part, size);
  }
  return pclose(pipe) == 0 ? page : "";
}

TEST_F(StatusTest, ShowsThePageInABrowser) {
  const char* const browser = std::getenv("MUSTER_BROWSER");
  if (browser == nullptr) {
    GTEST_SKIP() << "MUSTER_BROWSER does not name the command of Chromium";
  }
  Create(2, 1);
  ASSERT_OK(cluster_->StartAll({"--status_port=0", "--status_job=digits"}));
  FindPages(kChief);
  ASSERT_TRUE(AwaitStatus(kChief, [](const Json& status) {
    return status.contains("training") &&
           status["training"]["series"].size() > 2;
  })) << last_.dump(1);
  const std::string page = PageIn(browser, urls_[kChief]);
  EXPECT_THAT(page, HasSubstr("digits - chief"));
  EXPECT_THAT(page, HasSubstr("connected for"));
  EXPECT_THAT(page, HasSubstr(">worker 1<"));
  EXPECT_THAT(page, HasSubstr(">ps 0<"));
  // Checks for the curves of the charts.
  EXPECT_THAT(page,
              ContainsRegex("class=\"curve trained\" d=\"M[0-9.,]+L[0-9.,]+"));
}

TEST_F(StatusTest, SaysForWhomSynchronousWorkersWait) {
  Create(2, 0);
  ASSERT_OK(cluster_->StartAll({"--status_port=0", "--peer_timeout=30s"}));
  for (const TaskId task : {kWorker0, kWorker1}) FindPages(task);
  ASSERT_TRUE(AwaitStatus(kWorker0, [](const Json& status) {
    return status.value("ready", false) && status.contains("training") &&
           status["training"].value("steps", 0) > 0;
  })) << last_.dump(1);
  EXPECT_EQ(TaskIn(last_, "worker 1")["state"], "connected");
  ExpectMoves(kWorker0, "muster_collective_seconds_count");
  ExpectMoves(kWorker1, "muster_collective_bytes_total");
  ASSERT_TRUE(AwaitStatus(kWorker0, [](const Json& status) {
    return status.contains("collectives") &&
           status["collectives"][0].value("operation", "") == "all_reduce" &&
           status["collectives"][0].value("median_seconds", 0.0) > 0;
  })) << last_.dump(1);
  ExpectPassesLinter(Get(kWorker0, "/metrics"));
  EXPECT_THAT(NamesOf(Get(kWorker0, "/metrics")),
              Contains("muster_straggler_seconds_total"));

  cluster_->process(kWorker1).SendSignal(SIGSTOP);
  ASSERT_TRUE(AwaitStatus(kWorker0, [](const Json& status) {
    return TaskIn(status, "worker 1").value("is_straggler", false) &&
           !status["waits"].empty();
  })) << last_.dump(1);
  EXPECT_EQ(last_["waits"][0]["waiter"], "worker 0");
  EXPECT_EQ(last_["waits"][0]["awaited"], "worker 1");
  EXPECT_GT(
      ValueOf(Get(kWorker0, "/metrics"), "muster_straggler_seconds_total"), 0);
  cluster_->process(kWorker1).SendSignal(SIGCONT);
  ExpectMoves(kWorker0, "muster_steps_total");
}

TEST_F(StatusTest, LogsJson) {
  Create(1, 1);
  ASSERT_OK(cluster_->StartAll({"--log_format=json", "--status_port=0"}));
  const absl::StatusOr<std::string> line =
      cluster_->process(kWorker0).AwaitLine("working for");
  ASSERT_OK(line);
  const Json json = Json::parse(*line, nullptr, /*allow_exceptions=*/false);
  ASSERT_FALSE(json.is_discarded()) << *line;
  EXPECT_EQ(json["severity"], "INFO");
  EXPECT_EQ(json["task"], "worker 0");
  for (const absl::string_view each : absl::StrSplit(
           cluster_->process(kWorker0).output(), '\n', absl::SkipEmpty())) {
    EXPECT_TRUE(Json::accept(each)) << each;
  }
}

}  // namespace
}  // namespace muster
