#ifndef PS_TESTING_STORE_FIXTURE_H_
#define PS_TESTING_STORE_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "gtest/gtest.h"
#include "proto/variable.pb.h"
#include "ps/client/partitioner.h"
#include "ps/client/remote_variable_store.h"
#include "ps/parameter_server.h"

namespace muster {

// Two servers in this process, and stores that reach them over real sockets.
// Large variables are partitioned into two shards.
class StoreFixture : public testing::Test {
 protected:
  explicit StoreFixture(bool shared_memory) : shared_memory_(shared_memory) {}

  void SetUp() override;
  // Clears injected faults.
  void TearDown() override;

  std::unique_ptr<ParameterServer> StartServer(
      int index, uint64_t incarnation,
      const std::string& address = "127.0.0.1:0", bool shared_memory = true);

  std::unique_ptr<RemoteVariableStore> OpenStore(
      const std::string& caller, absl::Duration retry_for = absl::Seconds(5),
      absl::Duration timeout = absl::Seconds(60));

  static proto::VariableSpec Spec(const std::string& name, DType dtype,
                                  const Shape& shape);
  // The initial values have a standard normal distribution.
  static proto::VariableSpec RandomSpec(const std::string& name,
                                        const Shape& shape, uint64_t seed);

  const bool shared_memory_;
  size_t shared_memory_bytes_max_ = 0;
  uint64_t generation_ = 0;
  int copy_count_ = 1;  // As ServerGroup::Options.
  std::vector<std::unique_ptr<ParameterServer>> servers_;
  std::shared_ptr<const Partitioner> partitioner_;
  int64_t gradients_per_step_ = 1;
  std::unique_ptr<RemoteVariableStore> store_;
};

}  // namespace muster

#endif  // PS_TESTING_STORE_FIXTURE_H_
