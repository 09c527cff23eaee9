#ifndef COMMON_NET_COLLECTIVES_NCCL_FAKE_RENDEZVOUS_H_
#define COMMON_NET_COLLECTIVES_NCCL_FAKE_RENDEZVOUS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/net/collectives/nccl/nccl_api.h"
#include "common/net/rpc/local_endpoint.h"

namespace muster {

// Exchanges the addresses of the ranks of one communicator of the fake NCCL,
// over a listening Unix socket whose address is the unique id. It serves one
// group, as an id of NCCL does.
class Rendezvous {
 public:
  //   errors  as for LocalEndpoint::Listen()
  static absl::StatusOr<std::unique_ptr<Rendezvous>> Open();
  // Makes Attend() fail in the ranks that wait.
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  const nccl::UniqueId& id() const { return id_; }

  // Joins the rendezvous `id` as rank `rank` of `size`, whose address is
  // `address`. Blocks until all ranks have joined or `is_over()` returns true.
  // Returns the addresses of all ranks.
  //   kUnavailable  the rendezvous has ended, or does not exist, or `is_over()`
  static absl::StatusOr<std::vector<std::string>> Attend(
      const nccl::UniqueId& id, int rank, int size, absl::string_view address,
      absl::FunctionRef<bool()> is_over);

 private:
  explicit Rendezvous(std::shared_ptr<LocalEndpoint> endpoint);

  // Shared with a thread that serves the ranks and ends by itself.
  const std::shared_ptr<LocalEndpoint> endpoint_;
  nccl::UniqueId id_;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_NCCL_FAKE_RENDEZVOUS_H_
