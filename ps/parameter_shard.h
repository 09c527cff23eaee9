#ifndef PS_PARAMETER_SHARD_H_
#define PS_PARAMETER_SHARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/base/thread_pool.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/net/rpc/message.h"
#include "proto/optimizer.pb.h"
#include "proto/parameter_server.pb.h"
#include "ps/frozen_rows.h"
#include "ps/push_ledger.h"
#include "ps/shard_checkpoint.h"
#include "ps/shard_variable.h"

namespace muster {

// Where one answer goes, and how much fits there. Null: into a tensor made for
// it.
struct AnswerPlace {
  uint8_t* data = nullptr;
  size_t size_bytes = 0;
};

// The part of the model that one server owns, and the only code that changes
// it. Knows nothing of who asks, nor over what.
//
// Thread-safe. Exchanges run side by side, those that meet in one variable
// included; an exchange that comes twice is applied once.
class ParameterShard {
 public:
  struct Options {
    // Threads that one exchange may keep busy, the caller's included.
    int thread_count = 1;
    // Variables and slots together; 0 for no limit.
    size_t memory_bytes_max = 0;
    // What one answer may carry.
    size_t answer_bytes_max = (size_t{1} << 31) - (size_t{1} << 24);
    int variable_count_max = 1 << 20;
    size_t remembered_push_count_max = size_t{1} << 22;
    // What training may change of a state that is being saved before it is
    // written; 0 for no limit.
    size_t frozen_bytes_max = 0;
  };

  explicit ParameterShard(const Options& options);
  ~ParameterShard();

  // Makes a shard and draws its first value. The same again changes nothing.
  // Returns the handle by which exchanges name it.
  //   kAlreadyExists      the name exists with another type or other rows
  //   kInvalidArgument    the spec makes no sense
  //   kResourceExhausted  the memory budget does not allow it
  absl::StatusOr<uint32_t> Create(const proto::ShardSpec& spec) {
    proto::CreateRequest request;
    *request.mutable_spec() = spec;
    return Create(request);
  }
  // The same as proto::CreateRequest says.
  absl::StatusOr<uint32_t> Create(const proto::CreateRequest& request)
      ABSL_LOCKS_EXCLUDED(create_mutex_, mutex_);

  // As VariableStore::SetOptimizer().
  //   kInvalidArgument    a hyperparameter is out of range
  //   kFailedPrecondition another rule, or one with other slots, is in use
  //   kResourceExhausted  the memory budget does not allow the slots
  absl::Status SetOptimizer(const proto::Optimizer& optimizer)
      ABSL_LOCKS_EXCLUDED(create_mutex_, mutex_);

  // Everything is checked before anything is applied. The updates share the
  // request's memory, whose contents may change meanwhile; the answer's tensors
  // are the caller's own. `places` has one for each gather and then each pull,
  // or is empty; what goes to a place is not among `answers`.
  //   kNotFound           a handle is unknown
  //   kInvalidArgument    the request contradicts itself, an update does not
  //                       fit its variable, or an answer not its place
  //   kFailedPrecondition a gradient came before an optimizer, or the exchange
  //                       is of another generation
  //   kResourceExhausted  the answer, the slots or the memory of pushes would
  //                       be too large
  absl::Status Exchange(const proto::ExchangeRequest& request,
                        absl::Span<const ReceivedTensor> tensors,
                        proto::ExchangeResponse* response,
                        std::vector<Tensor>* answers,
                        absl::Span<const AnswerPlace> places = {})
      ABSL_LOCKS_EXCLUDED(mutex_);

  // How many exchanges have come.
  int64_t exchange_count() const {
    return exchange_count_.load(std::memory_order_relaxed);
  }

  // The state of all variables as of now: no exchange is half applied in it.
  // What was frozen before stays what it was.
  //   kFailedPrecondition  a restore is under way
  absl::StatusOr<std::unique_ptr<FrozenShard>> Freeze(uint64_t cut_id)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // VerifyStored() and RestoreVariables() for all variables. Nobody trains
  // meanwhile. What was frozen can no longer be written.
  absl::Status Verify(const TensorBundleReader& reader, bool values_only) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Restore(const TensorBundleReader& reader, bool values_only)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits for exchanges under way. From now on only those of `generation` come
  // in, and no push below the mark; which ones were applied is forgotten. The
  // same again changes nothing.
  //   kFailedPrecondition  the generation is older than this shard's
  absl::Status RollBack(uint64_t generation, uint64_t low_water_mark)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Everything but the job id.
  proto::DescribeResponse Describe() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets everything: the job is over.
  void Clear() ABSL_LOCKS_EXCLUDED(create_mutex_, mutex_);

 private:
  struct Exchanging;  // One exchange, checked.

  absl::StatusOr<ShardVariable*> FindByHandle(uint32_t handle) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Exchanging> Check(const proto::ExchangeRequest& request,
                                   absl::Span<const ReceivedTensor> tensors,
                                   absl::Span<const AnswerPlace> places) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status CheckUpdates(const proto::ExchangeRequest& request,
                            absl::Span<const ReceivedTensor>* tensors,
                            Exchanging* exchanging) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status CheckQuestions(const proto::ExchangeRequest& request,
                              absl::Span<const ReceivedTensor>* tensors,
                              absl::Span<const AnswerPlace> places,
                              Exchanging* exchanging) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Finds the pulls that can be answered while their variables are updated.
  static void PlanCopies(absl::Span<const AnswerPlace> places,
                         Exchanging* exchanging);
  void ApplyUpdates(Exchanging* exchanging);
  void Answer(const proto::ExchangeRequest& request,
              const Exchanging& exchanging, proto::ExchangeResponse* response,
              absl::Span<const AnswerPlace> places,
              std::vector<Tensor>* answers);
  // Null when there is none of this name.
  absl::StatusOr<ShardVariable*> FindExisting(const proto::ShardSpec& spec,
                                              const TensorType& type) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Puts a new variable where it belongs.
  absl::StatusOr<uint32_t> Add(const proto::CreateRequest& request,
                               Tensor value, bool takes_gradients)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status StartOver(ShardVariable* variable, const proto::ShardSpec& spec)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Before variables change otherwise than by updates.
  void BeginRestore() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndRestore() ABSL_LOCKS_EXCLUDED(mutex_);
  // What is there, and the rule.
  struct Contents {
    std::vector<std::shared_ptr<ShardVariable>> variables;
    std::shared_ptr<const UpdateRule> rule;
  };
  Contents ListContents() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Runs body(i) for every i, on several threads when there are enough bytes.
  void ForEach(int64_t count, size_t size_bytes,
               absl::FunctionRef<void(int64_t)> body);
  absl::Status CheckBudget(size_t value_bytes, size_t slot_bytes) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const std::shared_ptr<AsideBudget> aside_;
  std::atomic<int64_t> exchange_count_{0};
  ThreadPool pool_;
  PushLedger ledger_;

  // One shard is made at a time, while exchanges with the others go on. Taken
  // before mutex_.
  absl::Mutex create_mutex_;
  // Held shared through an exchange, exclusively while the map changes.
  mutable absl::Mutex mutex_;
  // By handle. Never shrinks while a job lasts. Some are null while a server
  // that takes the place of another is told what it held.
  std::vector<std::shared_ptr<ShardVariable>> variables_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, uint32_t> handles_ ABSL_GUARDED_BY(mutex_);
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  int restore_count_ ABSL_GUARDED_BY(mutex_) = 0;  // Under way.
  std::shared_ptr<const UpdateRule> rule_ ABSL_GUARDED_BY(mutex_);
  size_t value_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of the variables that may take gradients; their slots are reckoned with
  // from the start, so that a gradient never fails for want of memory.
  size_t slotted_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // PS_PARAMETER_SHARD_H_
