#include "common/compute/runtime/plan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_message.h"
#include "common/core/system/clock.h"
#include "common/core/system/trace.h"
#include "common/core/tensor/check_numerics.h"
#include "common/core/tensor/dtype.h"

namespace muster {
namespace {

absl::Status AddContext(absl::string_view description,
                        const absl::Status& status) {
  return WithMessage(status, absl::StrCat(description, ": ", status.message()));
}

// Comparing type() would copy the shape.
bool HasType(const Tensor& tensor, const TensorType& type) {
  return tensor.dtype() == type.dtype && tensor.shape() == type.shape;
}

// Checks what a store returns, because kernels rely on types.
absl::Status CheckType(const Tensor& value, const TensorType& wanted) {
  if (HasType(value, wanted)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the graph expects ", wanted.ToString(),
                   ", but the store gives ", value.type().ToString()));
}

absl::StatusOr<double> WeightOf(const Tensor& scalar) {
  const double weight = scalar.scalar<float>();
  if (std::isfinite(weight) && weight >= 0) return weight;
  return absl::InvalidArgumentError(
      absl::StrCat("the gradients cannot be means over ", weight, " examples"));
}

// Gives `tensor` memory that it does not share.
void MakeOwn(const TensorType& type, Tensor* tensor) {
  if (!HasType(*tensor, type) || !tensor->IsSoleOwner()) {
    *tensor = Tensor(type.dtype, type.shape);
  }
}

void CopyElements(const Tensor& from, Tensor* to) {
  if (from.dtype() == DType::kString) {
    const auto strings = from.flat<std::string>();
    std::copy(strings.begin(), strings.end(),
              to->mutable_flat<std::string>().begin());
  } else if (from.size_bytes() > 0) {
    std::memcpy(to->mutable_raw_data(), from.raw_data(), from.size_bytes());
  }
}

}  // namespace

Plan::~Plan() {
  // A destructor cannot report the error.
  if (graphs_ != nullptr && graphs_->has_launched()) (void)AwaitDevice();
}

bool Plan::Fits(absl::Span<const Tensor> arguments) const {
  if (arguments.size() != argument_types_.size()) return false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!HasType(arguments[i], argument_types_[i])) return false;
  }
  return true;
}

absl::Status Plan::Run(absl::Span<const Tensor> arguments,
                       const RunOptions& options, VariableSession* session,
                       std::vector<Tensor>* results) {
  RETURN_IF_ERROR(CheckArgumentNumerics(arguments));
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (argument_slots_[i] >= 0) slots_[argument_slots_[i]] = arguments[i];
  }
  PrepareResults(results);
  const TraceSpan span("step", trace_name_);
  absl::Status status;
  if (gate_ != nullptr) status = gate_->BeginStep().status();
  if (status.ok()) status = RunSteps(options, session, /*is_started=*/false);
  // Waits after an error, too: enqueued work uses memory of the caller and of
  // the plan.
  status.Update(AwaitDevice());
  if (stream_ != nullptr) status.Update(FindDataError(session));
  if (status.ok()) status = CheckWeights();
  if (status.ok()) FinishResults(results);
  ReleaseBorrowed();
  return status;
}

absl::Status Plan::Stage(absl::Span<const Tensor> arguments) {
  MUSTER_CHECK(can_start_ && started_count_ < kStartedMax);
  return StartedAt(started_count_).arguments->Stage(arguments);
}

void Plan::CancelStaged() { StartedAt(started_count_).arguments->Cancel(); }

absl::Status Plan::Start(const RunOptions& options, VariableSession* session) {
  const absl::StatusOr<int32_t> number = gate_->BeginStep();
  if (!number.ok()) {
    CancelStaged();
    return number.status();
  }
  Started& started = StartedAt(started_count_);
  started.number = *number;
  UseHostValues(started);
  const TraceSpan span("step", trace_name_);
  ++started_count_;
  absl::Status status = RunSteps(options, session, /*is_started=*/true);
  if (status.ok()) status = stream_->Record(started.done.get());
  ReleaseBorrowed();
  if (!status.ok()) CancelLast(session);
  return status;
}

void Plan::UseHostValues(const Started& started) {
  for (size_t i = 0; i < host_slots_.size(); ++i) {
    slots_[host_slots_[i]] = started.host_values[i];
  }
  for (size_t i = 0; i < argument_slots_.size(); ++i) {
    if (argument_slots_[i] >= 0) {
      slots_[argument_slots_[i]] = (*started.arguments)[i];
    }
  }
}

void Plan::ListStartedResults(std::vector<Tensor>* results) {
  MUSTER_CHECK(started_count_ > 0);
  const Started& last = StartedAt(started_count_ - 1);
  results->resize(results_.size());
  for (size_t i = 0; i < results_.size(); ++i) {
    (*results)[i] = results_[i].kind == ResultKind::kShare
                        ? slots_[results_[i].slot]
                        : last.host_values[results_[i].host_value];
  }
}

absl::Status Plan::Finish(VariableSession* session,
                          std::vector<Tensor>* results) {
  MUSTER_CHECK(started_count_ > 0);
  Started& started = StartedAt(0);
  absl::Status status =
      stream_->Await(*started.done, Clock::Real()->Now() + kStepTimeout,
                     absl::StrCat("a step of graph \"", graph_name_, "\""));
  if (status.ok() && gate_->closed_by() == started.number) {
    // Later steps use the same memory.
    status = AwaitDevice();
    UseHostValues(started);
    status.Update(FindDataError(session));
    status.Update(CheckWeights());
    if (status.ok()) {
      status = absl::InternalError(
          absl::StrCat("graph \"", graph_name_,
                       "\": the device found an error in the data, but no "
                       "kernel reported it"));
    }
    ReleaseBorrowed();
  }
  if (status.ok()) {
    results->resize(results_.size());
    for (size_t i = 0; i < results_.size(); ++i) {
      const Result& result = results_[i];
      if (result.kind == ResultKind::kShare) {
        (*results)[i] = slots_[result.slot];
        continue;
      }
      MakeOwn(result.type, &(*results)[i]);
      CopyElements(started.host_values[result.host_value], &(*results)[i]);
    }
  }
  // Releases the caller's tensors.
  started.arguments->Release();
  first_started_ = (first_started_ + 1) % kStartedMax;
  --started_count_;
  return status;
}

void Plan::CancelLast(VariableSession* session) {
  MUSTER_CHECK(started_count_ > 0);
  Started& last = StartedAt(started_count_ - 1);
  // The caller already has the error of the step.
  (void)AwaitDevice();
  if (gate_->closed_by() == last.number) (void)FindDataError(session);
  last.arguments->Release();
  --started_count_;
}

void Plan::ForgetStarted() {
  for (; started_count_ > 0; --started_count_) {
    StartedAt(started_count_ - 1).arguments->Release();
  }
}

absl::Status Plan::RunSteps(const RunOptions& options, VariableSession* session,
                            bool is_started) {
  bool has_copies = false;  // True if copies are enqueued and may not be done.
  for (Step& step : steps_) {
    absl::Status status;
    if (step.kind == StepKind::kSetLossDenominator &&
        (is_started || !session->needs_loss_denominator())) {
      // For a started step, the weight is checked once the device has completed
      // the step.
      if (is_started) RETURN_IF_ERROR(SetWeightOnDevice(step, session));
      continue;
    }
    if (step.needs_copies && has_copies) {
      // Detects invalid data before variables take updates of the step.
      status = AwaitDevice();
      status.Update(FindDataError(session));
      if (!status.ok()) return status;
      has_copies = false;
    }
    if (status.ok()) {
      const TraceSpan span("kernel", step.trace_name);
      status = RunStep(step, options, session);
    }
    if (status.ok()) status = CheckNumerics(step);
    if (!status.ok()) return AddContext(step.description, status);
    has_copies = has_copies || step.stream != nullptr;
    for (Tensor* tensor : step.releases) *tensor = Tensor();
  }
  return absl::OkStatus();
}

absl::Status Plan::CheckArgumentNumerics(
    absl::Span<const Tensor> arguments) const {
  if (!checks_numerics_) return absl::OkStatus();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const absl::Status status = CheckFinite(arguments[i]);
    if (status.ok()) continue;
    return AddContext(
        absl::StrCat("argument ", i, " of graph \"", graph_name_, "\""),
        status);
  }
  return absl::OkStatus();
}

absl::Status Plan::CheckNumerics(const Step& step) const {
  if (!checks_numerics_) return absl::OkStatus();
  for (const Tensor* output : step.outputs) {
    RETURN_IF_ERROR(CheckFinite(*output));
  }
  return absl::OkStatus();
}

absl::Status Plan::FindDataError(VariableSession* session) {
  if (gate_ != nullptr && gate_->closed_by() == 0) return absl::OkStatus();
  absl::Status first;
  int call = 0;  // Number of a call of the session.
  // Asks every kernel, so that an error of this run is not reported by the
  // next.
  for (const Step& step : steps_) {
    absl::Status status;
    if (step.kernel != nullptr && step.stream != nullptr) {
      status = step.kernel->DataError();
    } else if (step.kind == StepKind::kGather ||
               step.kind == StepKind::kUpdate) {
      status = session->DataError(call++);
    }
    if (!status.ok()) first.Update(AddContext(step.description, status));
  }
  if (gate_ != nullptr) first.Update(gate_->Open());
  return first;
}

absl::Status Plan::AwaitDevice() {
  if (stream_ == nullptr) return absl::OkStatus();
  return stream_->Drain(Clock::Real()->Now() + kStepTimeout,
                        absl::StrCat("a step of graph \"", graph_name_, "\""));
}

absl::Status Plan::RunStep(Step& step, const RunOptions& options,
                           VariableSession* session) {
  switch (step.kind) {
    case StepKind::kKernel:
      return step.kernel->Run(
          {.inputs = step.inputs,
           .outputs = step.outputs,
           .step_seed = options.step_seed,
           .example_offset = options.example_offset,
           .scratch = step.scratch,
           .stream = step.stream,
           .gate = step.stream == nullptr || gate_ == nullptr
                       ? nullptr
                       : gate_->on_device()});
    case StepKind::kView:
      *step.outputs[0] = step.inputs[0]->Reshaped(step.type.shape);
      return absl::OkStatus();
    case StepKind::kRead: {
      ASSIGN_OR_RETURN(*step.outputs[0], session->Read(step.variable));
      return CheckType(*step.outputs[0], step.type);
    }
    case StepKind::kGather:
      return GatherRows(step, session);
    case StepKind::kUpdate:
      return session->Update(step.variable, step.update_kind, *step.inputs[0],
                             *step.inputs[1]);
    case StepKind::kSetLossDenominator: {
      ASSIGN_OR_RETURN(const double weight, WeightOf(*step.inputs[0]));
      return session->SetLossDenominator(weight);
    }
  }
  return absl::InternalError("no such kind of step");
}

absl::Status Plan::SetWeightOnDevice(const Step& step,
                                     VariableSession* session) {
  if (step.device_weight != nullptr) {
    RETURN_IF_ERROR(gate_->CheckWeight(step.device_weight->address()));
    return gated_->SetLossDenominatorOnDevice(*step.device_weight);
  }
  const absl::StatusOr<double> weight = WeightOf(*step.inputs[0]);
  if (!weight.ok()) return AddContext(step.description, weight.status());
  return session->SetLossDenominator(*weight);
}

absl::Status Plan::CheckWeights() const {
  for (const Step& step : steps_) {
    if (step.kind != StepKind::kSetLossDenominator) continue;
    const absl::Status status = WeightOf(*step.inputs[0]).status();
    if (!status.ok()) return AddContext(step.description, status);
  }
  return absl::OkStatus();
}

absl::Status Plan::GatherRows(Step& step, VariableSession* session) {
  // The store may replace the tensor's memory, but other steps read the planned
  // address.
  Tensor& planned = *step.outputs[0];
  Tensor rows = planned;
  RETURN_IF_ERROR(session->Gather(step.variable, *step.inputs[0], &rows));
  RETURN_IF_ERROR(CheckType(rows, step.type));
  if (rows.address() == planned.address()) return absl::OkStatus();
  if (!planned.is_on_host()) return stream_->Copy(rows, &planned);
  CopyElements(rows, &planned);
  return absl::OkStatus();
}

size_t Plan::result_bytes() const {
  size_t bytes = 0;
  for (const Result& result : results_) {
    bytes += result.type.shape.element_count() * SizeOf(result.type.dtype);
  }
  return bytes;
}

void Plan::PrepareResults(std::vector<Tensor>* results) {
  results->resize(results_.size());
  // Released first, so that a tensor returned twice does not count as shared
  // below.
  for (size_t i = 0; i < results_.size(); ++i) {
    if (results_[i].kind == ResultKind::kShare) (*results)[i] = Tensor();
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    if (results_[i].kind == ResultKind::kShare) continue;
    MakeOwn(results_[i].type, &(*results)[i]);
    if (results_[i].kind == ResultKind::kMove) {
      slots_[results_[i].slot] = std::move((*results)[i]);
    }
  }
}

void Plan::FinishResults(std::vector<Tensor>* results) {
  for (size_t i = 0; i < results_.size(); ++i) {
    const Tensor& value = slots_[results_[i].slot];
    if (results_[i].kind == ResultKind::kShare) (*results)[i] = value;
    if (results_[i].kind == ResultKind::kCopy) {
      CopyElements(value, &(*results)[i]);
    }
  }
  // Moved last, because moving empties slots that other results share.
  for (size_t i = 0; i < results_.size(); ++i) {
    if (results_[i].kind == ResultKind::kMove) {
      (*results)[i] = std::move(slots_[results_[i].slot]);
    }
  }
}

void Plan::ReleaseBorrowed() {
  for (const int slot : borrowed_slots_) slots_[slot] = Tensor();
}

}  // namespace muster
