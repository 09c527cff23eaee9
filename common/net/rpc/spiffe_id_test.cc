#include <string>

#include "common/core/base/testing/status_matchers.h"
#include "common/net/rpc/method_access.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(SpiffeIdTest, NamesATaskOfAJob) {
  ASSERT_OK_AND_ASSIGN(const SpiffeId id,
                       ParseSpiffeId("spiffe://muster/mnist-7/worker/12"));
  EXPECT_EQ(id, (SpiffeId{"mnist-7", "worker", 12}));
  EXPECT_EQ(id.TaskName(), "worker 12");
  EXPECT_EQ(id.ToString(), "spiffe://muster/mnist-7/worker/12");
}

TEST(SpiffeIdTest, RefusesEverythingElse) {
  for (const char* uri :
       {"", "spiffe://muster/", "spiffe://muster/job/worker",
        "spiffe://muster/job/worker/", "spiffe://muster/job/worker/1/",
        "spiffe://muster/job/worker/01", "spiffe://muster/job/worker/+1",
        "spiffe://muster/job/worker/-1", "spiffe://muster/job/root/0",
        "spiffe://muster//worker/0", "spiffe://muster/a b/worker/0",
        "spiffe://other/job/worker/0", "https://muster/job/worker/0",
        "spiffe://muster/job/worker/99999999999"}) {
    EXPECT_THAT(ParseSpiffeId(uri),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << uri;
  }
}

}  // namespace
}  // namespace muster
