#include "ps/shard_exchange.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/variables/update_kind.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "proto/parameter_server.pb.h"
#include "ps/client/wire_update_kind.h"

namespace muster {
namespace {

// Below this size, waking another thread costs more than it saves.
constexpr size_t kParallelBytesMin = 512 << 10;
constexpr int kNoStripe = -1;

absl::Status CheckFits(const ShardVariable& variable, size_t answer_bytes,
                       const AnswerPlace& place) {
  if (place.data == nullptr || answer_bytes <= place.size_bytes) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the answer with variable \"", variable.spec().shard_name(),
                   "\" has ", answer_bytes, " bytes, and ", place.size_bytes,
                   " are left at its offset in the caller's segment"));
}

absl::Status TensorCountMismatch(absl::string_view way) {
  return absl::InvalidArgumentError(absl::StrCat(
      "an exchange has too ", way, " tensors for its updates and gathers"));
}

}  // namespace

absl::StatusOr<ShardVariable*> ShardExchange::Find(uint32_t handle) const {
  if (handle >= shard_.variables.size() ||
      shard_.variables[handle] == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        "there is no variable with handle ", handle, "; this server has ",
        shard_.variables.size(), " variables"));
  }
  return shard_.variables[handle].get();
}

absl::Status ShardExchange::Check(absl::Span<const ReceivedTensor> tensors) {
  RETURN_IF_ERROR(CheckUpdates(&tensors));
  RETURN_IF_ERROR(CheckQuestions(&tensors));
  if (!tensors.empty()) return TensorCountMismatch("many");
  return absl::OkStatus();
}

absl::Status ShardExchange::CheckUpdates(
    absl::Span<const ReceivedTensor>* tensors) {
  if (request_.update_handles_size() != request_.update_kinds_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an exchange names ", request_.update_handles_size(),
                     " updates but ", request_.update_kinds_size(), " kinds"));
  }
  updates_.reserve(request_.update_handles_size());
  for (int i = 0; i < request_.update_handles_size(); ++i) {
    ASSIGN_OR_RETURN(ShardVariable * variable,
                     Find(request_.update_handles(i)));
    const std::optional<UpdateKind> kind =
        UpdateKindOf(request_.update_kinds(i));
    if (!kind.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no update of kind ",
                       static_cast<int>(request_.update_kinds(i))));
    }
    const ReceivedTensor* indices = nullptr;
    if (TakesIndices(*kind)) {
      if (tensors->empty()) return TensorCountMismatch("few");
      indices = &tensors->front();
      tensors->remove_prefix(1);
    }
    if (tensors->empty()) return TensorCountMismatch("few");
    ASSIGN_OR_RETURN(
        updates_.emplace_back(),
        variable->Prepare(*kind, tensors->front(), indices,
                          shard_.rules->Of(request_.update_handles(i))));
    tensors->remove_prefix(1);
  }
  return absl::OkStatus();
}

absl::Status ShardExchange::CheckQuestions(
    absl::Span<const ReceivedTensor>* tensors) {
  if (request_.pull_handles_size() != request_.pull_held_versions_size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an exchange pulls ", request_.pull_handles_size(), " values but has ",
        request_.pull_held_versions_size(), " held versions"));
  }
  const size_t answer_count =
      request_.gather_handles_size() + request_.pull_handles_size();
  if (!places_.empty() && places_.size() != answer_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("an exchange asks for ", answer_count, " answers but has ",
                     places_.size(), " places for them"));
  }
  const auto place_of = [&](size_t answer) {
    return places_.empty() ? AnswerPlace{} : places_[answer];
  };
  // A small request can ask for a large answer, so the size is checked before
  // memory is allocated.
  size_t answer_bytes = 0;
  const auto exceeds = [&](const ShardVariable& variable, size_t count,
                           size_t each_bytes) {
    if (each_bytes > 0 &&
        count > (shard_.answer_bytes_max - answer_bytes) / each_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the answer would have more than ", shard_.answer_bytes_max,
          " bytes with variable \"", variable.spec().shard_name(),
          "\"; request less at once, or partition it into more shards"));
    }
    answer_bytes += count * each_bytes;
    return absl::OkStatus();
  };
  for (uint32_t handle : request_.gather_handles()) {
    ASSIGN_OR_RETURN(ShardVariable * variable, Find(handle));
    if (tensors->empty()) return TensorCountMismatch("few");
    ASSIGN_OR_RETURN(std::vector<int64_t> rows,
                     variable->CheckRows(tensors->front()));
    tensors->remove_prefix(1);
    TensorType type = variable->type();
    type.shape.set_dim(0, rows.size());
    const size_t row_bytes = variable->row_elements() * SizeOf(type.dtype);
    RETURN_IF_ERROR(exceeds(*variable, rows.size(), row_bytes));
    RETURN_IF_ERROR(CheckFits(*variable, rows.size() * row_bytes,
                              place_of(gathers_.size())));
    gathers_.push_back({variable, std::move(rows), std::move(type)});
  }
  for (uint32_t handle : request_.pull_handles()) {
    ASSIGN_OR_RETURN(ShardVariable * variable, Find(handle));
    RETURN_IF_ERROR(exceeds(*variable, 1, variable->size_bytes()));
    RETURN_IF_ERROR(CheckFits(*variable, variable->size_bytes(),
                              place_of(gathers_.size() + pulls_.size())));
    pulls_.push_back({variable});
  }
  return absl::OkStatus();
}

bool ShardExchange::MayRunInParallel(size_t size_bytes) const {
  return shard_.pool->thread_count() > 0 && size_bytes >= kParallelBytesMin;
}

void ShardExchange::ForEach(int64_t count, size_t size_bytes,
                            absl::FunctionRef<void(int64_t)> body) const {
  const auto run = [body](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  };
  if (MayRunInParallel(size_bytes)) {
    shard_.pool->ParallelFor(count, 1, run);
  } else {
    run(0, count);
  }
}

void ShardExchange::PlanCopies() {
  if (places_.empty()) return;
  absl::flat_hash_set<const ShardVariable*> updated;
  for (const PreparedUpdate& update : updates_) {
    // With several updates of a variable, only the last one could copy the
    // value. That case is too rare for special code.
    if (!updated.insert(update.variable).second) return;
  }
  for (size_t i = 0; i < pulls_.size(); ++i) {
    Pull& pull = pulls_[i];
    uint8_t* const place = places_[gathers_.size() + i].data;
    if (place == nullptr || !updated.contains(pull.variable)) continue;
    if (!copies_.emplace(pull.variable, place).second) continue;
    pull.copy = place;
    pull.version_before = pull.variable->version();
  }
}

absl::StatusOr<int64_t> ShardExchange::ApplyUpdates(
    absl::FunctionRef<absl::Status()> record) {
  PlanCopies();
  absl::StatusOr<int64_t> number;
  const auto enter = [&] {
    number = shard_.order->Enter(absl::MakeSpan(updates_), record);
    return number.ok();
  };
  size_t size_bytes = 0;
  for (const PreparedUpdate& update : updates_) {
    size_bytes += update.value.size_bytes();
  }
  // A small exchange enters when it can begin: an exchange that has tickets and
  // sleeps would delay those behind it by more than it takes.
  int first_stripe = kNoStripe;
  if (MayRunInParallel(size_bytes)) {
    enter();
  } else {
    first_stripe = updates_[0].variable->FirstStripe(updates_[0]);
    updates_[0].variable->ApplyFirstStripe(&updates_[0], first_stripe, enter);
  }
  RETURN_IF_ERROR(number.status());
  std::vector<Work> work;
  absl::flat_hash_set<const ShardVariable*> in_group;
  size_t group_begin = 0;
  for (size_t i = 0; i <= updates_.size(); ++i) {
    // Updates of different variables are independent and run in parallel.
    if (i == updates_.size() || in_group.contains(updates_[i].variable)) {
      Apply(work);
      for (; group_begin < i; ++group_begin) {
        updates_[group_begin].variable->End();
      }
      work.clear();
      in_group.clear();
    }
    if (i == updates_.size()) break;
    const PreparedUpdate& update = updates_[i];
    in_group.insert(update.variable);
    const auto copy = copies_.find(update.variable);
    uint8_t* const copy_to = copy == copies_.end() ? nullptr : copy->second;
    const int stripe_count =
        ShardVariable::NeedsWhole(update) ? 1 : update.variable->stripe_count();
    for (int stripe = 0; stripe < stripe_count; ++stripe) {
      work.push_back({.update = &update,
                      .stripe = stripe,
                      .copy = copy_to,
                      .is_applied = i == 0 && stripe == first_stripe});
    }
  }
  return number;
}

void ShardExchange::Apply(absl::Span<const Work> work) const {
  size_t size_bytes = 0;
  for (const Work& piece : work) {
    const ShardVariable& variable = *piece.update->variable;
    size_bytes +=
        piece.update->rows.empty()
            ? variable.stripe_bytes()
            : piece.update->value.size_bytes() / variable.stripe_count();
  }
  const auto apply = [work](int64_t w) {
    const Work& piece = work[w];
    ShardVariable& variable = *piece.update->variable;
    if (!piece.is_applied) variable.ApplyStripe(*piece.update, piece.stripe);
    if (piece.copy == nullptr) return;
    // The copy is made while the stripe is in the cache.
    const bool is_whole = ShardVariable::NeedsWhole(*piece.update);
    const int end = is_whole ? variable.stripe_count() : piece.stripe + 1;
    for (int i = piece.stripe; i < end; ++i) variable.CopyStripe(i, piece.copy);
  };
  // Threads of the pool must not wait for a turn: the work for which they wait
  // may be behind them in the queue of the pool. So this thread alone follows
  // an exchange that is still being applied.
  const bool has_turns =
      MayRunInParallel(size_bytes) &&
      std::all_of(work.begin(), work.end(), [](const Work& piece) {
        return piece.is_applied ||
               piece.update->variable->IsNext(*piece.update, piece.stripe);
      });
  ForEach(work.size(), has_turns ? size_bytes : 0, apply);
}

size_t ShardExchange::Answer(proto::ExchangeResponse* response,
                             std::vector<Tensor>* answers) const {
  size_t sent_bytes = 0;
  const auto place_for = [&](size_t answer, const TensorType& type) {
    sent_bytes += type.shape.element_count() * SizeOf(type.dtype);
    if (!places_.empty() && places_[answer].data != nullptr) {
      return places_[answer].data;
    }
    return answers->emplace_back(type.dtype, type.shape).mutable_raw_data();
  };
  size_t answer = 0;
  for (const Gather& gather : gathers_) {
    gather.variable->GatherRows(gather.rows, place_for(answer++, gather.type));
  }
  struct Work {
    const ShardVariable* variable;
    int stripe;
    uint8_t* value;
  };
  std::vector<Work> work;
  size_t size_bytes = 0;
  for (size_t i = 0; i < pulls_.size(); ++i) {
    const Pull& pull = pulls_[i];
    const ShardVariable* variable = pull.variable;
    const size_t place = answer++;
    // Read before the value is copied, so that the next exchange sends the
    // results of concurrent updates again.
    const int64_t version = variable->version();
    response->add_pull_versions(version);
    // The value was copied during the update and no other update has ended
    // since, so the copy is complete for this version.
    if (pull.copy != nullptr && version == pull.version_before + 1) {
      sent_bytes += variable->size_bytes();
      continue;
    }
    if (version == request_.pull_held_versions(static_cast<int>(i))) continue;
    uint8_t* const value = place_for(place, variable->type());
    size_bytes += variable->size_bytes();
    for (int stripe = 0; stripe < variable->stripe_count(); ++stripe) {
      work.push_back({variable, stripe, value});
    }
  }
  ForEach(work.size(), size_bytes, [&](int64_t w) {
    work[w].variable->CopyStripe(work[w].stripe, work[w].value);
  });
  return sent_bytes;
}

}  // namespace muster
