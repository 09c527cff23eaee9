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

// Where one shard of a variable lies.
struct RemoteShard {
  int server = 0;
  uint32_t handle = 0;
};

// One variable as its users see it: whole, wherever its shards are, with the
// newest value that came along.
//
// Thread-safe.
class RemoteVariable {
 public:
  // `shards` by position; all of them.
  RemoteVariable(proto::VariableSpec spec, TensorType type, int64_t ordinal,
                 std::vector<RemoteShard> shards);
  ~RemoteVariable();

  proto::VariableSpec spec() const ABSL_LOCKS_EXCLUDED(mutex_);
  // For another initial value; name and type are those of before.
  void SetSpec(proto::VariableSpec spec) ABSL_LOCKS_EXCLUDED(mutex_);
  const std::string& name() const { return name_; }
  const TensorType& type() const { return type_; }
  int64_t ordinal() const { return ordinal_; }
  int64_t row_elements() const { return row_elements_; }
  size_t row_bytes() const { return row_elements_ * SizeOf(type_.dtype); }
  const ShardLayout& layout() const { return layout_; }
  const std::vector<RemoteShard>& shards() const { return shards_; }

  // `value`, which has this variable's type, as the shard's rows. Shares the
  // memory.
  Tensor ShardOf(const Tensor& value, int64_t shard) const;

  TensorType ShardType(int64_t shard) const;

  // The version of a shard that is here, to be told to its server.
  int64_t held_version(int64_t shard) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes in a shard that came with `version`; one that is older than what is
  // here is dropped. Values handed out are not touched.
  //   kInternal  the tensor is not of the shard's type
  absl::Status Store(int64_t shard, int64_t version,
                     const ReceivedTensor& value) ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes in several shards at once without a copy: `value` is whole, and
  // holds those for which `versions` is not 0. What is missing in it, or older
  // than what is here, is filled in. `value` is not written any more.
  //   kInternal  a shard has never come
  absl::Status Adopt(Tensor value, absl::Span<const int64_t> versions)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The value is as new as when `scheduled` was the last step scheduled.
  void MarkFresh(uint64_t scheduled) ABSL_LOCKS_EXCLUDED(mutex_);
  // The argument of MarkFresh(); 0 while there is no whole value.
  uint64_t fresh_until() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Discards the value: versions start from the beginning on another server.
  // Values handed out stay as they are.
  void Forget() ABSL_LOCKS_EXCLUDED(mutex_);

  // The whole value as far as it came. Shares the memory: it is not written
  // while the caller holds it.
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
  Tensor value_ ABSL_GUARDED_BY(mutex_);  // Invalid until something came.
  std::vector<int64_t> held_versions_ ABSL_GUARDED_BY(mutex_);
  uint64_t fresh_until_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // PS_CLIENT_REMOTE_VARIABLE_H_
