#include "ps/client/wire_update_kind.h"

#include <optional>

#include "gtest/gtest.h"
#include "proto/parameter_server.pb.h"

namespace muster {
namespace {

TEST(WireUpdateKindTest, EveryWireNumberIsAKind) {
  for (int number = 0; number < proto::UpdateKind_ARRAYSIZE; ++number) {
    const auto wire = static_cast<proto::UpdateKind>(number);
    const std::optional<UpdateKind> kind = UpdateKindOf(wire);
    ASSERT_TRUE(kind.has_value()) << number;
    EXPECT_EQ(WireKind(*kind), wire);
  }
  EXPECT_EQ(UpdateKindOf(static_cast<proto::UpdateKind>(77)), std::nullopt);
  EXPECT_EQ(UpdateKindOf(static_cast<proto::UpdateKind>(-1)), std::nullopt);
}

}  // namespace
}  // namespace muster
