#include "common/core/system/host_name.h"

#include <sys/utsname.h>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(HostNameTest, IsTheHostNameOfTheKernel) {
  utsname names;
  ASSERT_EQ(uname(&names), 0);
  EXPECT_EQ(HostName(), names.nodename);
}

}  // namespace
}  // namespace muster
