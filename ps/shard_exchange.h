#ifndef PS_SHARD_EXCHANGE_H_
#define PS_SHARD_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/core/system/thread_pool.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/message.h"
#include "ps/exchange_order.h"
#include "ps/prepared_update.h"
#include "ps/shard_rules.h"
#include "ps/shard_variable.h"

namespace muster {

namespace proto {
class ExchangeRequest;
class ExchangeResponse;
}  // namespace proto

// A buffer for one answer. If `data` is null, the answer is returned in a new
// tensor.
struct AnswerPlace {
  uint8_t* data = nullptr;
  size_t size_bytes = 0;
};

// One exchange with the variables of a server: updates, followed by gathers and
// pulls, which return the updated values. Check() validates the whole request
// before anything changes.
//
//   ShardExchange exchange(shard, request, places);
//   RETURN_IF_ERROR(exchange.Check(tensors));
//   exchange.ApplyUpdates();
//   exchange.Answer(&response, &answers);
//
// Not thread-safe. Exchanges of several threads with the same variables run
// concurrently, and change each stripe in the order in which they have entered
// the ExchangeOrder.
class ShardExchange {
 public:
  // Borrowed; must not change during the exchange.
  struct Shard {
    // By handle. May have null entries.
    absl::Span<const std::shared_ptr<ShardVariable>> variables;
    const ShardRules* rules = nullptr;
    ExchangeOrder* order = nullptr;
    // Limit on the bytes of one response.
    size_t answer_bytes_max = 0;
    ThreadPool* pool = nullptr;
  };

  // `request` is borrowed. `places` is empty, or has one entry for each gather,
  // followed by one for each pull.
  ShardExchange(const Shard& shard, const proto::ExchangeRequest& request,
                absl::Span<const AnswerPlace> places)
      : shard_(shard), request_(request), places_(places) {}

  // Validates the request. The updates read `tensors` directly, without a copy.
  //   kNotFound            a handle is unknown
  //   kInvalidArgument     the request is inconsistent, an update does not fit
  //                        its variable, or an answer does not fit its place
  //   kFailedPrecondition  a gradient for a variable without a rule
  //   kResourceExhausted   the answer or the slots would be too large
  absl::Status Check(absl::Span<const ReceivedTensor> tensors);

  bool has_updates() const { return !updates_.empty(); }

  // Requires has_updates(). Call at most once; not at all if the updates are a
  // repetition. Calls `record` when the exchange enters the order, before the
  // first update. Returns the number of the exchange in the order.
  //   errors of `record`; nothing was applied
  absl::StatusOr<int64_t> ApplyUpdates(
      absl::FunctionRef<absl::Status()> record = [] {
        return absl::OkStatus();
      });

  // Returns the number of bytes of the answers. Appends answers without a place
  // to `answers`.
  size_t Answer(proto::ExchangeResponse* response,
                std::vector<Tensor>* answers) const;

 private:
  struct Gather {
    ShardVariable* variable;
    std::vector<int64_t> rows;
    TensorType type;
  };
  struct Pull {
    ShardVariable* variable;
    // Address to which the value is copied during the update, and the version
    // before the update. Null if the value is not copied during the update.
    uint8_t* copy = nullptr;
    int64_t version_before = 0;
  };
  // A stripe of an update.
  struct Work {
    const PreparedUpdate* update = nullptr;
    int stripe = 0;
    uint8_t* copy = nullptr;  // Null if the value is not copied.
    bool is_applied = false;
  };

  absl::StatusOr<ShardVariable*> Find(uint32_t handle) const;
  // Both remove the tensors that they use from the front of `tensors`.
  absl::Status CheckUpdates(absl::Span<const ReceivedTensor>* tensors);
  absl::Status CheckQuestions(absl::Span<const ReceivedTensor>* tensors);
  // Applies stripes of updates of different variables.
  void Apply(absl::Span<const Work> work) const;
  // Selects the pulls whose values can be copied while their variables are
  // updated.
  void PlanCopies();
  bool MayRunInParallel(size_t size_bytes) const;
  // Runs body(i) for every i. Uses several threads if `size_bytes` is large
  // enough.
  void ForEach(int64_t count, size_t size_bytes,
               absl::FunctionRef<void(int64_t)> body) const;

  const Shard shard_;
  const proto::ExchangeRequest& request_;
  const absl::Span<const AnswerPlace> places_;
  std::vector<PreparedUpdate> updates_;
  std::vector<Gather> gathers_;
  std::vector<Pull> pulls_;
  // Address to which the value of a variable is copied during its update.
  absl::flat_hash_map<const ShardVariable*, uint8_t*> copies_;
};

}  // namespace muster

#endif  // PS_SHARD_EXCHANGE_H_
