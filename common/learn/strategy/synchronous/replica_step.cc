#include "common/learn/strategy/synchronous/replica_step.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/strategy/synchronous/device_trailer.h"
#include "common/learn/strategy/synchronous/gradient_packs.h"
#include "common/learn/strategy/synchronous/leaf_lockstep.h"
#include "common/learn/strategy/synchronous/replica_session.h"
#include "common/learn/strategy/synchronous/state_sharding.h"
#include "common/net/collectives/on_device/staged_communicator.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/tensor_span.h"

namespace muster {
namespace {

using internal::kTrailerFieldCount;

// Returns the number of leaves of this replica.
int LeafCount(const Communicator& communicator, const Leaves& leaves) {
  return leaves.count == 0 ? 1 : leaves.count_of_rank[communicator.rank()];
}

absl::Status CheckResultTypes(absl::Span<const TensorType> types) {
  for (size_t i = 0; i < types.size(); ++i) {
    const DType dtype = types[i].dtype;
    const bool can_be_summed =
        IsFloating(dtype) || dtype == DType::kInt32 || dtype == DType::kInt64;
    if (can_be_summed && types[i].shape.IsFullyKnown()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "result ", i, " of the step is ", types[i].ToString(),
        "; results are summed over replicas, so they are numbers and have the "
        "same shape whatever the batch"));
  }
  return absl::OkStatus();
}

}  // namespace

// Opens the sessions that pass gradients to the step. A replica without peers
// updates its variables at once.
class ReplicaStep::Sessions final : public VariableSessionFactory {
 public:
  explicit Sessions(ReplicaStep* step) : step_(step) {}

  absl::StatusOr<std::unique_ptr<VariableSession>> OpenSession(
      absl::Span<const VariableUse> uses) override {
    if (step_->IsAlone()) return step_->options_.variables->OpenSession(uses);
    return step_->OpenSession(uses, nullptr, nullptr);
  }

  absl::StatusOr<std::unique_ptr<VariableSession>> OpenDeviceSession(
      absl::Span<const VariableUse> uses, Device* device,
      DeviceStream* stream) override {
    if (step_->IsAlone()) {
      return step_->options_.variables->OpenDeviceSession(uses, device, stream);
    }
    return step_->OpenSession(uses, device, stream);
  }

 private:
  ReplicaStep* const step_;
};

// Runs the graph's own collectives, between those of the packs.
class ReplicaStep::Link final : public ReplicaLink {
 public:
  explicit Link(ReplicaStep* step) : step_(step) {}

  int replica_id() const override { return communicator().rank(); }
  int replica_count() const override { return communicator().size(); }

  absl::Status AllReduce(ReduceOp op, Tensor* value,
                         absl::string_view name) override {
    RETURN_IF_ERROR(step_->AwaitPacks());
    return communicator().AllReduce(op, SpanOf(*value), CallOf(name));
  }

  absl::Status AllGather(const Tensor& value,
                         absl::Span<const int64_t> element_counts,
                         Tensor* gathered, absl::string_view name) override {
    RETURN_IF_ERROR(step_->AwaitPacks());
    Tensor input = value;
    return communicator().AllGather(SpanOf(input), element_counts,
                                    SpanOf(*gathered), CallOf(name));
  }

 private:
  Communicator& communicator() const { return *step_->options_.communicator; }
  CollectiveCall CallOf(absl::string_view name) const {
    return {.name = name, .timeout = step_->options_.timeout};
  }

  ReplicaStep* const step_;
};

absl::StatusOr<std::unique_ptr<ReplicaStep>> ReplicaStep::Create(
    Options options) {
  const bool is_alone =
      options.communicator->size() == 1 && options.leaves.count == 0;
  if (!is_alone) RETURN_IF_ERROR(CheckResultTypes(options.result_types));
  return absl::WrapUnique(new ReplicaStep(std::move(options)));
}

ReplicaStep::ReplicaStep(Options options)
    : options_(std::move(options)),
      own_leaf_count_(LeafCount(*options_.communicator, options_.leaves)),
      sessions_(std::make_unique<Sessions>(this)),
      link_(std::make_unique<Link>(this)),
      has_data_(own_leaf_count_) {
  if (options_.leaves.count == 0 || !options_.has_replica_ops) return;
  lockstep_ = std::make_unique<LeafLockstep>(LeafLockstep::Options{
      .communicator = options_.communicator,
      .leaves = options_.leaves,
      .timeout = options_.timeout,
      .before_exchange = [this] { return AwaitPacks(); }});
}

ReplicaStep::~ReplicaStep() = default;

VariableSessionFactory* ReplicaStep::variables() { return sessions_.get(); }

int ReplicaStep::executable_count() const {
  return lockstep_ == nullptr ? 1 : own_leaf_count_;
}

ReplicaLink* ReplicaStep::link(int executable) {
  if (lockstep_ != nullptr) return lockstep_->link(executable);
  const bool has_replicas =
      options_.communicator->size() > 1 && options_.leaves.count == 0;
  return has_replicas ? link_.get() : nullptr;
}

absl::Status ReplicaStep::AwaitPacks() {
  return packs_ == nullptr ? absl::OkStatus() : packs_->AwaitPacksInTransit();
}

bool ReplicaStep::IsAlone() const {
  return options_.communicator->size() == 1 && options_.leaves.count == 0;
}

bool ReplicaStep::MustRun() const {
  return options_.has_replica_ops ||
         (!leaf_sessions_.empty() &&
          leaf_sessions_.front()->has_aggregated_updates());
}

absl::StatusOr<std::unique_ptr<VariableSession>> ReplicaStep::OpenSession(
    absl::Span<const VariableUse> uses, Device* device, DeviceStream* stream) {
  if (static_cast<int>(leaf_sessions_.size()) == executable_count()) {
    return absl::FailedPreconditionError(
        "this replica's step has been compiled already");
  }
  ReplicaSession* const first =
      leaf_sessions_.empty() ? nullptr : leaf_sessions_.front();
  if (first != nullptr && stream != stream_) {
    return absl::FailedPreconditionError(
        "the leaves of a replica must run on one stream of its device");
  }
  // Replicas that share variables have them on the host, where one replica
  // updates them.
  if (device != nullptr && options_.shares_variables) {
    return std::unique_ptr<VariableSession>();
  }
  ASSIGN_OR_RETURN(
      std::unique_ptr<ReplicaSession> session,
      ReplicaSession::Open({.communicator = options_.communicator,
                            .variables = options_.variables,
                            .shares_variables = options_.shares_variables,
                            .applies_updates = options_.applies_updates,
                            .timeout = options_.timeout,
                            .has_fixed_leaves = options_.leaves.count > 0,
                            .survives_losses = options_.survives_losses,
                            .has_replica_ops = options_.has_replica_ops,
                            .expected_weight = options_.expected_weight,
                            .first = first,
                            .device = device,
                            .stream = stream},
                           uses));
  if (session == nullptr) return std::unique_ptr<VariableSession>();
  const bool has_items =
      !session->gradients().empty() || !session->assignments().empty();
  if (has_items && first == nullptr) device_ = device;
  stream_ = stream;
  leaf_sessions_.push_back(session.get());
  return session;
}

absl::Status ReplicaStep::ConnectDevice() {
  Communicator& communicator = *options_.communicator;
  if (communicator.on_device() != nullptr) {
    if (device_ != nullptr) on_device_ = communicator.on_device();
    return absl::OkStatus();
  }
  // Replicas on CPUs reduce whole packs, without stages.
  uint8_t is_staged = device_ != nullptr ? 1 : 0;
  std::vector<uint8_t> are_staged(communicator.size());
  RETURN_IF_ERROR(communicator.AllGather(
      {DType::kUint8, 1, &is_staged},
      std::vector<int64_t>(are_staged.size(), 1),
      {DType::kUint8, communicator.size(), are_staged.data()},
      {.name = "which replicas are on GPUs", .timeout = options_.timeout}));
  if (device_ == nullptr) return absl::OkStatus();
  const bool are_all = std::count(are_staged.begin(), are_staged.end(), 1) ==
                       communicator.size();
  ASSIGN_OR_RETURN(staged_, StageOverHost(&communicator, device_,
                                          are_all ? HostCalls::kInChunks
                                                  : HostCalls::kWhole));
  on_device_ = staged_.get();
  return absl::OkStatus();
}

absl::Status ReplicaStep::Start() {
  RETURN_IF_ERROR(ConnectDevice());
  std::vector<PackItem> gradients;
  std::vector<std::string> names;
  const ReplicaSession* const session = SessionOf(0);
  if (session != nullptr) {
    gradients = session->gradients();
    names = session->gradient_names();
  }
  gradient_count_ = static_cast<int>(gradients.size());
  std::vector<PackItem> trailer = {{DType::kFloat32, kTrailerFieldCount}};
  for (const TensorType& type : options_.result_types) {
    trailer.push_back({type.dtype, type.shape.element_count()});
  }
  const int trailer_end = gradient_count_ + static_cast<int>(trailer.size());
  if (session != nullptr) {
    trailer.insert(trailer.end(), session->assignments().begin(),
                   session->assignments().end());
  }
  const PackPlan plan = PlanPacks(gradients, trailer, options_.bytes_per_pack);
  RETURN_IF_ERROR(Shard(plan));
  const int host_items_end = overlaps_steps() ? gradient_count_ : trailer_end;
  ASSIGN_OR_RETURN(
      packs_, PackExchange::Create(
                  plan, names,
                  {.communicator = options_.communicator,
                   .on_device = on_device_,
                   .stream = stream_,
                   .timeout = options_.timeout,
                   .overlaps = options_.overlaps,
                   .leaves = options_.leaves,
                   .host_items_begin = gradient_count_,
                   .host_items_end = host_items_end,
                   .scattered_packs = sharding_ == nullptr
                                          ? std::vector<bool>()
                                          : sharding_->scattered_packs()}));
  if (sharding_ != nullptr) sharding_->ConnectPacks(packs_.get());
  fields_ = packs_->SumOf(gradient_count_,
                          {DType::kFloat32, {int64_t{kTrailerFieldCount}}});
  for (size_t i = 0; i < options_.result_types.size(); ++i) {
    const int item = gradient_count_ + 1 + static_cast<int>(i);
    results_.push_back(packs_->SumOf(item, options_.result_types[i]));
  }
  if (overlaps_steps()) {
    std::vector<PackItem> items = gradients;
    items.insert(items.end(), trailer.begin(), trailer.end());
    RETURN_IF_ERROR(MakeTrailer(plan, items, trailer_end));
  }
  for (ReplicaSession* const leaf_session : leaf_sessions_) {
    leaf_session->ConnectPacks(packs_.get(), trailer_end, trailer_.get());
  }
  return absl::OkStatus();
}

absl::Status ReplicaStep::Shard(const PackPlan& plan) {
  const ReplicaSession* const session = SessionOf(0);
  const bool has_state = session != nullptr && !session->trained().empty();
  if (!options_.shards_optimizer_state || !has_state) return absl::OkStatus();
  ASSIGN_OR_RETURN(sharding_, StateSharding::Create(
                                  plan, session->trained(), options_.variables,
                                  options_.communicator, options_.timeout));
  return absl::OkStatus();
}

absl::Status ReplicaStep::MakeTrailer(const PackPlan& plan,
                                      absl::Span<const PackItem> items,
                                      int trailer_end) {
  const auto tensor_of = [&](const PackPart& part) {
    return packs_->SumOf(part.first_item,
                         {items[part.first_item].dtype, {part.element_count}});
  };
  for (const PackPart& part : PartsOf(plan, items, 0, gradient_count_)) {
    gradient_parts_.push_back(tensor_of(part));
  }
  const std::vector<PackPart> parts =
      PartsOf(plan, items, gradient_count_, trailer_end);
  std::vector<Tensor> copied;
  for (const PackPart& part : parts) copied.push_back(tensor_of(part));
  for (int item = gradient_count_ + 1; item < trailer_end; ++item) {
    const PackPlan::Place& place = plan.places[item];
    const auto part = std::find_if(
        parts.begin(), parts.end(), [&](const PackPart& candidate) {
          return plan.places[candidate.first_item].pack == place.pack;
        });
    const int64_t offset = place.begin - plan.places[part->first_item].begin;
    result_places_.emplace_back(static_cast<int>(part - parts.begin()),
                                offset * SizeOf(items[item].dtype));
  }
  ASSIGN_OR_RETURN(trailer_, DeviceTrailer::Create(
                                 {.device = &on_device_->device(),
                                  .stream = stream_,
                                  .gate = leaf_sessions_.front()->gate(),
                                  .expected_weight = options_.expected_weight,
                                  .fields = fields_,
                                  .parts = std::move(copied)}));
  on_device_->UseEndWord(trailer_->end_word());
  if (on_device_->device().captures_steps()) {
    graphs_ = std::make_unique<StepGraphs>(&on_device_->device(), stream_);
  }
  return absl::OkStatus();
}

bool ReplicaStep::overlaps_steps() const {
  return !leaf_sessions_.empty() && leaf_sessions_.front()->gate() != nullptr;
}

absl::Status ReplicaStep::Begin(StepRequest request, bool lets_steps_overlap) {
  step_request_ = request;
  lets_steps_overlap_ = lets_steps_overlap;
  if (IsAlone()) {
    outcome_ = {.stop_requested = request == StepRequest::kStop,
                .is_last_step = request == StepRequest::kStopAfter};
    // Releases the results, so that their owners can reuse the memory.
    results_.clear();
    return absl::OkStatus();
  }
  if (packs_ == nullptr) RETURN_IF_ERROR(Start());
  if (!leaf_sessions_.empty()) leaf_sessions_.front()->BeginStep();
  return absl::OkStatus();
}

absl::Status ReplicaStep::RunLeaves(
    absl::FunctionRef<absl::Status(int leaf)> work) {
  if (lockstep_ != nullptr) return lockstep_->Run(work);
  for (int leaf = 0; leaf < own_leaf_count_; ++leaf) {
    RETURN_IF_ERROR(work(leaf));
  }
  return absl::OkStatus();
}

ReplicaSession* ReplicaStep::SessionOf(int leaf) const {
  if (leaf_sessions_.empty()) return nullptr;
  return leaf_sessions_[leaf_sessions_.size() == 1 ? 0 : leaf];
}

void ReplicaStep::BeginLeaf(int leaf, bool has_data) {
  has_data_[leaf] = has_data;
  ReplicaSession* const session = SessionOf(leaf);
  if (session == nullptr) return;
  session->BeginLeaf({.number = leaf,
                      .is_last = leaf + 1 == own_leaf_count_,
                      .has_data = has_data});
}

absl::Status ReplicaStep::EndLeaf(int leaf, absl::Span<const Tensor> results) {
  if (IsAlone()) {
    if (has_data_[leaf]) ++outcome_.leaves_with_data;
    results_.assign(results.begin(), results.end());
    return absl::OkStatus();
  }
  const bool has_ended = overlaps_steps() && results.empty();
  if (has_data_[leaf] && !options_.result_types.empty() && !has_ended) {
    const bool fit = std::equal(
        results.begin(), results.end(), options_.result_types.begin(),
        options_.result_types.end(), [](const Tensor& a, const TensorType& b) {
          return a.dtype() == b.dtype && a.shape() == b.shape;
        });
    if (!fit) {
      return absl::InternalError(
          "the results of a step have other types than its graph says");
    }
  }
  ReplicaSession* const session = SessionOf(leaf);
  if (session != nullptr) RETURN_IF_ERROR(session->EndLeaf());
  if (overlaps_steps()) return ContributeResults(results);
  WriteTrailer(leaf, results);
  return absl::OkStatus();
}

TrailerFields ReplicaStep::FieldsOf(int leaf) const {
  const ReplicaSession* const session = SessionOf(leaf);
  const bool is_weighted =
      has_data_[leaf] && session != nullptr && session->is_weighted();
  TrailerFields fields = {};
  fields[internal::kLeavesWithData] = has_data_[leaf] ? 1 : 0;
  fields[internal::kWeightedLeaves] = is_weighted ? 1 : 0;
  fields[internal::kWeight] =
      is_weighted ? static_cast<float>(session->weight()) : 0;
  fields[internal::kStopRequests] = step_request_ == StepRequest::kStop ? 1 : 0;
  fields[internal::kWantToStopAfter] =
      step_request_ == StepRequest::kStopAfter ? 1 : 0;
  fields[internal::kLetStepsOverlap] = lets_steps_overlap_ ? 1 : 0;
  return fields;
}

absl::Status ReplicaStep::ContributeResults(absl::Span<const Tensor> results) {
  const bool has_results = has_data_[0] && !results.empty();
  for (size_t i = 0; i < options_.result_types.size(); ++i) {
    const int item = gradient_count_ + 1 + static_cast<int>(i);
    const TensorType& type = options_.result_types[i];
    const size_t size_bytes = type.shape.element_count() * SizeOf(type.dtype);
    if (size_bytes == 0) continue;
    RETURN_IF_ERROR(has_results ? packs_->Contribute(item, 0, results[i], {})
                                : packs_->ContributeZeros(item, 0, size_bytes));
  }
  return absl::OkStatus();
}

void ReplicaStep::WriteTrailer(int leaf, absl::Span<const Tensor> results) {
  const TrailerFields fields = FieldsOf(leaf);
  std::memcpy(packs_->HostContribution(gradient_count_, leaf), fields.data(),
              sizeof(fields));
  for (size_t i = 0; i < options_.result_types.size(); ++i) {
    const int item = gradient_count_ + 1 + static_cast<int>(i);
    uint8_t* const contribution = packs_->HostContribution(item, leaf);
    const size_t size_bytes = results_[i].size_bytes();
    if (size_bytes == 0) continue;
    if (has_data_[leaf]) {
      std::memcpy(contribution, results[i].raw_data(), size_bytes);
    } else {
      std::memset(contribution, 0, size_bytes);
    }
  }
}

void ReplicaStep::ReadFields(const float* fields) {
  std::copy_n(fields, kTrailerFieldCount, sums_.begin());
  const int leaf_count = options_.leaves.count > 0
                             ? options_.leaves.count
                             : options_.communicator->size();
  outcome_ = {.leaves_with_data =
                  static_cast<int64_t>(sums_[internal::kLeavesWithData]),
              .stop_requested = sums_[internal::kStopRequests] > 0,
              .is_last_step = sums_[internal::kWantToStopAfter] > 0,
              .all_let_steps_overlap = sums_[internal::kLetStepsOverlap] ==
                                       static_cast<float>(leaf_count)};
}

double ReplicaStep::GradientScale() const {
  const bool is_weighted = sums_[internal::kWeightedLeaves] > 0;
  // If all weights are zero, the packs contain only zeros.
  return is_weighted && sums_[internal::kWeight] > 0
             ? options_.expected_weight / sums_[internal::kWeight]
             : 1;
}

absl::Status ReplicaStep::ErrorOfOthers() {
  if (on_device_ != nullptr) RETURN_IF_ERROR(on_device_->Await());
  RETURN_IF_ERROR(options_.communicator->Barrier(
      {.name = "the error of another replica", .timeout = options_.timeout}));
  return absl::InternalError(
      "a step was not applied, but no replica has found an error");
}

absl::Status ReplicaStep::CommitOnHost() {
  RETURN_IF_ERROR(packs_->Finish());
  ReadFields(fields_.flat<float>().data());
  if (sums_[internal::kInvalidData] > 0) return ErrorOfOthers();
  const bool changes_nothing =
      outcome_.leaves_with_data == 0 || outcome_.stop_requested;
  if (changes_nothing || leaf_sessions_.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(leaf_sessions_.front()->ApplyUpdates(
      GradientScale(), outcome_.leaves_with_data));
  return sharding_ == nullptr ? absl::OkStatus() : sharding_->ExchangeValues();
}

absl::Status ReplicaStep::CommitOnDevice() {
  if (graphs_ == nullptr) {
    RETURN_IF_ERROR(EnqueueCommit());
  } else {
    graphs_->BeginStep();
    absl::Status status = EnqueueCommit();
    status.Update(graphs_->EndStep());
    RETURN_IF_ERROR(status);
  }
  ++unfinished_count_;
  return absl::OkStatus();
}

absl::Status ReplicaStep::EnqueueCommit() {
  ReplicaSession& session = *leaf_sessions_.front();
  if (!has_data_[0]) {
    RETURN_IF_ERROR(session.gate()->BeginStep().status());
    RETURN_IF_ERROR(session.BeginWithoutData());
  }
  RETURN_IF_ERROR(trailer_->Write(FieldsOf(0), session.is_weighed_on_device()));
  RETURN_IF_ERROR(packs_->Combine());
  RETURN_IF_ERROR(trailer_->Decide());
  for (Tensor& part : gradient_parts_) {
    RETURN_IF_ERROR(packs_->Scale(&part, trailer_->gradient_scale()));
  }
  return session.ApplyBehindGate();
}

absl::Status ReplicaStep::Commit() {
  if (IsAlone()) return absl::OkStatus();
  return overlaps_steps() ? CommitOnDevice() : CommitOnHost();
}

void ReplicaStep::ReadCopies() {
  // The fields are the first item of the trailer.
  ReadFields(reinterpret_cast<const float*>(trailer_->copy(0)->data()));
  for (size_t i = 0; i < results_.size(); ++i) {
    const auto& [part, offset] = result_places_[i];
    const TensorType& type = options_.result_types[i];
    results_[i] = Tensor(type.dtype, type.shape, trailer_->copy(part), offset);
  }
}

absl::Status ReplicaStep::Await() {
  if (unfinished_count_ == 0) return absl::OkStatus();
  ReplicaSession& session = *leaf_sessions_.front();
  RETURN_IF_ERROR(trailer_->Await(Clock::Real()->Now() + options_.timeout));
  ReadCopies();
  --unfinished_count_;
  const bool is_applied = sums_[internal::kIsApplied] > 0;
  RETURN_IF_ERROR(session.SettleStep(is_applied));
  if (is_applied) return absl::OkStatus();
  for (; unfinished_count_ > 0; --unfinished_count_) {
    RETURN_IF_ERROR(session.SettleStep(false));
  }
  const bool is_agreed =
      outcome_.leaves_with_data == 0 || outcome_.stop_requested;
  if (sums_[internal::kInvalidData] > 0 || !is_agreed) return ErrorOfOthers();
  RETURN_IF_ERROR(stream_->Drain(Clock::Real()->Now() + options_.timeout,
                                 "steps that change nothing"));
  trailer_->ForgetDecided();
  return session.gate()->Open();
}

absl::Status ReplicaStep::Finish() {
  RETURN_IF_ERROR(Commit());
  return Await();
}

}  // namespace muster
