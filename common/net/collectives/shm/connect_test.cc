// Tests how a group of processes is formed, and how that fails. The ranks are
// threads of the test, but share only what processes would share.

#include <sys/socket.h>
#include <sys/un.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/file_descriptor.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/shm/group_options.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "common/net/rpc/local_endpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

using Connected = absl::StatusOr<std::unique_ptr<Communicator>>;

class ConnectTest : public testing::Test {
 protected:
  explicit ConnectTest(int size = 3) {
    for (int rank = 0; rank < size; ++rank) {
      auto endpoint = LocalEndpoint::Listen();
      EXPECT_OK(endpoint.status());
      endpoints_.push_back(*std::move(endpoint));
      options_.push_back({.rank = rank,
                          .size = size,
                          .generation = 7,
                          .token = "secret",
                          .timeout = absl::Seconds(60)});
      addresses_.push_back(endpoints_.back()->address());
    }
    for (auto& options : options_) options.addresses = addresses_;
  }

  // Lets `ranks` connect concurrently and returns the result of each.
  std::vector<Connected> Connect(const std::vector<int>& ranks) {
    std::vector<Connected> results(ranks.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < ranks.size(); ++i) {
      threads.emplace_back([&, i] {
        results[i] = ConnectSharedMemoryGroup(std::move(endpoints_[ranks[i]]),
                                              options_[ranks[i]]);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }

  std::vector<std::unique_ptr<LocalEndpoint>> endpoints_;
  std::vector<SharedMemoryGroupOptions> options_;
  std::vector<std::string> addresses_;
};

TEST_F(ConnectTest, RanksKnowTheirPlace) {
  const auto group = Connect({0, 1, 2});
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_OK(group[rank].status());
    EXPECT_EQ((*group[rank])->rank(), rank);
    EXPECT_EQ((*group[rank])->size(), 3);
    EXPECT_EQ((*group[rank])->generation(), 7u);
    EXPECT_EQ((*group[rank])->transport(), "shared memory");
  }
}

TEST_F(ConnectTest, MissingRanksAreNamed) {
  options_[1].timeout = absl::Milliseconds(100);
  const auto results = Connect({1});
  EXPECT_EQ(results[0].status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(results[0].status().message()),
              HasSubstr("not heard of rank 0, 2"));
}

TEST_F(ConnectTest, EndpointThatIsGoneIsUnavailable) {
  endpoints_[0].reset();
  const auto results = Connect({1});
  EXPECT_EQ(results[0].status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(results[0].status().message()),
              HasSubstr("rank 0 cannot be reached"));
}

TEST_F(ConnectTest, RanksWithAnotherTokenAreRefused) {
  options_[2].token = "guess";
  options_[0].timeout = options_[1].timeout = absl::Milliseconds(300);
  const auto results = Connect({0, 1, 2});
  EXPECT_EQ(results[2].status().code(), absl::StatusCode::kUnavailable);
  for (const int rank : {0, 1}) {
    EXPECT_EQ(results[rank].status().code(),
              absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(results[rank].status().message()),
                HasSubstr("rank 2"));
  }
}

TEST_F(ConnectTest, OtherGenerationsAreToldApart) {
  options_[1].generation = 8;
  const auto results = Connect({0, 1});
  for (const Connected& result : results) {
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(result.status().message()),
                HasSubstr("differ in generation"));
  }
}

TEST_F(ConnectTest, OtherTuningIsRefused) {
  options_[1].tuning.one_shot_bytes_max = 1;
  for (const Connected& result : Connect({0, 1})) {
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(ConnectTest, OtherConnectionsDoNotDelayRanks) {
  std::vector<FileDescriptor> strangers;
  const auto address = LocalEndpoint::SocketAddress(addresses_[0]);
  ASSERT_OK(address.status());
  for (int i = 0; i < 20; ++i) {
    strangers.emplace_back(socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(
        connect(strangers.back().get(),
                reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)),
        0);
    // Some send nothing, others send something that is not a hello.
    if (i % 2 == 0) {
      send(strangers.back().get(), "GET / HTTP/1.1\r\n\r\n", 18, 0);
    }
  }
  for (const Connected& result : Connect({0, 1, 2})) {
    EXPECT_OK(result.status());
  }
}

TEST_F(ConnectTest, ArgumentsAreChecked) {
  const std::function<void(SharedMemoryGroupOptions&)> mistakes[] = {
      [](auto& options) { options.rank = 3; },
      [](auto& options) { options.size = kSharedMemoryRanksMax + 1; },
      [](auto& options) { options.addresses.pop_back(); },
      [](auto& options) { options.token.clear(); },
      [](auto& options) { options.token.assign(65, 'x'); },
      [](auto& options) { options.addresses[1] = "nonsense"; },
      [](auto& options) { options.tuning.one_shot_bytes_max = 1 << 30; },
  };
  for (const auto& mistake : mistakes) {
    SharedMemoryGroupOptions options = options_[0];
    mistake(options);
    auto endpoint = LocalEndpoint::Listen();
    ASSERT_OK(endpoint.status());
    EXPECT_EQ(
        ConnectSharedMemoryGroup(*std::move(endpoint), options).status().code(),
        absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(CreateLocalGroup(0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ConnectTest, AddressesOfOtherHostsAreUnavailable) {
  std::string& address = options_[0].addresses[1];
  address = "another-boot" + address.substr(address.find('/'));
  EXPECT_FALSE(LocalEndpoint::IsOnThisHost(address));
  EXPECT_TRUE(LocalEndpoint::IsOnThisHost(addresses_[1]));
  EXPECT_FALSE(LocalEndpoint::IsOnThisHost(""));
  const auto results = Connect({0});
  EXPECT_EQ(results[0].status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(results[0].status().message()), HasSubstr("rank 1"));
}

}  // namespace
}  // namespace muster
