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

// Where a job stands, as far as this process knows.
struct StepMarks {
  // The highest step that has been scheduled.
  std::atomic<uint64_t> scheduled{0};
  // Steps below have finished.
  std::atomic<uint64_t> low_water_mark{0};
};

// Gathers what one step has to say to all servers and asks of them, and says it
// in one message each. Updates come first, in the order added; gathers and
// pulls see them.
//
// Everything added stays alive and untouched until Send() returns. Not
// thread-safe.
class ExchangeBatch {
 public:
  // A larger batch goes in several messages, split where AllowSplit() allows:
  // then the values of one come back while the gradients of the next go out,
  // and the server works meanwhile. Counted are both ways together.
  static constexpr size_t kMessageBytes = size_t{32} << 20;

  // Borrows both. `*exchange_index` is where the step's numbering of messages
  // stands, and moves on.
  ExchangeBatch(ServerGroup* servers, const StepMarks* marks, uint64_t step_id,
                uint32_t* exchange_index);

  void AddDenseUpdate(const RemoteVariable& variable, UpdateKind kind,
                      const Tensor& value);

  // `rows` rise; one row of `values` for each.
  void AddSparseUpdate(const RemoteVariable& variable, UpdateKind kind,
                       absl::Span<const int64_t> rows, const Tensor& values);

  // The rows will lie in `out`, one after another; it has room for them, and
  // may get other memory. `rows` rise.
  void AddGather(const RemoteVariable& variable, absl::Span<const int64_t> rows,
                 Tensor* out);

  // The whole value, as far as it changed, will be in `variable`.
  void AddPull(RemoteVariable* variable);

  // The parts before and after this call have no variable in common, so their
  // order does not matter.
  void AllowSplit();

  // What was added since the last message goes in one of its own to each
  // server, with the number `exchange_index`, which no other message of the
  // step has.
  void SplitAs(uint32_t exchange_index);

  // As ServerGroup::Exchange().
  //   kInternal  a server's answer does not fit the question
  absl::Status Send();

 private:
  // Where what is asked for comes together, from one server or several.
  struct Gathered {
    Tensor* out;
    // The server may yet write to the memory: it must not be used.
    bool is_spoiled = false;
  };
  struct Pulled {
    RemoteVariable* variable;
    Tensor incoming;  // Invalid where there is no shared memory.
    bool is_spoiled = false;
    std::vector<int64_t> versions;  // By shard; 0 where nothing came.
  };
  // One slot of one message.
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

  // The message to `server` that is being put together.
  ServerExchange& Open(int server, size_t size_bytes);
  // Without a number: the next one.
  void Close(int server, std::optional<uint32_t> exchange_index = {});
  // Servers write to shared memory by themselves, but not all do, and not
  // always: copies what came otherwise.
  absl::Status TakeAnswers();
  void TakeGather(const Expected& expected, const ReceivedTensor& answer);
  absl::Status TakePull(const Expected& expected, int64_t version,
                        const ReceivedTensor& answer);
  // Gives targets that are spoiled other memory.
  void ReplaceSpoiled();

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
