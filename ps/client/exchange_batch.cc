#include "ps/client/exchange_batch.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/net/rpc/message.h"
#include "ps/client/wire_update_kind.h"

namespace muster {
namespace {

Tensor LocalRows(absl::Span<const int64_t> rows, int64_t row_begin) {
  Tensor local(DType::kInt64, Shape({static_cast<int64_t>(rows.size())}));
  std::transform(rows.begin(), rows.end(),
                 local.mutable_flat<int64_t>().begin(),
                 [row_begin](int64_t row) { return row - row_begin; });
  return local;
}

// Calls visit(shard, begin, end) for every shard. [begin, end) are the
// positions of the rows of the shard in `rows`.
template <typename Visitor>
void VisitShards(const RemoteVariable& variable, absl::Span<const int64_t> rows,
                 Visitor visit) {
  size_t begin = 0;
  for (int64_t shard = 0; shard < variable.layout().shard_count(); ++shard) {
    const int64_t row_end = variable.layout().RowBegin(shard + 1);
    const size_t end =
        std::lower_bound(rows.begin() + begin, rows.end(), row_end) -
        rows.begin();
    visit(shard, begin, end);
    begin = end;
  }
}

bool LiesAt(const ReceivedTensor& tensor, const uint8_t* place) {
  return tensor.pieces().size() == 1 && tensor.pieces()[0].data == place;
}

// Smaller values are received in a buffer and then copied: the copy costs less
// than a separate allocation of shared memory.
constexpr size_t kPlacedBytesMin = 64 << 10;

}  // namespace

ExchangeBatch::ExchangeBatch(ServerGroup* servers, const StepMarks* marks,
                             uint64_t step_id, uint32_t* exchange_index)
    : servers_(servers),
      marks_(marks),
      step_id_(step_id),
      exchange_index_(exchange_index),
      open_(servers->size()),
      open_expected_(servers->size()) {}

ServerExchange& ExchangeBatch::Open(int server, size_t size_bytes) {
  open_[server].size_bytes += size_bytes;
  return open_[server];
}

void ExchangeBatch::Close(int server, std::optional<uint32_t> exchange_index) {
  ServerExchange& exchange = open_[server];
  if (exchange.IsEmpty()) return;
  exchange.server = server;
  exchange.request.set_step_id(step_id_);
  // Only messages with updates are numbered. A second attempt at a step sends
  // the same updates, but it may also have to request values that the first
  // attempt had in its cache.
  if (!exchange.request.update_handles().empty()) {
    exchange.request.set_exchange_index(
        exchange_index.has_value() ? *exchange_index : (*exchange_index_)++);
  }
  exchange.request.set_generation(servers_->generation());
  exchange.request.set_low_water_mark(
      marks_->low_water_mark.load(std::memory_order_relaxed));
  for (const auto* group :
       {&open_expected_[server].gathers, &open_expected_[server].pulls}) {
    for (const Expected& expected : *group) {
      exchange.slots.push_back(expected.slot);
    }
  }
  closed_.push_back(std::exchange(exchange, {}));
  closed_expected_.push_back(std::exchange(open_expected_[server], {}));
}

void ExchangeBatch::AllowSplit() {
  for (size_t server = 0; server < open_.size(); ++server) {
    if (open_[server].size_bytes >= kMessageBytes) {
      Close(static_cast<int>(server));
    }
  }
}

void ExchangeBatch::SplitAs(uint32_t exchange_index) {
  for (size_t server = 0; server < open_.size(); ++server) {
    Close(static_cast<int>(server), exchange_index);
  }
}

void ExchangeBatch::AddDenseUpdate(const RemoteVariable& variable,
                                   UpdateKind kind, const Tensor& value) {
  for (size_t i = 0; i < variable.shards().size(); ++i) {
    const RemoteShard& shard = variable.shards()[i];
    Tensor part = variable.ShardOf(value, static_cast<int64_t>(i));
    ServerExchange& exchange = Open(shard.server, part.size_bytes());
    exchange.request.add_update_handles(shard.handle);
    exchange.request.add_update_kinds(WireKind(kind));
    exchange.tensors.push_back(std::move(part));
  }
}

void ExchangeBatch::AddSparseUpdate(const RemoteVariable& variable,
                                    UpdateKind kind,
                                    absl::Span<const int64_t> rows,
                                    const Tensor& values) {
  Shape shape = variable.type().shape;
  shape.set_dim(0, static_cast<int64_t>(rows.size()));
  const Tensor shaped = values.Reshaped(shape);
  VisitShards(variable, rows, [&](int64_t index, size_t begin, size_t end) {
    // Every shard receives every gradient, even one without rows, so that all
    // shards have the same update count. Schedules and Adam's bias correction
    // depend on that count.
    if (begin == end && kind != UpdateKind::kApplySparseGradient) return;
    const RemoteShard& shard = variable.shards()[index];
    Tensor part = shaped.SliceRows(begin, end);
    ServerExchange& exchange =
        Open(shard.server, part.size_bytes() + (end - begin) * sizeof(int64_t));
    exchange.request.add_update_handles(shard.handle);
    exchange.request.add_update_kinds(WireKind(kind));
    exchange.tensors.push_back(LocalRows(rows.subspan(begin, end - begin),
                                         variable.layout().RowBegin(index)));
    exchange.tensors.push_back(std::move(part));
  });
}

void ExchangeBatch::AddGather(const RemoteVariable& variable,
                              absl::Span<const int64_t> rows, Tensor* out) {
  const bool is_shared = servers_->IsShared(out->raw_data());
  VisitShards(variable, rows, [&](int64_t index, size_t begin, size_t end) {
    if (begin == end) return;
    const RemoteShard& shard = variable.shards()[index];
    Expected expected{.slot = {.type = variable.type()},
                      .target = gathered_.size(),
                      .offset_bytes = begin * variable.row_bytes(),
                      .shard = index};
    expected.slot.type.shape.set_dim(0, static_cast<int64_t>(end - begin));
    if (is_shared) {
      expected.slot.place = out->mutable_raw_data() + expected.offset_bytes;
      expected.slot.place_owner = out->buffer();
    }
    ServerExchange& exchange =
        Open(shard.server, (end - begin) * variable.row_bytes());
    exchange.request.add_gather_handles(shard.handle);
    exchange.tensors.push_back(LocalRows(rows.subspan(begin, end - begin),
                                         variable.layout().RowBegin(index)));
    open_expected_[shard.server].gathers.push_back(std::move(expected));
  });
  gathered_.push_back({.out = out});
}

void ExchangeBatch::AddPull(RemoteVariable* variable) {
  Pulled pulled{.variable = variable};
  const size_t size_bytes =
      variable->layout().row_count() * variable->row_bytes();
  if (size_bytes >= kPlacedBytesMin) {
    if (auto buffer = servers_->AllocateShared(size_bytes); buffer != nullptr) {
      pulled.incoming = Tensor(variable->type().dtype, variable->type().shape,
                               std::move(buffer));
      pulled.versions.resize(variable->shards().size());
    }
  }
  for (size_t i = 0; i < variable->shards().size(); ++i) {
    const RemoteShard& shard = variable->shards()[i];
    const int64_t index = static_cast<int64_t>(i);
    Expected expected{.slot = {.type = variable->ShardType(index)},
                      .target = pulled_.size(),
                      .offset_bytes = variable->layout().RowBegin(index) *
                                      variable->row_bytes(),
                      .shard = index};
    if (pulled.incoming.IsValid()) {
      expected.slot.place =
          pulled.incoming.mutable_raw_data() + expected.offset_bytes;
      expected.slot.place_owner = pulled.incoming.buffer();
    }
    ServerExchange& exchange =
        Open(shard.server,
             variable->layout().RowCount(index) * variable->row_bytes());
    exchange.request.add_pull_handles(shard.handle);
    exchange.request.add_pull_held_versions(variable->held_version(index));
    open_expected_[shard.server].pulls.push_back(std::move(expected));
  }
  pulled_.push_back(std::move(pulled));
}

absl::Status ExchangeBatch::Send() {
  // Read before the request is sent: steps that are scheduled later may depend
  // on updates that the servers apply after this pull.
  const uint64_t scheduled = marks_->scheduled.load(std::memory_order_acquire);
  for (size_t server = 0; server < open_.size(); ++server) {
    Close(static_cast<int>(server));
  }
  RETURN_IF_ERROR(servers_->Exchange(&closed_));
  ReplaceUnusableTargets();
  RETURN_IF_ERROR(TakeResponses());
  for (Pulled& pulled : pulled_) {
    if (pulled.incoming.IsValid()) {
      RETURN_IF_ERROR(
          pulled.variable->Adopt(std::move(pulled.incoming), pulled.versions));
    }
    pulled.variable->MarkFresh(scheduled);
  }
  return absl::OkStatus();
}

void ExchangeBatch::ReplaceUnusableTargets() {
  for (size_t i = 0; i < closed_.size(); ++i) {
    if (closed_[i].attempt_count == 1) continue;
    for (const Expected& expected : closed_expected_[i].gathers) {
      gathered_[expected.target].is_unusable |= expected.slot.place != nullptr;
    }
    for (const Expected& expected : closed_expected_[i].pulls) {
      pulled_[expected.target].is_unusable |= expected.slot.place != nullptr;
    }
  }
  for (Gathered& gathered : gathered_) {
    if (gathered.is_unusable) *gathered.out = gathered.out->Clone();
  }
  for (Pulled& pulled : pulled_) {
    if (pulled.is_unusable) pulled.incoming = pulled.incoming.Clone();
  }
}

absl::Status ExchangeBatch::TakeResponses() {
  for (size_t i = 0; i < closed_.size(); ++i) {
    const ExchangeAnswer& answer = closed_[i].answer;
    const auto* tensor = answer.tensors.data();
    for (const Expected& expected : closed_expected_[i].gathers) {
      TakeGather(expected, **tensor++);
    }
    int pull = 0;
    for (const Expected& expected : closed_expected_[i].pulls) {
      const int64_t version = answer.response.pull_versions(pull++);
      const std::optional<ReceivedTensor>& value = *tensor++;
      if (!value.has_value()) continue;
      RETURN_IF_ERROR(TakePull(expected, version, *value));
    }
  }
  return absl::OkStatus();
}

void ExchangeBatch::TakeGather(const Expected& expected,
                               const ReceivedTensor& answer) {
  if (LiesAt(answer, expected.slot.place)) return;
  answer.CopyTo(gathered_[expected.target].out->mutable_raw_data() +
                expected.offset_bytes);
}

absl::Status ExchangeBatch::TakePull(const Expected& expected, int64_t version,
                                     const ReceivedTensor& answer) {
  Pulled& pulled = pulled_[expected.target];
  if (!pulled.incoming.IsValid()) {
    return pulled.variable->Store(expected.shard, version, answer);
  }
  pulled.versions[expected.shard] = version;
  if (!LiesAt(answer, expected.slot.place)) {
    answer.CopyTo(pulled.incoming.mutable_raw_data() + expected.offset_bytes);
  }
  return absl::OkStatus();
}

}  // namespace muster
