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
#include "common/core/tensor/dtype.h"
#include "common/learn/strategy/synchronous/gradient_packs.h"
#include "common/learn/strategy/synchronous/replica_session.h"
#include "common/net/collectives/on_device/staged_communicator.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/tensor_span.h"

namespace muster {
namespace {

// The beginning of the trailer, all float32: counts of leaves, and a sum.
enum TrailerField : int {
  kLeavesWithData,
  kWeightedLeaves,
  kWeight,
  kWantToStop,
  kWantToStopAfter,
  kTrailerFieldCount,
};

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

// Opens the session that feeds the step. A replica without peers updates its
// variables at once.
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

// The graph's own collectives, which run between those of the packs.
class ReplicaStep::Link final : public ReplicaLink {
 public:
  explicit Link(ReplicaStep* step) : step_(step) {}

  int replica_id() const override { return communicator().rank(); }
  int replica_count() const override { return communicator().size(); }

  absl::Status AllReduce(ReduceOp op, Tensor* value,
                         absl::string_view name) override {
    RETURN_IF_ERROR(AwaitPacks());
    return communicator().AllReduce(op, SpanOf(*value), CallOf(name));
  }

  absl::Status AllGather(const Tensor& value,
                         absl::Span<const int64_t> element_counts,
                         Tensor* gathered, absl::string_view name) override {
    RETURN_IF_ERROR(AwaitPacks());
    Tensor input = value;
    return communicator().AllGather(SpanOf(input), element_counts,
                                    SpanOf(*gathered), CallOf(name));
  }

 private:
  Communicator& communicator() const { return *step_->options_.communicator; }
  CollectiveCall CallOf(absl::string_view name) const {
    return {.name = name, .timeout = step_->options_.timeout};
  }
  absl::Status AwaitPacks() {
    return step_->packs_ == nullptr ? absl::OkStatus()
                                    : step_->packs_->AwaitPacksUnderWay();
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
      sessions_(std::make_unique<Sessions>(this)),
      link_(std::make_unique<Link>(this)) {}

ReplicaStep::~ReplicaStep() = default;

VariableSessionFactory* ReplicaStep::variables() { return sessions_.get(); }

ReplicaLink* ReplicaStep::link() {
  const bool has_replicas =
      options_.communicator->size() > 1 && options_.leaves.count == 0;
  return has_replicas ? link_.get() : nullptr;
}

bool ReplicaStep::IsAlone() const {
  return options_.communicator->size() == 1 && options_.leaves.count == 0;
}

bool ReplicaStep::MustRun() const {
  return session_ != nullptr && session_->has_aggregated_updates();
}

absl::StatusOr<std::unique_ptr<VariableSession>> ReplicaStep::OpenSession(
    absl::Span<const VariableUse> uses, Device* device, DeviceStream* stream) {
  if (session_ != nullptr) {
    return absl::FailedPreconditionError(
        "this replica's step has been compiled already");
  }
  // One of the replicas that share variables updates them on the host.
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
                            .expected_weight = options_.expected_weight,
                            .device = device,
                            .stream = stream},
                           uses));
  if (session == nullptr) return std::unique_ptr<VariableSession>();
  const bool has_items =
      !session->gradients().empty() || !session->assignments().empty();
  if (device != nullptr && has_items) {
    on_device_ = options_.communicator->on_device();
    if (on_device_ == nullptr) {
      ASSIGN_OR_RETURN(staged_, StageOverHost(options_.communicator, device));
      on_device_ = staged_.get();
    }
    stream_ = stream;
  }
  session_ = session.get();
  return session;
}

absl::Status ReplicaStep::Start() {
  std::vector<PackItem> gradients;
  std::vector<std::string> names;
  if (session_ != nullptr) {
    gradients = session_->gradients();
    names = session_->gradient_names();
  }
  gradient_count_ = static_cast<int>(gradients.size());
  std::vector<PackItem> trailer = {{DType::kFloat32, kTrailerFieldCount}};
  for (const TensorType& type : options_.result_types) {
    trailer.push_back({type.dtype, type.shape.element_count()});
  }
  const int first_assignment =
      gradient_count_ + static_cast<int>(trailer.size());
  if (session_ != nullptr) {
    trailer.insert(trailer.end(), session_->assignments().begin(),
                   session_->assignments().end());
  }
  ASSIGN_OR_RETURN(
      packs_, PackExchange::Create(
                  PlanPacks(gradients, trailer, options_.bytes_per_pack), names,
                  {.communicator = options_.communicator,
                   .on_device = on_device_,
                   .stream = stream_,
                   .timeout = options_.timeout,
                   .overlaps = options_.overlaps,
                   .leaves = options_.leaves,
                   .host_items_begin = gradient_count_,
                   .host_items_end = first_assignment}));
  if (session_ != nullptr) {
    session_->ConnectPacks(packs_.get(), first_assignment);
  }
  fields_ = packs_->SumOf(gradient_count_,
                          {DType::kFloat32, {int64_t{kTrailerFieldCount}}});
  for (size_t i = 0; i < options_.result_types.size(); ++i) {
    const int item = gradient_count_ + 1 + static_cast<int>(i);
    results_.push_back(packs_->SumOf(item, options_.result_types[i]));
  }
  return absl::OkStatus();
}

absl::Status ReplicaStep::Begin(Wish wish) {
  wish_ = wish;
  leaf_ = 0;
  if (IsAlone()) {
    outcome_ = {.somebody_wants_to_stop = wish == Wish::kStop,
                .is_last_step = wish == Wish::kStopAfter};
    // Their owners may reuse the memory afterwards.
    results_.clear();
    return absl::OkStatus();
  }
  if (packs_ == nullptr) RETURN_IF_ERROR(Start());
  if (session_ != nullptr) session_->BeginStep();
  return absl::OkStatus();
}

void ReplicaStep::BeginLeaf(bool has_data) {
  has_data_ = has_data;
  if (session_ == nullptr) return;
  session_->BeginLeaf({.number = leaf_,
                       .is_last = leaf_ + 1 == packs_->own_leaf_count(),
                       .has_data = has_data});
}

absl::Status ReplicaStep::EndLeaf(absl::Span<const Tensor> results) {
  if (IsAlone()) {
    if (has_data_) ++outcome_.leaves_with_data;
    results_.assign(results.begin(), results.end());
    return absl::OkStatus();
  }
  if (has_data_ && !options_.result_types.empty()) {
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
  if (session_ != nullptr) RETURN_IF_ERROR(session_->EndLeaf());
  WriteTrailer(results);
  ++leaf_;
  return absl::OkStatus();
}

void ReplicaStep::WriteTrailer(absl::Span<const Tensor> results) {
  float* const fields = reinterpret_cast<float*>(
      packs_->HostContribution(gradient_count_, leaf_));
  const bool is_weighted =
      has_data_ && session_ != nullptr && session_->is_weighted();
  fields[kLeavesWithData] = has_data_ ? 1 : 0;
  fields[kWeightedLeaves] = is_weighted ? 1 : 0;
  fields[kWeight] = is_weighted ? static_cast<float>(session_->weight()) : 0;
  fields[kWantToStop] = wish_ == Wish::kStop ? 1 : 0;
  fields[kWantToStopAfter] = wish_ == Wish::kStopAfter ? 1 : 0;
  for (size_t i = 0; i < options_.result_types.size(); ++i) {
    const int item = gradient_count_ + 1 + static_cast<int>(i);
    uint8_t* const contribution = packs_->HostContribution(item, leaf_);
    const size_t size_bytes = results_[i].size_bytes();
    if (size_bytes == 0) continue;
    if (has_data_) {
      std::memcpy(contribution, results[i].raw_data(), size_bytes);
    } else {
      std::memset(contribution, 0, size_bytes);
    }
  }
}

void ReplicaStep::ReadTrailer() {
  const absl::Span<const float> fields = fields_.flat<float>();
  outcome_.leaves_with_data = static_cast<int64_t>(fields[kLeavesWithData]);
  outcome_.somebody_wants_to_stop = fields[kWantToStop] > 0;
  outcome_.is_last_step = fields[kWantToStopAfter] > 0;
  const bool is_weighted = fields[kWeightedLeaves] > 0;
  // If all weights are zero, the packs contain only zeros.
  gradient_scale_ = is_weighted && fields[kWeight] > 0
                        ? options_.expected_weight / fields[kWeight]
                        : 1;
}

absl::Status ReplicaStep::Finish() {
  if (IsAlone()) return absl::OkStatus();
  RETURN_IF_ERROR(packs_->Finish());
  ReadTrailer();
  const bool changes_nothing =
      outcome_.leaves_with_data == 0 || outcome_.somebody_wants_to_stop;
  if (changes_nothing || session_ == nullptr) return absl::OkStatus();
  return session_->ApplyUpdates(gradient_scale_, outcome_.leaves_with_data);
}

}  // namespace muster
