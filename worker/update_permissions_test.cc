#include "worker/update_permissions.h"

#include <cstdint>
#include <thread>

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(UpdatePermissionsTest, WaitsForTheAnswer) {
  UpdatePermissions permissions(2);
  std::thread coordinator;
  permissions.SetAsk([&](uint64_t closure_id) {
    coordinator = std::thread([&permissions, closure_id] {
      permissions.Answer(closure_id + 1, false);  // Of no closure that waits.
      permissions.Answer(closure_id, true);
    });
  });
  EXPECT_OK(permissions.AwaitPermission(7));
  coordinator.join();
  EXPECT_FALSE(permissions.TakeDenied(7));
}

TEST(UpdatePermissionsTest, WithoutAnAskAllArePermitted) {
  UpdatePermissions permissions(2);
  EXPECT_OK(permissions.AwaitPermission(7));
  EXPECT_FALSE(permissions.TakeDenied(7));
}

TEST(UpdatePermissionsTest, RemembersThatAClosureWasDenied) {
  UpdatePermissions permissions(2);
  permissions.SetAsk(
      [&](uint64_t closure_id) { permissions.Answer(closure_id, false); });
  EXPECT_THAT(permissions.AwaitPermission(7),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_FALSE(permissions.TakeDenied(8));
  EXPECT_TRUE(permissions.TakeDenied(7));
  EXPECT_FALSE(permissions.TakeDenied(7));
}

TEST(UpdatePermissionsTest, StopEndsTheWait) {
  UpdatePermissions permissions(2);
  std::thread stopping;
  permissions.SetAsk([&](uint64_t) {
    stopping = std::thread([&permissions] { permissions.Stop(); });
  });
  EXPECT_THAT(permissions.AwaitPermission(7),
              StatusIs(absl::StatusCode::kCancelled));
  stopping.join();
  EXPECT_THAT(permissions.AwaitPermission(8),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_FALSE(permissions.TakeDenied(8));
}

}  // namespace
}  // namespace muster
