#ifndef PS_CLIENT_REMOTE_VARIABLE_H_
#define PS_CLIENT_REMOTE_VARIABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/message.h"
#include "ps/client/shard_layout.h"

namespace muster {

namespace proto {
class VariableSpec;
}  // namespace proto

// The location of one shard of a variable.
struct RemoteShard {
  int server = 0;
  uint32_t handle = 0;
};

// A variable as a whole, independent of the servers that hold its shards, with
// the newest value that this process has received.
//
// Thread-safe.
class RemoteVariable {
 public:
  // `shards` are all shards, in the order of their rows.
  RemoteVariable(proto::VariableSpec spec, TensorType type, int64_t ordinal,
                 std::vector<RemoteShard> shards);
  ~RemoteVariable();

  proto::VariableSpec spec() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets another initial value. Name and type must not change.
  void SetSpec(proto::VariableSpec spec) ABSL_LOCKS_EXCLUDED(mutex_);
  const std::string& name() const { return name_; }
  const TensorType& type() const { return type_; }
  int64_t ordinal() const { return ordinal_; }
  int64_t row_elements() const { return row_elements_; }
  size_t row_bytes() const { return row_elements_ * SizeOf(type_.dtype); }
  const ShardLayout& layout() const { return layout_; }
  const std::vector<RemoteShard>& shards() const { return shards_; }

  // Returns the rows of `value` that belong to `shard`. `value` has the type of
  // this variable. The result shares its memory.
  Tensor ShardOf(const Tensor& value, int64_t shard) const;

  TensorType ShardType(int64_t shard) const;

  // Returns the version of the value of a shard in this process. Requests to
  // the server contain it.
  int64_t held_version(int64_t shard) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Stores the value of a shard that was received with `version`, unless the
  // stored one is as new. Does not modify tensors that value() has returned.
  //   kInternal  the tensor is not of the shard's type
  absl::Status Store(int64_t shard, int64_t version,
                     const ReceivedTensor& value) ABSL_LOCKS_EXCLUDED(mutex_);

  // Stores the values of several shards without a copy. `value` is a whole
  // tensor that contains those shards for which `versions` is not 0. Shards
  // that are missing or not newer than the stored ones are copied from the
  // stored value. The caller must not write to `value` afterwards.
  //   kInternal  no value of a shard has ever been received
  absl::Status Adopt(Tensor value, absl::Span<const int64_t> versions)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Records that the value contains every update that had been applied when
  // `scheduled` was the last step scheduled.
  void MarkFresh(uint64_t scheduled) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the largest argument of MarkFresh(), or 0 if no whole value has
  // been received since Forget().
  uint64_t fresh_until() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Discards the value and MarkFresh(), because the variable was set back.
  // Tensors that value() has returned do not change.
  void Forget() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the newest whole value. Shares the memory, which does not change
  // while the caller holds the tensor.
  Tensor value() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::string name_;
  const TensorType type_;
  const int64_t ordinal_;
  const std::vector<RemoteShard> shards_;
  const ShardLayout layout_;
  const int64_t row_elements_;

  mutable absl::Mutex mutex_;
  std::unique_ptr<const proto::VariableSpec> spec_ ABSL_GUARDED_BY(mutex_);
  Tensor value_ ABSL_GUARDED_BY(mutex_);  // Invalid before the first value.
  std::vector<int64_t> held_versions_ ABSL_GUARDED_BY(mutex_);
  uint64_t fresh_until_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // PS_CLIENT_REMOTE_VARIABLE_H_
