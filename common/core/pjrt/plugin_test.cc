#include "common/core/pjrt/plugin.h"

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/pjrt/pjrt_api.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Long enough for a plugin that starts.
constexpr absl::Duration kLong = absl::Seconds(60);

// Returns the path of the fake plugin with this fault (testing/fake_plugin.cc).
std::string FakePlugin(char fault) {
  const std::string path = absl::StrCat(testing::TempDir(), "/plugin_",
                                        std::string(1, fault), ".so");
  std::filesystem::copy_file("common/core/pjrt/libfake_plugin.so", path,
                             std::filesystem::copy_options::skip_existing);
  return path;
}

TEST(PjrtPluginTest, LoadsAPluginOnce) {
  const std::string path = FakePlugin('g');
  ASSERT_OK_AND_ASSIGN(const PjrtPlugin* const plugin,
                       PjrtPlugin::Load(path, kLong));
  EXPECT_EQ(plugin->path(), path);
  EXPECT_EQ(plugin->api_version(), "0.81");
  ASSERT_OK_AND_ASSIGN(const PjrtPlugin* const again,
                       PjrtPlugin::Load(path, kLong));
  EXPECT_EQ(again, plugin);
}

TEST(PjrtPluginTest, NamesAFunctionThatThePluginLacks) {
  ASSERT_OK_AND_ASSIGN(const PjrtPlugin* const plugin,
                       PjrtPlugin::Load(FakePlugin('g'), kLong));
  pjrt::ClientCreateArgs args = {};
  EXPECT_THAT(plugin->Call(args),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("PJRT_Client_Create()"),
                             HasSubstr("version 0.81"))));
}

TEST(PjrtPluginTest, RejectsAMissingFile) {
  EXPECT_THAT(PjrtPlugin::Load("/none/plugin.so", kLong),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("no PJRT plugin /none/plugin.so")));
}

TEST(PjrtPluginTest, RejectsALibraryThatIsNoPlugin) {
  EXPECT_THAT(PjrtPlugin::Load("/usr/lib/x86_64-linux-gnu/libz.so.1", kLong),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("it lacks GetPjrtApi()")));
}

TEST(PjrtPluginTest, RejectsAPluginWithoutATable) {
  EXPECT_THAT(PjrtPlugin::Load(FakePlugin('n'), kLong),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("GetPjrtApi() returned null")));
}

TEST(PjrtPluginTest, RejectsOldPlugins) {
  EXPECT_THAT(PjrtPlugin::Load(FakePlugin('o'), kLong),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("has version 0.12"),
                             HasSubstr("expected 0.81 or later"))));
}

TEST(PjrtPluginTest, RejectsPluginsOfAnotherMajorVersion) {
  EXPECT_THAT(PjrtPlugin::Load(FakePlugin('m'), kLong),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("has version 1.81")));
}

TEST(PjrtPluginTest, KeepsTheErrorOfAPluginThatDoesNotStart) {
  EXPECT_THAT(PjrtPlugin::Load(FakePlugin('r'), kLong),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       "the fake plugin refuses to start"));
}

TEST(PjrtPluginTest, StopsWaitingForAPluginThatHangs) {
  const std::string path = FakePlugin('h');
  EXPECT_THAT(
      PjrtPlugin::Load(path, absl::Milliseconds(50)),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               HasSubstr(absl::StrCat("the start of the PJRT plugin ", path))));
}

}  // namespace
}  // namespace muster
