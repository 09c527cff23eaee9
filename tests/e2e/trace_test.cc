// Reads the traces of real clusters.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"

namespace muster {
namespace {

using testing::Contains;
using testing::IsSupersetOf;
using testing::UnorderedElementsAreArray;
using Json = nlohmann::json;

// Times in microseconds have three decimal places.
constexpr double kRoundingUs = 0.002;

struct Span {
  std::string category;
  std::string name;
  double start_us = 0;
  double end_us = 0;
};

class TraceTest : public testing::Test {
 protected:
  // Runs a job until it ends and reads its trace.
  void Train(int worker_count, int ps_count) {
    const std::string name =
        testing::UnitTest::GetInstance()->current_test_info()->name();
    ASSERT_OK_AND_ASSIGN(const auto cluster, ClusterUnderTest::Create(
                                                 name, worker_count, ps_count));
    cluster->set_epochs(3);
    const std::string file =
        absl::StrCat(testing::TempDir(), "/", name, ".json");
    const std::vector<TaskId> tasks = cluster->cluster().Members();
    for (auto task = tasks.rbegin(); task != tasks.rend(); ++task) {
      std::vector<std::string> flags;
      if (cluster->cluster().IsChief(*task)) {
        flags.push_back(absl::StrCat("--trace=", file));
      }
      ASSERT_OK(cluster->Start(*task, flags));
    }
    for (const TaskId task : tasks) {
      ASSERT_OK_AND_ASSIGN(const ProcessEnd end,
                           cluster->process(task).AwaitEnd());
      ASSERT_TRUE(end.ok()) << cluster->process(task).output();
    }
    std::ifstream stream(file);
    const std::string text((std::istreambuf_iterator<char>(stream)),
                           std::istreambuf_iterator<char>());
    trace_ = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    ASSERT_TRUE(trace_.is_object()) << text.substr(0, 1000);
    ReadEvents();
  }

  void ReadEvents() {
    for (const Json& event : trace_["traceEvents"]) {
      const int process = event["pid"];
      if (event["ph"] == "M") {
        tasks_[process] = event["args"]["name"];
        continue;
      }
      names_[tasks_[process]].insert(
          absl::StrCat(event["cat"].get<std::string>(), ":",
                       event["name"].get<std::string>()));
      const Span span = {
          .category = event["cat"],
          .name = event["name"],
          .start_us = event["ts"],
          .end_us = event["ts"].get<double>() + event.value("dur", 0.0)};
      if (event["ph"] == "X") {
        rows_[{process, event["tid"].get<int>()}].push_back(span);
      }
    }
  }

  std::vector<std::string> TaskNames() const {
    std::vector<std::string> names;
    for (const auto& [process, name] : tasks_) names.push_back(name);
    return names;
  }

  // Expects that a span which begins within another span of its thread also
  // ends within it.
  void ExpectSpansNest() const {
    for (const auto& [row, spans] : rows_) {
      std::vector<double> open_ends;
      double previous_start_us = -1;
      for (const Span& span : spans) {
        EXPECT_GE(span.start_us, previous_start_us);
        previous_start_us = span.start_us;
        while (!open_ends.empty() &&
               open_ends.back() <= span.start_us + kRoundingUs) {
          open_ends.pop_back();
        }
        if (!open_ends.empty()) {
          EXPECT_LE(span.end_us, open_ends.back() + kRoundingUs)
              << tasks_.at(row.first) << " " << span.name;
        }
        open_ends.push_back(span.end_us);
      }
    }
  }

  // The tasks of a test share the clock of the machine, so the estimated
  // offsets must be 0 within the stated error.
  void ExpectClocksAgree() const {
    const Json& errors = trace_["otherData"]["clock_error_us"];
    EXPECT_EQ(errors.size(), tasks_.size());
    for (const auto& [task, offset_us] :
         trace_["otherData"]["clock_offset_us"].items()) {
      EXPECT_LE(std::abs(offset_us.get<double>()),
                errors[task].get<double>() + kRoundingUs)
          << task;
    }
  }

  Json trace_;
  std::map<int, std::string> tasks_;
  std::map<std::string, std::set<std::string>> names_;  // By task.
  std::map<std::pair<int, int>, std::vector<Span>> rows_;
};

TEST_F(TraceTest, ShowsTwoWorkersAndAServer) {
  ASSERT_NO_FATAL_FAILURE(Train(2, 1));
  EXPECT_THAT(TaskNames(), UnorderedElementsAreArray(
                               {"chief 0", "worker 0", "worker 1", "ps 0"}));
  EXPECT_THAT(names_["chief 0"], Contains("step:train step"));
  EXPECT_THAT(names_["ps 0"], Contains("rpc:exchange"));
  for (const char* const worker : {"worker 0", "worker 1"}) {
    EXPECT_THAT(names_[worker], IsSupersetOf({"rpc:push", "kernel:MatMul"}))
        << worker;
  }
  ExpectSpansNest();
  ExpectClocksAgree();
}

TEST_F(TraceTest, ShowsSynchronousWorkers) {
  ASSERT_NO_FATAL_FAILURE(Train(2, 0));
  EXPECT_THAT(TaskNames(), UnorderedElementsAreArray({"worker 0", "worker 1"}));
  for (const char* const worker : {"worker 0", "worker 1"}) {
    EXPECT_THAT(names_[worker],
                IsSupersetOf({"collective:all-reduce", "kernel:MatMul"}))
        << worker;
  }
  ExpectSpansNest();
  ExpectClocksAgree();
}

}  // namespace
}  // namespace muster
