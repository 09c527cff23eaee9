#include "ps/client/optimizer_requests.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/parameter_server.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

proto::SetOptimizerRequest Request(const std::vector<std::string>& variables,
                                   bool is_default = false) {
  proto::SetOptimizerRequest request;
  request.mutable_variables()->Assign(variables.begin(), variables.end());
  request.set_is_default(is_default);
  return request;
}

std::vector<std::string> Listed(const OptimizerRequests& requests) {
  std::vector<std::string> texts;
  for (const auto& request : requests.list()) {
    std::string text = request.is_default() ? "default" : "";
    for (const std::string& name : request.variables()) text += " " + name;
    texts.push_back(text);
  }
  return texts;
}

TEST(OptimizerRequestsTest, LeavesOutWhatLaterRequestsReplace) {
  OptimizerRequests requests;
  requests.Add(Request({"a", "b"}, /*is_default=*/true));
  requests.Add(Request({"b", "c"}));
  EXPECT_THAT(Listed(requests), ElementsAre("default a", " b c"));
  requests.Add(Request({}, /*is_default=*/true));
  EXPECT_THAT(Listed(requests), ElementsAre(" a", " b c", "default"));
  requests.Reset("a");
  EXPECT_THAT(Listed(requests), ElementsAre(" b c", "default"));
  EXPECT_TRUE(requests.Contains(Request({"b", "c"})));
  EXPECT_FALSE(requests.Contains(Request({"c"})));
}

}  // namespace
}  // namespace muster
