#include "ps/client/remote_variable_session.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/compute/variables/update_checks.h"
#include "common/compute/variables/update_kind.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

// Each part of a step numbers its exchanges in a range of this size. No part
// has nearly as many exchanges.
constexpr uint32_t kExchangesPerPartMax = 1 << 16;

// Shape [indices..., row...].
TensorType RowsType(const RemoteVariable& variable, const Shape& indices) {
  return {variable.type().dtype, ShapeOfRows(variable.type(), indices)};
}

absl::Status CheckUpdate(const RemoteVariable& variable, UpdateKind kind,
                         const Tensor& value, const Tensor& indices) {
  if (TakesIndices(kind) && variable.type().shape.rank() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", variable.name(), "\" is a scalar and has no rows"));
  }
  const TensorType expected = TakesIndices(kind)
                                  ? RowsType(variable, indices.shape())
                                  : variable.type();
  if (value.type() == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("variable \"", variable.name(), "\" is a ",
                   variable.type().ToString(), " and takes a value ",
                   expected.ToString(), "; got ", value.type().ToString()));
}

template <typename T>
Tensor Quotient(const Tensor& value, int divisor) {
  Tensor quotient(value.dtype(), value.shape());
  const auto from = value.flat<T>();
  const auto to = quotient.mutable_flat<T>();
  for (int64_t i = 0; i < value.element_count(); ++i) {
    to[i] = from[i] / static_cast<T>(divisor);
  }
  return quotient;
}

// Returns what one of `count` steps adds for the mean of all of them. Integers,
// such as counters, are added as they are.
Tensor ShareOfMean(const Tensor& value, int count) {
  if (value.dtype() == DType::kFloat32) return Quotient<float>(value, count);
  if (value.dtype() == DType::kFloat64) return Quotient<double>(value, count);
  return value;
}

}  // namespace

RemoteVariableSession::RemoteVariableSession(ServerGroup* servers,
                                             const StepMarks* marks,
                                             UpdateGate* gate,
                                             std::vector<Entry> entries)
    : servers_(servers),
      marks_(marks),
      gate_(gate),
      entries_(std::move(entries)),
      values_(entries_.size()) {}

absl::Status RemoteVariableSession::BeginPart(uint64_t step_id, int part) {
  step_id_ = step_id;
  is_permitted_ = false;
  exchange_index_ = static_cast<uint32_t>(part) * kExchangesPerPartMax;
  exchange_index_end_ = exchange_index_ + kExchangesPerPartMax;
  pending_.clear();
  std::fill(values_.begin(), values_.end(), Tensor());
  std::vector<RemoteVariable*> stale;
  for (const Entry& entry : entries_) {
    if (!entry.is_read) continue;
    const uint64_t fresh_until = entry.variable->fresh_until();
    const bool is_stale =
        gate_ != nullptr || step_id == 0 || fresh_until < step_id;
    if (is_stale) stale.push_back(entry.variable);
  }
  if (!stale.empty()) RETURN_IF_ERROR(Exchange(stale));
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].is_read) values_[i] = entries_[i].variable->value();
  }
  return absl::OkStatus();
}

bool RemoteVariableSession::HasPending(int variable) const {
  return std::any_of(
      pending_.begin(), pending_.end(),
      [variable](const Pending& p) { return p.variable == variable; });
}

absl::Status RemoteVariableSession::AwaitPermission() {
  if (gate_ == nullptr || is_permitted_) return absl::OkStatus();
  const bool has_gradients =
      std::any_of(pending_.begin(), pending_.end(), [](const Pending& p) {
        return p.kind == UpdateKind::kApplyGradient ||
               p.kind == UpdateKind::kApplySparseGradient;
      });
  if (!has_gradients) return absl::OkStatus();
  RETURN_IF_ERROR(gate_->AwaitPermission(step_id_));
  is_permitted_ = true;
  return absl::OkStatus();
}

absl::StatusOr<Tensor> RemoteVariableSession::Read(int variable) {
  MUSTER_CHECK(variable >= 0 && variable < static_cast<int>(entries_.size()));
  RemoteVariable* const remote = entries_[variable].variable;
  if (!values_[variable].IsValid() || HasPending(variable)) {
    RETURN_IF_ERROR(Exchange({remote}));
    values_[variable] = remote->value();
  }
  return values_[variable];
}

absl::Status RemoteVariableSession::Gather(int variable, const Tensor& indices,
                                           Tensor* rows) {
  MUSTER_CHECK(variable >= 0 && variable < static_cast<int>(entries_.size()));
  const RemoteVariable& remote = *entries_[variable].variable;
  if (remote.type().shape.rank() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", remote.name(), "\" is a scalar and has no rows"));
  }
  const TensorType type = RowsType(remote, indices.shape());
  if (!rows->IsValid() || rows->type() != type || !rows->IsSoleOwner()) {
    *rows = Tensor(type.dtype, type.shape);
  }
  ExchangeBatch batch(servers_, marks_, step_id_, &exchange_index_);
  // AddPending() uses plan_ too, so it runs before the plan of this lookup.
  if (HasPending(variable)) RETURN_IF_ERROR(AddPending({}, &batch));
  RETURN_IF_ERROR(
      plan_.Compute(remote.name(), indices, remote.layout().row_count()));
  if (plan_.is_in_order()) {
    batch.AddGather(remote, plan_.rows(), rows);
    return batch.Send();
  }
  Tensor fetched = servers_->AllocateTensor(
      DType::kUint8, Shape({static_cast<int64_t>(plan_.rows().size()),
                            static_cast<int64_t>(remote.row_bytes())}));
  batch.AddGather(remote, plan_.rows(), &fetched);
  RETURN_IF_ERROR(batch.Send());
  plan_.Spread(fetched.raw_data(), remote.row_bytes(),
               rows->mutable_raw_data());
  return absl::OkStatus();
}

absl::Status RemoteVariableSession::Update(int variable, UpdateKind kind,
                                           const Tensor& value,
                                           const Tensor& indices) {
  MUSTER_CHECK(variable >= 0 && variable < static_cast<int>(entries_.size()));
  RETURN_IF_ERROR(
      CheckUpdate(*entries_[variable].variable, kind, value, indices));
  const bool is_sum =
      kind == UpdateKind::kAssignAdd || kind == UpdateKind::kAssignSub;
  const Tensor added = gate_ != nullptr && is_sum
                           ? ShareOfMean(value, gate_->closures_per_update())
                           : value;
  pending_.push_back({variable, kind, added, indices});
  return absl::OkStatus();
}

absl::Status RemoteVariableSession::AddSparse(const Pending& update,
                                              ExchangeBatch* batch) {
  const RemoteVariable& variable = *entries_[update.variable].variable;
  RETURN_IF_ERROR(plan_.Compute(variable.name(), update.indices,
                                variable.layout().row_count()));
  const UpdateKind kind = update.kind;
  if (plan_.is_in_order()) {
    batch->AddSparseUpdate(variable, kind, plan_.rows(), update.value);
    return absl::OkStatus();
  }
  if (update.kind == UpdateKind::kApplySparseGradient) {
    if (variable.type().dtype != DType::kFloat32 &&
        variable.type().dtype != DType::kFloat64) {
      return absl::InvalidArgumentError(
          absl::StrCat("variable \"", variable.name(), "\" is a ",
                       variable.type().ToString(), " and takes no gradients"));
    }
    Tensor sums = servers_->AllocateTensor(
        update.value.dtype(), Shape({static_cast<int64_t>(plan_.rows().size()),
                                     variable.row_elements()}));
    plan_.Sum(update.value, variable.row_elements(), &sums);
    batch->AddSparseUpdate(variable, kind, plan_.rows(), sums);
    return absl::OkStatus();
  }
  // Updates of a repeated row are applied one after another, so every row is
  // sent.
  std::vector<int64_t> rows;
  rows.reserve(plan_.row_of().size());
  for (int32_t row : plan_.row_of()) rows.push_back(plan_.rows()[row]);
  Tensor permuted =
      servers_->AllocateTensor(update.value.dtype(), update.value.shape());
  plan_.Permute(update.value, variable.row_bytes(), &permuted);
  batch->AddSparseUpdate(variable, kind, rows, permuted);
  return absl::OkStatus();
}

absl::Status RemoteVariableSession::AddUpdate(const Pending& update,
                                              ExchangeBatch* batch) {
  if (TakesIndices(update.kind)) return AddSparse(update, batch);
  batch->AddDenseUpdate(*entries_[update.variable].variable, update.kind,
                        update.value);
  return absl::OkStatus();
}

absl::Status RemoteVariableSession::AddLossScale(
    const Pending& update, uint32_t number, std::vector<RemoteVariable*>* pulls,
    ExchangeBatch* batch) {
  RETURN_IF_ERROR(AddUpdate(update, batch));
  const auto pull = std::find(pulls->begin(), pulls->end(),
                              entries_[update.variable].variable);
  if (pull != pulls->end()) {
    batch->AddPull(*pull);
    pulls->erase(pull);
  }
  // The number must not depend on the number of messages with gradients. An
  // attempt that drops the gradients sends none of them; with another number
  // the server would count the step twice.
  batch->SplitAs(exchange_index_end_ - 1 - number);
  return absl::OkStatus();
}

absl::Status RemoteVariableSession::AddPending(
    std::vector<RemoteVariable*> pulls, ExchangeBatch* batch) {
  RETURN_IF_ERROR(AwaitPermission());
  std::vector<Pending> pending = std::exchange(pending_, {});
  const auto scales = std::stable_partition(
      pending.begin(), pending.end(), [this](const Pending& update) {
        return entries_[update.variable].is_loss_scale;
      });
  for (auto scale = pending.begin(); scale != scales; ++scale) {
    values_[scale->variable] = Tensor();
    // Every attempt updates all loss scales in the same order.
    const auto number = static_cast<uint32_t>(scale - pending.begin());
    RETURN_IF_ERROR(AddLossScale(*scale, number, &pulls, batch));
  }
  pending.erase(pending.begin(), scales);
  // If each variable has only one update, the message with that update can also
  // pull the new value, and the batch can be split between variables.
  size_t pending_bytes = 0;
  absl::flat_hash_set<int> updated;
  for (const Pending& update : pending) {
    pending_bytes += update.value.size_bytes();
    updated.insert(update.variable);
    // A later Read() fetches the new value, even if this exchange pulls only
    // other variables.
    values_[update.variable] = Tensor();
  }
  const bool may_split = updated.size() == pending.size() &&
                         pending_bytes > ExchangeBatch::kMessageBytes / 2;
  for (const Pending& update : pending) {
    RETURN_IF_ERROR(AddUpdate(update, batch));
    if (!may_split) continue;
    const auto pull = std::find(pulls.begin(), pulls.end(),
                                entries_[update.variable].variable);
    if (pull != pulls.end()) {
      batch->AddPull(*pull);
      pulls.erase(pull);
    }
    batch->AllowSplit();
  }
  for (RemoteVariable* variable : pulls) {
    batch->AddPull(variable);
    if (may_split) batch->AllowSplit();
  }
  return absl::OkStatus();
}

absl::Status RemoteVariableSession::Exchange(
    const std::vector<RemoteVariable*>& pulls) {
  ExchangeBatch batch(servers_, marks_, step_id_, &exchange_index_);
  RETURN_IF_ERROR(AddPending(pulls, &batch));
  return batch.Send();
}

absl::Status RemoteVariableSession::Commit() {
  // The caller no longer reads the values of this step, so the new values can
  // reuse their memory.
  std::fill(values_.begin(), values_.end(), Tensor());
  if (pending_.empty()) return absl::OkStatus();
  std::vector<RemoteVariable*> next;
  for (const Entry& entry : entries_) {
    // With a gate the values may be those before the last gradient of a round.
    if (entry.is_read && gate_ == nullptr) next.push_back(entry.variable);
  }
  return Exchange(next);
}

}  // namespace muster
