#include "ps/parameter_shard.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/variables/constraint.h"
#include "common/compute/variables/initial_value.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/net/rpc/fault_point.h"
#include "ps/slab.h"

namespace muster {
namespace {

constexpr size_t kNameBytesMax = 1024;
// Below this size, waking another thread costs more than it saves.
constexpr size_t kParallelBytesMin = 512 << 10;

bool TakesIndices(proto::UpdateKind kind) {
  return kind == proto::SCATTER_UPDATE || kind == proto::SCATTER_ADD ||
         kind == proto::SCATTER_SUB || kind == proto::APPLY_SPARSE_GRADIENT;
}

// Returns the type of the rows of `spec`.
absl::StatusOr<TensorType> ShardType(const proto::ShardSpec& spec) {
  RETURN_IF_ERROR(ValidateVariableSpec(spec.variable()));
  if (spec.shard_name().empty() || spec.shard_name().size() > kNameBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a shard's name has ", spec.shard_name().size(),
                     " bytes; expected 1 to ", kNameBytesMax));
  }
  ASSIGN_OR_RETURN(const DType dtype, DecodeDType(spec.variable().dtype()));
  ASSIGN_OR_RETURN(Shape shape, DecodeShape(spec.variable().shape(),
                                            /*allow_unknown=*/false));
  const int64_t row_count = shape.rank() == 0 ? 1 : shape.dim(0);
  if (spec.row_begin() < 0 || spec.row_begin() > spec.row_end() ||
      spec.row_end() > row_count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shard \"", spec.shard_name(), "\" has rows ", spec.row_begin(), " to ",
        spec.row_end(), " of a variable with ", row_count, " rows"));
  }
  const proto::Constraint& constraint = spec.variable().constraint();
  if (NeedsAllRows(constraint, shape.rank()) &&
      spec.row_end() - spec.row_begin() != row_count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shard \"", spec.shard_name(), "\" has rows ", spec.row_begin(), " to ",
        spec.row_end(), " of ", row_count, ", but constraint {",
        constraint.ShortDebugString(),
        "} has norms over all rows; do not partition the variable"));
  }
  if (shape.rank() == 0) {
    if (spec.row_begin() != 0 || spec.row_end() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shard \"", spec.shard_name(), "\" of a scalar must have one row"));
    }
  } else {
    shape.set_dim(0, spec.row_end() - spec.row_begin());
  }
  return TensorType{dtype, std::move(shape)};
}

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

struct ParameterShard::Exchanging {
  struct Gather {
    ShardVariable* variable;
    std::vector<int64_t> rows;
    TensorType type;
  };

  struct Pull {
    ShardVariable* variable;
    // Where the value was copied during the update, and the version before it;
    // null if it was not copied.
    uint8_t* copy = nullptr;
    int64_t version_before = 0;
  };

  std::vector<PreparedUpdate> updates;
  std::vector<Gather> gathers;
  std::vector<Pull> pulls;
  // Where to copy the value of a variable during its update.
  absl::flat_hash_map<const ShardVariable*, uint8_t*> copies;
};

ParameterShard::ParameterShard(const Options& options)
    : options_(options),
      aside_(std::make_shared<AsideBudget>(
          options.frozen_bytes_max > 0
              ? options.frozen_bytes_max
              : std::numeric_limits<int64_t>::max() / 2)),
      pool_("ps_apply", std::max(0, options.thread_count - 1)),
      ledger_(options.remembered_push_count_max),
      rules_(options.memory_bytes_max) {}

ParameterShard::~ParameterShard() = default;

absl::StatusOr<ShardVariable*> ParameterShard::FindExisting(
    const proto::ShardSpec& spec, const TensorType& type) const {
  const auto found = handles_.find(spec.shard_name());
  if (found == handles_.end()) return nullptr;
  ShardVariable* const existing = variables_[found->second].get();
  if (existing->type() == type &&
      existing->spec().row_begin() == spec.row_begin()) {
    RETURN_IF_ERROR(
        CheckSameConstraint(existing->spec().variable(), spec.variable()));
    return existing;
  }
  return absl::AlreadyExistsError(absl::StrCat(
      "variable \"", spec.shard_name(), "\" exists as ",
      existing->type().ToString(), " from row ", existing->spec().row_begin(),
      "; requested ", type.ToString(), " from row ", spec.row_begin()));
}

absl::StatusOr<uint32_t> ParameterShard::Create(
    const proto::CreateRequest& request) {
  const proto::ShardSpec& spec = request.spec();
  ASSIGN_OR_RETURN(const TensorType type, ShardType(spec));
  absl::MutexLock creating(&create_mutex_);
  ShardVariable* existing = nullptr;
  {
    absl::ReaderMutexLock lock(&mutex_);
    ASSIGN_OR_RETURN(existing, FindExisting(spec, type));
  }
  if (existing != nullptr) {
    if (request.starts_over()) RETURN_IF_ERROR(StartOver(existing, spec));
    return existing->handle();
  }
  {
    absl::ReaderMutexLock lock(&mutex_);
    if (variables_.size() >= static_cast<size_t>(options_.variable_count_max)) {
      return absl::ResourceExhaustedError(
          absl::StrCat("this server already has ", variables_.size(),
                       " variables, which is the limit"));
    }
    RETURN_IF_ERROR(rules_.CheckMemory(spec.variable().name(), type));
  }
  ASSIGN_OR_RETURN(Tensor value, AllocateSlab(type));
  if (!request.will_be_restored()) {
    RETURN_IF_ERROR(FillInitialValue(spec.variable(), spec.row_begin(),
                                     spec.row_end(), &value));
  }
  return Add(request, std::move(value));
}

absl::StatusOr<uint32_t> ParameterShard::Add(
    const proto::CreateRequest& request, Tensor value) {
  proto::ShardSpec kept_spec = request.spec();
  // The initial value may be large and is no longer needed.
  if (kept_spec.variable().initializer().has_value()) {
    kept_spec.mutable_variable()->clear_initializer();
  }
  const TensorType type = value.type();
  absl::MutexLock lock(&mutex_);
  size_t handle = variables_.size();
  if (request.handle_plus_one() != 0) {
    handle = request.handle_plus_one() - 1;
    if (handle >= static_cast<size_t>(options_.variable_count_max) ||
        (handle < variables_.size() && variables_[handle] != nullptr)) {
      return absl::AlreadyExistsError(absl::StrCat(
          "variable \"", request.spec().shard_name(), "\" cannot have handle ",
          handle, ": it is in use or exceeds the limit"));
    }
  }
  if (handle >= variables_.size()) variables_.resize(handle + 1);
  handles_[request.spec().shard_name()] = static_cast<uint32_t>(handle);
  variables_[handle] = std::make_shared<ShardVariable>(
      std::move(kept_spec), static_cast<uint32_t>(handle), std::move(value));
  rules_.Add(static_cast<uint32_t>(handle), request.spec().variable().name(),
             type);
  return static_cast<uint32_t>(handle);
}

absl::Status ParameterShard::StartOver(ShardVariable* variable,
                                       const proto::ShardSpec& spec) {
  ASSIGN_OR_RETURN(Tensor value, AllocateSlab(variable->type()));
  RETURN_IF_ERROR(FillInitialValue(spec.variable(), spec.row_begin(),
                                   spec.row_end(), &value));
  BeginRestore();
  variable->Overwrite(0, 0, {value.raw_data(), value.size_bytes()});
  variable->DropSlots();
  variable->FinishRestore(/*update_count=*/0);
  EndRestore();
  absl::MutexLock lock(&mutex_);
  rules_.Reset(spec.variable().name());
  return absl::OkStatus();
}

absl::Status ParameterShard::SetOptimizer(
    const proto::SetOptimizerRequest& request) {
  ASSIGN_OR_RETURN(std::shared_ptr<const UpdateRule> rule,
                   UpdateRule::Create(request.optimizer()));
  const std::vector<std::string> variables(request.variables().begin(),
                                           request.variables().end());
  absl::MutexLock creating(&create_mutex_);
  absl::MutexLock lock(&mutex_);
  return rules_.Set(std::move(rule), variables, request.is_default());
}

void ParameterShard::AssignAverages() {
  // No exchange is in progress, because each holds this lock until it ends.
  absl::MutexLock lock(&mutex_);
  for (const auto& variable : variables_) {
    if (variable != nullptr) variable->AssignAverage();
  }
}

absl::StatusOr<ShardVariable*> ParameterShard::FindByHandle(
    uint32_t handle) const {
  if (handle >= variables_.size() || variables_[handle] == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no variable with handle ",
                                            handle, "; this server has ",
                                            variables_.size(), " variables"));
  }
  return variables_[handle].get();
}

absl::Status ParameterShard::CheckUpdates(
    const proto::ExchangeRequest& request,
    absl::Span<const ReceivedTensor>* tensors, Exchanging* exchanging) const {
  if (request.update_handles_size() != request.update_kinds_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an exchange names ", request.update_handles_size(),
                     " updates but ", request.update_kinds_size(), " kinds"));
  }
  exchanging->updates.reserve(request.update_handles_size());
  for (int i = 0; i < request.update_handles_size(); ++i) {
    ASSIGN_OR_RETURN(ShardVariable * variable,
                     FindByHandle(request.update_handles(i)));
    const proto::UpdateKind kind = request.update_kinds(i);
    if (!proto::UpdateKind_IsValid(kind)) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no update of kind ", static_cast<int>(kind)));
    }
    const ReceivedTensor* indices = nullptr;
    if (TakesIndices(kind)) {
      if (tensors->empty()) return TensorCountMismatch("few");
      indices = &tensors->front();
      tensors->remove_prefix(1);
    }
    if (tensors->empty()) return TensorCountMismatch("few");
    ASSIGN_OR_RETURN(exchanging->updates.emplace_back(),
                     variable->Prepare(kind, tensors->front(), indices,
                                       rules_.Of(request.update_handles(i))));
    tensors->remove_prefix(1);
  }
  return absl::OkStatus();
}

absl::Status ParameterShard::CheckQuestions(
    const proto::ExchangeRequest& request,
    absl::Span<const ReceivedTensor>* tensors,
    absl::Span<const AnswerPlace> places, Exchanging* exchanging) const {
  if (request.pull_handles_size() != request.pull_held_versions_size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an exchange pulls ", request.pull_handles_size(), " values but has ",
        request.pull_held_versions_size(), " held versions"));
  }
  const size_t answer_count =
      request.gather_handles_size() + request.pull_handles_size();
  if (!places.empty() && places.size() != answer_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("an exchange asks for ", answer_count, " answers but has ",
                     places.size(), " places for them"));
  }
  const auto place_of = [&](size_t answer) {
    return places.empty() ? AnswerPlace{} : places[answer];
  };
  // A small request can ask for a large answer, so the size is checked before
  // memory is allocated.
  size_t answer_bytes = 0;
  const auto exceeds = [&](const ShardVariable& variable, size_t count,
                           size_t each_bytes) {
    if (each_bytes > 0 &&
        count > (options_.answer_bytes_max - answer_bytes) / each_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the answer would have more than ", options_.answer_bytes_max,
          " bytes with variable \"", variable.spec().shard_name(),
          "\"; request less at once, or partition it into more shards"));
    }
    answer_bytes += count * each_bytes;
    return absl::OkStatus();
  };
  for (uint32_t handle : request.gather_handles()) {
    ASSIGN_OR_RETURN(ShardVariable * variable, FindByHandle(handle));
    if (tensors->empty()) return TensorCountMismatch("few");
    ASSIGN_OR_RETURN(std::vector<int64_t> rows,
                     variable->CheckRows(tensors->front()));
    tensors->remove_prefix(1);
    TensorType type = variable->type();
    type.shape.set_dim(0, rows.size());
    const size_t row_bytes = variable->row_elements() * SizeOf(type.dtype);
    RETURN_IF_ERROR(exceeds(*variable, rows.size(), row_bytes));
    RETURN_IF_ERROR(CheckFits(*variable, rows.size() * row_bytes,
                              place_of(exchanging->gathers.size())));
    exchanging->gathers.push_back({variable, std::move(rows), std::move(type)});
  }
  for (uint32_t handle : request.pull_handles()) {
    ASSIGN_OR_RETURN(ShardVariable * variable, FindByHandle(handle));
    RETURN_IF_ERROR(exceeds(*variable, 1, variable->size_bytes()));
    RETURN_IF_ERROR(CheckFits(
        *variable, variable->size_bytes(),
        place_of(exchanging->gathers.size() + exchanging->pulls.size())));
    exchanging->pulls.push_back({variable});
  }
  return absl::OkStatus();
}

absl::StatusOr<ParameterShard::Exchanging> ParameterShard::Check(
    const proto::ExchangeRequest& request,
    absl::Span<const ReceivedTensor> tensors,
    absl::Span<const AnswerPlace> places) const {
  Exchanging exchanging;
  RETURN_IF_ERROR(CheckUpdates(request, &tensors, &exchanging));
  RETURN_IF_ERROR(CheckQuestions(request, &tensors, places, &exchanging));
  if (!tensors.empty()) return TensorCountMismatch("many");
  return exchanging;
}

void ParameterShard::ForEach(int64_t count, size_t size_bytes,
                             absl::FunctionRef<void(int64_t)> body) {
  const auto run = [body](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  };
  if (pool_.thread_count() == 0 || size_bytes < kParallelBytesMin) {
    run(0, count);
  } else {
    pool_.ParallelFor(count, 1, run);
  }
}

void ParameterShard::PlanCopies(absl::Span<const AnswerPlace> places,
                                Exchanging* exchanging) {
  if (places.empty()) return;
  absl::flat_hash_set<const ShardVariable*> updated;
  for (const PreparedUpdate& update : exchanging->updates) {
    // With several updates of a variable only the last could copy. That is rare
    // and not worth the code.
    if (!updated.insert(update.variable).second) return;
  }
  for (size_t i = 0; i < exchanging->pulls.size(); ++i) {
    Exchanging::Pull& pull = exchanging->pulls[i];
    uint8_t* const place = places[exchanging->gathers.size() + i].data;
    if (place == nullptr || !updated.contains(pull.variable)) continue;
    if (!exchanging->copies.emplace(pull.variable, place).second) continue;
    pull.copy = place;
    pull.version_before = pull.variable->version();
  }
}

void ParameterShard::ApplyUpdates(Exchanging* exchanging) {
  std::vector<PreparedUpdate>* const updates = &exchanging->updates;
  for (PreparedUpdate& update : *updates) update.variable->Begin(&update);
  struct Work {
    const PreparedUpdate* update;
    int stripe;
    uint8_t* copy;
  };
  std::vector<Work> work;
  absl::flat_hash_set<const ShardVariable*> in_group;
  size_t group_begin = 0;
  for (size_t i = 0; i <= updates->size(); ++i) {
    // Updates of different variables are independent and run in parallel.
    if (i == updates->size() || in_group.contains((*updates)[i].variable)) {
      size_t group_bytes = 0;
      for (const Work& piece : work) {
        group_bytes += piece.update->rows.empty()
                           ? piece.update->variable->stripe_bytes()
                           : piece.update->value.size_bytes() /
                                 piece.update->variable->stripe_count();
      }
      ForEach(work.size(), group_bytes, [&](int64_t w) {
        const auto [update, stripe, copy] = work[w];
        update->variable->ApplyStripe(*update, stripe);
        // Copied while the stripe is in the cache.
        if (copy != nullptr) update->variable->CopyStripe(stripe, copy);
      });
      for (; group_begin < i; ++group_begin) {
        (*updates)[group_begin].variable->End();
      }
      work.clear();
      in_group.clear();
    }
    if (i == updates->size()) break;
    const PreparedUpdate& update = (*updates)[i];
    in_group.insert(update.variable);
    const auto copy = exchanging->copies.find(update.variable);
    uint8_t* const copy_to =
        copy == exchanging->copies.end() ? nullptr : copy->second;
    for (int stripe = 0; stripe < update.variable->stripe_count(); ++stripe) {
      work.push_back({&update, stripe, copy_to});
    }
  }
}

void ParameterShard::Answer(const proto::ExchangeRequest& request,
                            const Exchanging& exchanging,
                            proto::ExchangeResponse* response,
                            absl::Span<const AnswerPlace> places,
                            std::vector<Tensor>* answers) {
  size_t sent_bytes = 0;
  const auto place_for = [&](size_t answer, const TensorType& type) {
    sent_bytes += type.shape.element_count() * SizeOf(type.dtype);
    if (!places.empty() && places[answer].data != nullptr) {
      return places[answer].data;
    }
    return answers->emplace_back(type.dtype, type.shape).mutable_raw_data();
  };
  size_t answer = 0;
  for (const Exchanging::Gather& gather : exchanging.gathers) {
    gather.variable->GatherRows(gather.rows, place_for(answer++, gather.type));
  }
  struct Work {
    const ShardVariable* variable;
    int stripe;
    uint8_t* value;
  };
  std::vector<Work> work;
  size_t size_bytes = 0;
  for (size_t i = 0; i < exchanging.pulls.size(); ++i) {
    const Exchanging::Pull& pull = exchanging.pulls[i];
    const ShardVariable* variable = pull.variable;
    const size_t place = answer++;
    // Read before the value, so that concurrent updates are sent again.
    const int64_t version = variable->version();
    response->add_pull_versions(version);
    // Copied during the update, and no other update has ended since: the copy
    // is complete for this version.
    if (pull.copy != nullptr && version == pull.version_before + 1) {
      sent_bytes += variable->size_bytes();
      continue;
    }
    if (version == request.pull_held_versions(static_cast<int>(i))) continue;
    uint8_t* const value = place_for(place, variable->type());
    size_bytes += variable->size_bytes();
    for (int stripe = 0; stripe < variable->stripe_count(); ++stripe) {
      work.push_back({variable, stripe, value});
    }
  }
  ForEach(work.size(), size_bytes, [&](int64_t w) {
    work[w].variable->CopyStripe(work[w].stripe, work[w].value);
  });
  bytes_sent_.fetch_add(static_cast<int64_t>(sent_bytes),
                        std::memory_order_relaxed);
}

absl::Status ParameterShard::Exchange(const proto::ExchangeRequest& request,
                                      absl::Span<const ReceivedTensor> tensors,
                                      proto::ExchangeResponse* response,
                                      std::vector<Tensor>* answers,
                                      absl::Span<const AnswerPlace> places) {
  const PushId id = {request.step_id(), request.exchange_index()};
  exchange_count_.fetch_add(1, std::memory_order_relaxed);
  absl::ReaderMutexLock lock(&mutex_);
  if (request.generation() != generation_) {
    return absl::FailedPreconditionError(
        absl::StrCat("got an exchange of generation ", request.generation(),
                     ", but training was rolled back and is in generation ",
                     generation_, "; the caller's result is discarded"));
  }
  ASSIGN_OR_RETURN(Exchanging exchanging, Check(request, tensors, places));
  int64_t received_bytes = 0;
  for (const ReceivedTensor& tensor : tensors) {
    received_bytes += static_cast<int64_t>(tensor.size_bytes());
  }
  bytes_received_.fetch_add(received_bytes, std::memory_order_relaxed);
  ledger_.AdvanceLowWaterMark(request.low_water_mark());
  if (!exchanging.updates.empty()) {
    RETURN_IF_ERROR(FaultPoint("ps.before_apply"));
    ASSIGN_OR_RETURN(const bool is_first, ledger_.Claim(id));
    response->set_was_repeat(!is_first);
    (is_first ? update_count_ : repeat_count_)
        .fetch_add(1, std::memory_order_relaxed);
    if (is_first) {
      PlanCopies(places, &exchanging);
      ApplyUpdates(&exchanging);
      ledger_.Finish(id);
    }
    RETURN_IF_ERROR(FaultPoint("ps.after_apply_before_ack"));
  }
  Answer(request, exchanging, response, places, answers);
  return absl::OkStatus();
}

ParameterShard::Activity ParameterShard::activity() const {
  Activity activity = {
      .exchange_count = exchange_count(),
      .update_count = update_count_.load(std::memory_order_relaxed),
      .repeat_count = repeat_count_.load(std::memory_order_relaxed),
      .bytes_received = bytes_received_.load(std::memory_order_relaxed),
      .bytes_sent = bytes_sent_.load(std::memory_order_relaxed)};
  absl::ReaderMutexLock lock(&mutex_);
  activity.variable_bytes = static_cast<int64_t>(rules_.value_bytes());
  activity.variable_count = static_cast<int64_t>(handles_.size());
  return activity;
}

proto::DescribeResponse ParameterShard::Describe() const {
  proto::DescribeResponse description;
  absl::ReaderMutexLock lock(&mutex_);
  description.set_generation(generation_);
  for (const auto& variable : variables_) {
    if (variable == nullptr) continue;
    proto::ShardDescription* shard = description.add_shards();
    *shard->mutable_spec() = variable->spec();
    shard->set_handle(variable->handle());
    shard->set_version(variable->version());
    shard->set_update_count(variable->update_count());
  }
  description.set_memory_bytes(rules_.value_bytes() + rules_.slot_bytes());
  description.set_memory_bytes_max(options_.memory_bytes_max);
  description.set_remembered_exchange_count(ledger_.remembered_count());
  return description;
}

void ParameterShard::Clear() {
  absl::MutexLock creating(&create_mutex_);
  absl::MutexLock lock(&mutex_);
  handles_.clear();
  variables_.clear();
  rules_.Clear();
  generation_ = 0;
  ledger_.Clear();
}

}  // namespace muster
