#include "common/net/status/status_pages.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/metrics.h"
#include "common/net/status/http_server.h"
#include "common/net/status/status_report.h"
#include "common/net/status/testing/http_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class StatusPagesTest : public testing::Test {
 protected:
  explicit StatusPagesTest(std::string token = "")
      : server_(*HttpServer::Start({.token = std::move(token)},
                                   StatusPages({.version = "1.2",
                                                .job = "digits",
                                                .task = "worker 1",
                                                .role = "worker",
                                                .index = 1}))) {}

  HttpAnswer Get(const std::string& path) {
    absl::StatusOr<HttpAnswer> answer = HttpGet(server_->url(), path);
    EXPECT_OK(answer.status());
    return answer.ok() ? *std::move(answer) : HttpAnswer();
  }

  const std::unique_ptr<HttpServer> server_;
};

class StatusPagesWithTokenTest : public StatusPagesTest {
 protected:
  StatusPagesWithTokenTest() : StatusPagesTest("a-token-of-this-test") {}
};

TEST_F(StatusPagesTest, TellsWhetherTheProcessIsReady) {
  EXPECT_EQ(Get("/livez").status_code, 200);
  EXPECT_EQ(Get("/readyz").status_code, 503);
  const StatusSource source([](StatusReport* report) {
    report->readiness.push_back(absl::OkStatus());
  });
  EXPECT_EQ(Get("/readyz").status_code, 200);
  EXPECT_THAT(Get("/metrics").body,
              HasSubstr("muster_ready{muster_job=\"digits\",role=\"worker\","
                        "index=\"1\"} 1\n"));
}

TEST_F(StatusPagesTest, ExportsMetrics) {
  GetCounter({"muster_pages_test_total", "A test."})->Add(3);
  const HttpAnswer answer = Get("/metrics");
  EXPECT_THAT(answer.head,
              HasSubstr("Content-Type: text/plain; version=0.0.4"));
  EXPECT_THAT(answer.body,
              AllOf(HasSubstr("muster_pages_test_total{muster_job=\"digits\","
                              "role=\"worker\",index=\"1\"} 3\n"),
                    HasSubstr("muster_process_resident_memory_bytes{"),
                    HasSubstr("muster_process_cpu_seconds_total{"),
                    HasSubstr("version=\"1.2\"} 1\n"),
                    // Prometheus itself adds a label `job`.
                    Not(HasSubstr("{job=")), Not(HasSubstr(",job="))));
}

TEST_F(StatusPagesTest, ServesTheStatus) {
  const HttpAnswer answer = Get("/status.json");
  EXPECT_THAT(answer.head, HasSubstr("Content-Type: application/json\r\n"));
  const auto json = nlohmann::json::parse(answer.body);
  EXPECT_EQ(json["process"]["task"], "worker 1");
}

TEST_F(StatusPagesTest, ServesTheMemoryOfGpus) {
  EXPECT_FALSE(
      nlohmann::json::parse(Get("/status.json").body).contains("gpus"));
  const MetricSource source([](MetricSink* sink) {
    for (const std::string device : {"gpu:1", "gpu:0"}) {
      const MetricLabels labels = {{"device", device}};
      sink->AddGauge({"muster_gpu_memory_bytes", "Test."}, 5, labels);
      sink->AddGauge({"muster_gpu_memory_peak_bytes", "Test."}, 7, labels);
      sink->AddGauge({"muster_gpu_memory_limit_bytes", "Test."}, 9, labels);
    }
  });
  const auto gpus = nlohmann::json::parse(Get("/status.json").body)["gpus"];
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0]["device"], "gpu:0");
  EXPECT_EQ(gpus[1]["memory_bytes"], 5);
  EXPECT_EQ(gpus[1]["memory_peak_bytes"], 7);
  EXPECT_EQ(gpus[1]["memory_limit_bytes"], 9);
}

// The Content-Security-Policy allows only the page's own files.
TEST_F(StatusPagesTest, ThePageNeedsNothingFromOutside) {
  const HttpAnswer page = Get("/");
  EXPECT_EQ(page.status_code, 200);
  EXPECT_THAT(
      page.body,
      AllOf(testing::StartsWith("<!DOCTYPE html>"), Not(HasSubstr("<style")),
            Not(HasSubstr("style=")), Not(HasSubstr("onclick"))));
  for (const std::string file : {"status.css", "status.js"}) {
    EXPECT_THAT(page.body, HasSubstr(absl::StrCat("\"", file, "\"")));
    const HttpAnswer answer = Get("/" + file);
    EXPECT_EQ(answer.status_code, 200);
    EXPECT_THAT(answer.body,
                AllOf(Not(HasSubstr("https://")), Not(HasSubstr("innerHTML"))));
  }
}

TEST_F(StatusPagesWithTokenTest, ProtectsWhatIsPrivate) {
  for (const char* const path : {"/", "/status.js", "/livez"}) {
    EXPECT_EQ(Get(path).status_code, 200) << path;
  }
  for (const char* const path : {"/metrics", "/status.json"}) {
    EXPECT_EQ(Get(path).status_code, 401) << path;
    EXPECT_EQ(HttpGet(server_->url(), path,
                      "Authorization: Bearer a-token-of-this-test\r\n")
                  ->status_code,
              200)
        << path;
  }
}

}  // namespace
}  // namespace muster
