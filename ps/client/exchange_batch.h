#ifndef PS_CLIENT_EXCHANGE_BATCH_H_
#define PS_CLIENT_EXCHANGE_BATCH_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/compute/variables/update_kind.h"
#include "common/core/tensor/tensor.h"
#include "ps/client/remote_variable.h"
#include "ps/client/server_group.h"

namespace muster {

// Progress of the job, as far as this process has been told.
struct StepMarks {
  // The highest step that has been scheduled.
  std::atomic<uint64_t> scheduled{0};
  // All steps with a lower id have finished.
  std::atomic<uint64_t> low_water_mark{0};
};

// Collects the updates, gathers and pulls of one step for all servers, and
// sends one message to each server. A server applies the updates first, in the
// order in which they were added; gathers and pulls return the updated values.
//
// The caller keeps everything that it adds alive and unchanged until Send()
// returns. Not thread-safe.
class ExchangeBatch {
 public:
  // A larger batch is sent as several messages, split at the calls of
  // AllowSplit(). The values of one message are then received while the
  // gradients of the next one are sent, and the server computes meanwhile. The
  // limit applies to the bytes of request and response together.
  static constexpr size_t kMessageBytes = size_t{32} << 20;

  // `servers`, `marks` and `exchange_index` are borrowed. `*exchange_index` is
  // the number of the next message of this step; each numbered message
  // increments it.
  ExchangeBatch(ServerGroup* servers, const StepMarks* marks, uint64_t step_id,
                uint32_t* exchange_index);

  void AddDenseUpdate(const RemoteVariable& variable, UpdateKind kind,
                      const Tensor& value);

  // `rows` are in increasing order; `values` has one row for each of them.
  void AddSparseUpdate(const RemoteVariable& variable, UpdateKind kind,
                       absl::Span<const int64_t> rows, const Tensor& values);

  // Writes the rows to `out`, one after another. `out` must have room for them;
  // Send() may replace its memory. `rows` are in increasing order.
  void AddGather(const RemoteVariable& variable, absl::Span<const int64_t> rows,
                 Tensor* out);

  // Send() brings the whole value of `variable` up to date. Only shards that
  // changed are transferred.
  void AddPull(RemoteVariable* variable);

  // Allows Send() to split the batch here. The parts before and after this call
  // have no variable in common, so their order does not matter.
  void AllowSplit();

  // Closes the current message to each server and gives it the number
  // `exchange_index`. No other message of the step may have that number.
  void SplitAs(uint32_t exchange_index);

  // Sends the messages. Fails as ServerGroup::Exchange() does, and with
  //   kInternal  the response of a server does not fit its request
  absl::Status Send();

 private:
  // Values that are put together from the responses of one or several servers.
  struct Gathered {
    Tensor* out;
    // The server may still write to the memory, so it must not be used.
    bool is_unusable = false;
  };
  struct Pulled {
    RemoteVariable* variable;
    Tensor incoming;  // Invalid without shared memory.
    bool is_unusable = false;
    std::vector<int64_t> versions;  // By shard; 0 if no value was received.
  };
  // One tensor of one response.
  struct Expected {
    AnswerSlot slot;
    size_t target;  // Position in gathered_ or pulled_.
    size_t offset_bytes;
    int64_t shard;
  };
  // The expected content of one response, in order.
  struct Expectations {
    std::vector<Expected> gathers;
    std::vector<Expected> pulls;
  };

  // Returns the current message to `server`, and adds `size_bytes` to its size.
  ServerExchange& Open(int server, size_t size_bytes);
  // Ends the current message to `server`. Without `exchange_index`, the message
  // gets the next number.
  void Close(int server, std::optional<uint32_t> exchange_index = {});
  // Copies the received values that the servers did not write to shared memory
  // themselves.
  absl::Status TakeResponses();
  void TakeGather(const Expected& expected, const ReceivedTensor& answer);
  absl::Status TakePull(const Expected& expected, int64_t version,
                        const ReceivedTensor& answer);
  // Gives spoiled targets new memory.
  void ReplaceUnusableTargets();

  ServerGroup* const servers_;
  const StepMarks* const marks_;
  const uint64_t step_id_;
  uint32_t* const exchange_index_;

  std::vector<ServerExchange> open_;         // By server.
  std::vector<Expectations> open_expected_;  // By server.
  std::vector<ServerExchange> closed_;
  std::vector<Expectations> closed_expected_;  // By position in closed_.
  std::vector<Gathered> gathered_;
  std::vector<Pulled> pulled_;
};

}  // namespace muster

#endif  // PS_CLIENT_EXCHANGE_BATCH_H_
