#include "ps/client/exchange_batch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/message.h"

namespace muster {
namespace {

Tensor LocalRows(absl::Span<const int64_t> rows, int64_t row_begin) {
  Tensor local(DType::kInt64, Shape({static_cast<int64_t>(rows.size())}));
  std::transform(rows.begin(), rows.end(),
                 local.mutable_flat<int64_t>().begin(),
                 [row_begin](int64_t row) { return row - row_begin; });
  return local;
}

// Calls visit(shard, begin, end) for every shard with its part of `rows`.
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

absl::Status BadAnswer(absl::string_view why) {
  return absl::InternalError(
      absl::StrCat("a parameter server's answer does not fit what it was "
                   "asked: ",
                   why));
}

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

void ExchangeBatch::Close(int server) {
  ServerExchange& exchange = open_[server];
  if (exchange.IsEmpty()) return;
  exchange.server = server;
  exchange.request.set_step_id(step_id_);
  // Only updates are numbered: a second attempt at a step makes the same ones,
  // but may have to ask for values that the first one held.
  if (!exchange.request.update_handles().empty()) {
    exchange.request.set_exchange_index((*exchange_index_)++);
  }
  exchange.request.set_low_water_mark(
      marks_->low_water_mark.load(std::memory_order_relaxed));
  closed_.push_back(std::exchange(exchange, {}));
  closed_expected_.push_back(std::exchange(open_expected_[server], {}));
}

void ExchangeBatch::Cut() {
  for (size_t server = 0; server < open_.size(); ++server) {
    if (open_[server].size_bytes >= kMessageBytes) {
      Close(static_cast<int>(server));
    }
  }
}

void ExchangeBatch::AddDenseUpdate(const RemoteVariable& variable,
                                   proto::UpdateKind kind,
                                   const Tensor& value) {
  for (size_t i = 0; i < variable.shards().size(); ++i) {
    const RemoteShard& shard = variable.shards()[i];
    Tensor part = variable.ShardOf(value, static_cast<int64_t>(i));
    ServerExchange& exchange = Open(shard.server, part.size_bytes());
    exchange.request.add_update_handles(shard.handle);
    exchange.request.add_update_kinds(kind);
    exchange.tensors.push_back(std::move(part));
  }
}

void ExchangeBatch::AddSparseUpdate(const RemoteVariable& variable,
                                    proto::UpdateKind kind,
                                    absl::Span<const int64_t> rows,
                                    const Tensor& values) {
  Shape shape = variable.type().shape;
  shape.set_dim(0, static_cast<int64_t>(rows.size()));
  const Tensor shaped = values.Reshaped(shape);
  VisitShards(variable, rows, [&](int64_t index, size_t begin, size_t end) {
    // Every shard hears of every gradient, so that all agree on how many there
    // were: schedules and Adam's bias depend on it.
    if (begin == end && kind != proto::APPLY_SPARSE_GRADIENT) return;
    const RemoteShard& shard = variable.shards()[index];
    Tensor part = shaped.SliceRows(begin, end);
    ServerExchange& exchange =
        Open(shard.server, part.size_bytes() + (end - begin) * sizeof(int64_t));
    exchange.request.add_update_handles(shard.handle);
    exchange.request.add_update_kinds(kind);
    exchange.tensors.push_back(LocalRows(rows.subspan(begin, end - begin),
                                         variable.layout().RowBegin(index)));
    exchange.tensors.push_back(std::move(part));
  });
}

void ExchangeBatch::AddGather(const RemoteVariable& variable,
                              absl::Span<const int64_t> rows, uint8_t* out) {
  VisitShards(variable, rows, [&](int64_t index, size_t begin, size_t end) {
    if (begin == end) return;
    const RemoteShard& shard = variable.shards()[index];
    TensorType type = variable.type();
    type.shape.set_dim(0, static_cast<int64_t>(end - begin));
    ServerExchange& exchange =
        Open(shard.server, (end - begin) * variable.row_bytes());
    exchange.request.add_gather_handles(shard.handle);
    exchange.tensors.push_back(LocalRows(rows.subspan(begin, end - begin),
                                         variable.layout().RowBegin(index)));
    open_expected_[shard.server].gathers.push_back(
        {std::move(type), out + begin * variable.row_bytes()});
  });
}

void ExchangeBatch::AddPull(RemoteVariable* variable) {
  for (size_t i = 0; i < variable->shards().size(); ++i) {
    const RemoteShard& shard = variable->shards()[i];
    const int64_t index = static_cast<int64_t>(i);
    ServerExchange& exchange =
        Open(shard.server,
             variable->layout().RowCount(index) * variable->row_bytes());
    exchange.request.add_pull_handles(shard.handle);
    exchange.request.add_pull_held_versions(variable->held_version(index));
    open_expected_[shard.server].pulls.push_back({variable, index});
  }
  pulled_.push_back(variable);
}

absl::Status ExchangeBatch::Send() {
  // Read before asking: what is scheduled later may depend on what is applied
  // later.
  const uint64_t scheduled = marks_->scheduled.load(std::memory_order_acquire);
  for (size_t server = 0; server < open_.size(); ++server) {
    Close(static_cast<int>(server));
  }
  RETURN_IF_ERROR(servers_->Exchange(&closed_));
  for (size_t i = 0; i < closed_.size(); ++i) {
    RETURN_IF_ERROR(TakeAnswers(closed_[i], closed_expected_[i]));
  }
  for (RemoteVariable* variable : pulled_) variable->MarkFresh(scheduled);
  return absl::OkStatus();
}

absl::Status ExchangeBatch::TakeAnswers(const ServerExchange& exchange,
                                        const Expected& expected) {
  absl::Span<const ReceivedTensor> answers = exchange.received->tensors();
  for (const Gather& gather : expected.gathers) {
    if (answers.empty() || answers[0].type() != gather.type) {
      return BadAnswer(absl::StrCat("expected rows ", gather.type.ToString()));
    }
    answers[0].CopyTo(gather.out);
    answers.remove_prefix(1);
  }
  if (exchange.response.pull_versions_size() !=
      static_cast<int>(expected.pulls.size())) {
    return BadAnswer(absl::StrCat(exchange.response.pull_versions_size(),
                                  " versions for ", expected.pulls.size(),
                                  " pulls"));
  }
  for (int i = 0; i < exchange.response.pull_versions_size(); ++i) {
    const int64_t version = exchange.response.pull_versions(i);
    if (version == exchange.request.pull_held_versions(i)) continue;
    if (answers.empty()) return BadAnswer("a changed value is missing");
    const Pull& pull = expected.pulls[i];
    RETURN_IF_ERROR(pull.variable->Store(pull.shard, version, answers[0]));
    answers.remove_prefix(1);
  }
  return answers.empty() ? absl::OkStatus() : BadAnswer("more tensors came");
}

}  // namespace muster
