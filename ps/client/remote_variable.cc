#include "ps/client/remote_variable.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

int64_t RowCount(const Shape& shape) {
  return shape.rank() == 0 ? 1 : shape.dim(0);
}

}  // namespace

RemoteVariable::RemoteVariable(proto::VariableSpec spec, TensorType type,
                               int64_t ordinal, std::vector<RemoteShard> shards)
    : name_(spec.name()),
      type_(std::move(type)),
      ordinal_(ordinal),
      shards_(std::move(shards)),
      layout_(RowCount(type_.shape), static_cast<int64_t>(shards_.size())),
      row_elements_(type_.shape.rank() == 0 ? 1
                                            : type_.shape.ElementCountInRange(
                                                  1, type_.shape.rank())),
      spec_(std::make_unique<const proto::VariableSpec>(std::move(spec))),
      held_versions_(shards_.size()) {}

RemoteVariable::~RemoteVariable() = default;

proto::VariableSpec RemoteVariable::spec() const {
  absl::ReaderMutexLock lock(&mutex_);
  return *spec_;
}

void RemoteVariable::SetSpec(proto::VariableSpec spec) {
  absl::MutexLock lock(&mutex_);
  spec_ = std::make_unique<const proto::VariableSpec>(std::move(spec));
}

Tensor RemoteVariable::ShardOf(const Tensor& value, int64_t shard) const {
  if (shards_.size() == 1) return value;
  return value.SliceRows(layout_.RowBegin(shard), layout_.RowBegin(shard + 1));
}

TensorType RemoteVariable::ShardType(int64_t shard) const {
  TensorType type = type_;
  if (shards_.size() > 1) type.shape.set_dim(0, layout_.RowCount(shard));
  return type;
}

int64_t RemoteVariable::held_version(int64_t shard) const {
  absl::ReaderMutexLock lock(&mutex_);
  return held_versions_[shard];
}

absl::Status RemoteVariable::Store(int64_t shard, int64_t version,
                                   const ReceivedTensor& value) {
  const TensorType expected = ShardType(shard);
  if (value.type() != expected) {
    return absl::InternalError(absl::StrCat(
        "shard ", shard, " of variable \"", name(), "\" is ",
        expected.ToString(), "; its server sent ", value.type().ToString()));
  }
  absl::MutexLock lock(&mutex_);
  if (version <= held_versions_[shard]) return absl::OkStatus();
  if (!value_.IsValid()) {
    value_ = Tensor(type_.dtype, type_.shape);
  } else if (!value_.IsSoleOwner()) {
    // A step still reads the old value.
    value_ =
        shards_.size() == 1 ? Tensor(type_.dtype, type_.shape) : value_.Clone();
  }
  value.CopyTo(value_.mutable_raw_data() +
               layout_.RowBegin(shard) * row_bytes());
  held_versions_[shard] = version;
  return absl::OkStatus();
}

absl::Status RemoteVariable::Adopt(Tensor value,
                                   absl::Span<const int64_t> versions) {
  absl::MutexLock lock(&mutex_);
  bool is_newer = false;
  for (size_t i = 0; i < shards_.size(); ++i) {
    is_newer |= versions[i] > held_versions_[i];
    if (versions[i] == 0 && held_versions_[i] == 0) {
      return absl::InternalError(
          absl::StrCat("shard ", i, " of variable \"", name(),
                       "\" has never been received from its server"));
    }
  }
  if (!is_newer) return absl::OkStatus();
  for (size_t i = 0; i < shards_.size(); ++i) {
    if (versions[i] > held_versions_[i]) {
      held_versions_[i] = versions[i];
      continue;
    }
    const size_t offset_bytes = layout_.RowBegin(i) * row_bytes();
    std::memcpy(value.mutable_raw_data() + offset_bytes,
                value_.raw_data() + offset_bytes,
                layout_.RowCount(i) * row_bytes());
  }
  value_ = std::move(value);
  return absl::OkStatus();
}

void RemoteVariable::MarkFresh(uint64_t scheduled) {
  absl::MutexLock lock(&mutex_);
  fresh_until_ = std::max(fresh_until_, scheduled);
}

uint64_t RemoteVariable::fresh_until() const {
  absl::ReaderMutexLock lock(&mutex_);
  return fresh_until_;
}

void RemoteVariable::Forget() {
  absl::MutexLock lock(&mutex_);
  value_ = Tensor();
  std::fill(held_versions_.begin(), held_versions_.end(), 0);
  fresh_until_ = 0;
}

Tensor RemoteVariable::value() const {
  absl::ReaderMutexLock lock(&mutex_);
  return value_;
}

}  // namespace muster
