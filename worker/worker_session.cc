#include "worker/worker_session.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device.h"
#include "common/core/system/metrics.h"
#include "common/net/rpc/fault_point.h"
#include "common/net/rpc/status_detail.h"
#include "proto/worker.pb.h"
#include "worker/client/worker_protocol.h"

namespace muster {
namespace {

// Maximum number of entries in a report: large enough to make its overhead
// negligible, small enough not to delay the report.
constexpr int64_t kReportEntriesMax = 1024;

constexpr size_t kDefinitionCountMax = 1 << 16;

constexpr MetricInfo kClosureSeconds = {
    "muster_closure_seconds", "Time in which this worker runs a closure."};
constexpr MetricInfo kWorkerSteps = {"muster_worker_steps_total",
                                     "Steps that this worker has run."};
constexpr MetricInfo kDeniedClosures = {
    "muster_denied_closures_total",
    "Closures of synchronous training whose gradients were dropped, because an "
    "update had those of others."};
constexpr MetricInfo kClosureFailures = {
    "muster_closure_failures_total", "Closures that failed on this worker."};

size_t SizeBytes(absl::Span<const Tensor> tensors) {
  size_t size_bytes = 0;
  for (const Tensor& tensor : tensors) {
    if (tensor.dtype() != DType::kString) {
      size_bytes += tensor.size_bytes();
      continue;
    }
    for (const std::string& element : tensor.flat<std::string>()) {
      size_bytes += element.size();
    }
  }
  return size_bytes;
}

void AddFinished(uint64_t id, proto::WorkerReport* report) {
  if (report->finished_size() > 0) {
    proto::ClosureRange* last =
        report->mutable_finished(report->finished_size() - 1);
    if (last->first_id() + last->count() == id) {
      last->set_count(last->count() + 1);
      return;
    }
  }
  proto::ClosureRange* const range = report->add_finished();
  range->set_first_id(id);
  range->set_count(1);
}

void AddTime(uint32_t function_id, int64_t step_count, absl::Duration busy,
             proto::WorkerReport* report) {
  proto::FunctionTime* time = nullptr;
  for (proto::FunctionTime& other : *report->mutable_function_times()) {
    if (other.function_id() == function_id) time = &other;
  }
  if (time == nullptr) time = report->add_function_times();
  time->set_function_id(function_id);
  time->set_step_count(time->step_count() + step_count);
  time->set_busy_ns(time->busy_ns() + absl::ToInt64Nanoseconds(busy));
}

}  // namespace

WorkerSession::Outbox::Outbox()
    : report(std::make_unique<proto::WorkerReport>()) {}

WorkerSession::WorkerSession(const Options& options,
                             const StepRunner::Environment& environment,
                             GraphCache* graphs, Clock* clock, SendReport send,
                             OnDeviceLost on_device_lost)
    : options_(options),
      environment_(environment),
      graphs_(graphs),
      clock_(clock),
      send_(std::move(send)),
      on_device_lost_(std::move(on_device_lost)),
      closure_seconds_(GetDurationMetric(kClosureSeconds)),
      steps_(GetCounter(kWorkerSteps)),
      failures_(GetCounter(kClosureFailures)),
      denied_(GetCounter(kDeniedClosures)),
      last_report_(clock->Now()) {
  if (options_.gradients_need_permission) {
    options_.permissions->SetAsk(
        [this](uint64_t closure_id) { AskPermission(closure_id); });
  }
  for (int i = 0; i < options_.runner_count; ++i) {
    runners_.emplace_back([this] { RunLoop(); });
  }
}

WorkerSession::~WorkerSession() {
  Stop();
  Join();
}

void WorkerSession::Join() {
  for (std::thread& runner : runners_) runner.join();
  runners_.clear();
}

absl::Status WorkerSession::Accept(const proto::WorkerCommand& command,
                                   absl::Span<const Tensor> tensors) {
  // Graphs are decoded without the lock.
  std::vector<std::pair<uint32_t, Step>> functions;
  for (const proto::FunctionDefinition& definition : command.functions()) {
    functions.emplace_back(
        definition.function_id(),
        graphs_->Get(definition.fingerprint(), definition.graph()));
  }
  Outbox outbox;
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return absl::OkStatus();
    for (auto& [id, step] : functions) functions_.insert_or_assign(id, step);
    RETURN_IF_ERROR(AcceptLocked(command, tensors));
    // An idle worker may be waiting for the returned closures, while the
    // runners here are busy.
    if (command.recalled_size() > 0) outbox = TakeOutbox(clock_->Now());
  }
  Send(std::move(outbox));
  UpdatePermissions* const permissions = options_.permissions;
  if (permissions != nullptr) {
    for (const uint64_t id : command.permitted()) permissions->Answer(id, true);
    for (const uint64_t id : command.denied()) permissions->Answer(id, false);
  }
  return absl::OkStatus();
}

absl::Status WorkerSession::AcceptLocked(const proto::WorkerCommand& command,
                                         absl::Span<const Tensor> tensors) {
  for (const proto::IteratorDefinition& definition : command.iterators()) {
    iterators_[definition.iterator_id()] = std::make_shared<SessionIterator>(
        definition.iterator_id(), definition.dataset(),
        InputContext{.num_input_pipelines = definition.num_input_pipelines(),
                     .input_pipeline_id = definition.input_pipeline_id(),
                     .num_replicas_in_sync = definition.num_replicas_in_sync()},
        definition.epoch());
  }
  if (functions_.size() > kDefinitionCountMax ||
      iterators_.size() > kDefinitionCountMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "more than ", kDefinitionCountMax, " functions or iterators"));
  }
  for (const proto::ClosureRun& run : command.runs()) {
    RETURN_IF_ERROR(AddRun(run, tensors));
  }
  for (const uint64_t id : command.recalled()) Recall(id);
  for (const uint64_t id : command.released()) {
    const auto kept = kept_.find(id);
    if (kept == kept_.end()) continue;
    kept_bytes_ -= SizeBytes(kept->second);
    kept_.erase(kept);
  }
  if (environment_.variables != nullptr) {
    for (const proto::ClosureRun& run : command.runs()) {
      environment_.variables->NoteScheduled(run.first_id() + run.count() - 1);
    }
    if (command.low_water_mark() > 0) {
      environment_.variables->SetLowWaterMark(command.low_water_mark());
    }
  }
  return absl::OkStatus();
}

absl::Status WorkerSession::AddRun(const proto::ClosureRun& run,
                                   absl::Span<const Tensor> tensors) {
  if (run.count() > options_.unstarted_closures_max ||
      unstarted_count_ + run.count() > options_.unstarted_closures_max) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "worker ", options_.worker_index, " has ", unstarted_count_,
        " unstarted closures and received ", run.count(),
        " more; the limit is ", options_.unstarted_closures_max));
  }
  if (!functions_.contains(run.function_id())) {
    return absl::InvalidArgumentError(
        absl::StrCat("closure ", run.first_id(), " calls function ",
                     run.function_id(), ", which was never sent"));
  }
  auto arguments = std::make_shared<std::vector<StepArgument>>();
  for (const proto::ClosureArgument& argument : run.arguments()) {
    if (argument.kind_case() == proto::ClosureArgument::kIteratorId) {
      const auto found = iterators_.find(argument.iterator_id());
      if (found == iterators_.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("closure ", run.first_id(), " takes iterator ",
                         argument.iterator_id(), ", which was never sent"));
      }
      arguments->push_back(found->second);
    } else if (argument.kind_case() == proto::ClosureArgument::kTensor &&
               argument.tensor() < tensors.size()) {
      arguments->push_back(tensors[argument.tensor()]);
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "closure ", run.first_id(),
          " has an invalid argument: ", argument.ShortDebugString(),
          "; the command has ", tensors.size(), " tensors"));
    }
  }
  if (run.steps_per_closure() > kStepsPerClosureMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "closure ", run.first_id(), " has ", run.steps_per_closure(),
        " steps; expected at most ", kStepsPerClosureMax));
  }
  if (run.count() == 0) return absl::OkStatus();
  runs_.push_back(
      {.first_id = run.first_id(),
       .count = run.count(),
       .function_id = run.function_id(),
       .arguments = std::move(arguments),
       .results_unwanted = run.results_unwanted(),
       .results_come_along = run.results_come_along(),
       .steps_per_closure = std::max<uint32_t>(1, run.steps_per_closure())});
  unstarted_count_ += run.count();
  return absl::OkStatus();
}

void WorkerSession::Recall(uint64_t closure_id) {
  // Searched from the back: recalled closures are among the newest.
  const auto found =
      std::find_if(runs_.rbegin(), runs_.rend(), [&](const Run& run) {
        return run.first_id <= closure_id &&
               closure_id < run.first_id + run.count;
      });
  if (found == runs_.rend()) return;
  const auto run = std::prev(found.base());
  const auto before = static_cast<uint32_t>(closure_id - run->first_id);
  Run after = *run;
  after.first_id = closure_id + 1;
  after.count = run->count - before - 1;
  run->count = before;
  const auto position = before == 0 ? runs_.erase(run) : std::next(run);
  if (after.count > 0) runs_.insert(position, std::move(after));
  --unstarted_count_;
  RecordReturned(closure_id);
}

void WorkerSession::RecordReturned(uint64_t closure_id) {
  outbox_.report->add_returned(closure_id);
  ++outbox_.entry_count;
}

void WorkerSession::AskPermission(uint64_t closure_id) {
  Outbox outbox;
  {
    absl::MutexLock lock(&mutex_);
    outbox_.report->add_awaiting_permission(closure_id);
    ++outbox_.entry_count;
    outbox = TakeOutbox(clock_->Now());
  }
  Send(std::move(outbox));
}

void WorkerSession::Stop() {
  if (options_.permissions != nullptr) options_.permissions->Stop();
  absl::MutexLock lock(&mutex_);
  stopping_ = true;
  runs_.clear();
  unstarted_count_ = 0;
}

absl::StatusOr<std::vector<Tensor>> WorkerSession::FetchResult(
    uint64_t closure_id) {
  absl::MutexLock lock(&mutex_);
  const auto kept = kept_.find(closure_id);
  if (kept == kept_.end()) {
    return absl::NotFoundError(
        absl::StrCat("worker ", options_.worker_index,
                     " does not have the result of closure ", closure_id,
                     ": it was released, or never kept"));
  }
  return kept->second;
}

void WorkerSession::RunLoop() {
  StepRunner runner(environment_);
  std::vector<Tensor> results;
  Closure closure;
  while (true) {
    Outbox outbox;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &WorkerSession::HasWork));
      if (stopping_) return;
      if (!TakeOne(&closure)) outbox = TakeOutbox(clock_->Now());
    }
    Send(std::move(outbox));
    while (closure.is_taken) RunOne(&runner, &closure, &results);
  }
}

bool WorkerSession::TakeOne(Closure* closure) {
  if (runs_.empty()) {
    *closure = Closure();  // Releases the arguments.
    return false;
  }
  Run& front = runs_.front();
  closure->is_taken = true;
  closure->run = front;
  closure->run.count = 1;
  closure->step = functions_.at(front.function_id);
  ++front.first_id;
  --unstarted_count_;
  if (--front.count == 0) runs_.pop_front();
  return true;
}

void WorkerSession::RunOne(StepRunner* runner, Closure* closure,
                           std::vector<Tensor>* results) {
  const Run& run = closure->run;
  const absl::Time started = clock_->Now();
  absl::Status status = closure->step.status();
  if (status.ok()) status = RunSteps(runner, run, *closure->step, results);
  if (status.ok()) status = FaultPoint("worker.before_report");
  Device* const device = environment_.executable.device;
  if (!status.ok() && device != nullptr && !device->health().ok()) {
    Stop();
    on_device_lost_(device->health());
    closure->is_taken = false;
    return;
  }
  const absl::Time now = clock_->Now();
  closure_seconds_->Observe(now - started);
  const bool is_denied = !status.ok() && options_.permissions != nullptr &&
                         options_.permissions->TakeDenied(run.first_id);
  if (status.ok()) {
    steps_->Add(run.steps_per_closure);
  } else {
    (is_denied ? denied_ : failures_)->Add();
  }
  Outbox outbox;
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) {
      closure->is_taken = false;
      return;
    }
    if (is_denied) {
      RecordReturned(run.first_id);
    } else {
      Record(run, status, results);
    }
    if (status.ok()) {
      AddTime(run.function_id, run.steps_per_closure, now - started,
              outbox_.report.get());
    }
    if (ReportIsDue(run.function_id, now)) outbox = TakeOutbox(now);
    // Takes the next closure under the same lock: another lock would add a
    // tenth to the time of a closure without work.
    TakeOne(closure);
  }
  Send(std::move(outbox));
}

absl::Status WorkerSession::RunSteps(
    StepRunner* runner, const Run& closure,
    const std::shared_ptr<const CachedStep>& step,
    std::vector<Tensor>* results) {
  const uint64_t seed = FoldIn(options_.job_seed, closure.first_id);
  RunOptions run{.step_id = closure.first_id, .step_seed = seed};
  if (closure.steps_per_closure == 1) {
    return runner->Run(step, *closure.arguments, run, results);
  }
  std::vector<Tensor> all;
  std::vector<Tensor> of_step;
  for (uint32_t part = 0; part < closure.steps_per_closure; ++part) {
    run.step_part = static_cast<int>(part);
    if (part > 0) run.step_seed = FoldIn(seed, part);
    RETURN_IF_ERROR(runner->Run(step, *closure.arguments, run, &of_step));
    std::move(of_step.begin(), of_step.end(), std::back_inserter(all));
    of_step.clear();
  }
  *results = std::move(all);
  return absl::OkStatus();
}

void WorkerSession::Record(const Run& closure, const absl::Status& status,
                           std::vector<Tensor>* results) {
  ++outbox_.entry_count;
  if (!status.ok()) {
    proto::ClosureFailure* const failure = outbox_.report->add_failures();
    failure->set_id(closure.first_id);
    *failure->mutable_status() = EncodeStatus(status);
    return;
  }
  if (results->empty() || closure.results_unwanted) {
    AddFinished(closure.first_id, outbox_.report.get());
    return;
  }
  proto::ClosureResult* const result = outbox_.report->add_results();
  result->set_id(closure.first_id);
  if (!closure.results_come_along && KeepResults(closure.first_id, results)) {
    result->set_kept(true);
    return;
  }
  result->set_first_tensor(static_cast<uint32_t>(outbox_.tensors.size()));
  result->set_tensor_count(static_cast<uint32_t>(results->size()));
  for (Tensor& tensor : *results) outbox_.tensors.push_back(std::move(tensor));
  results->clear();
}

bool WorkerSession::KeepResults(uint64_t closure_id,
                                std::vector<Tensor>* results) {
  const size_t size_bytes = SizeBytes(*results);
  if (size_bytes <= options_.inline_result_bytes_max ||
      kept_.size() >= options_.kept_result_count_max ||
      kept_bytes_ + size_bytes > options_.kept_result_bytes_max) {
    return false;
  }
  kept_bytes_ += size_bytes;
  kept_[closure_id] = std::exchange(*results, {});
  return true;
}

bool WorkerSession::ReportIsDue(uint32_t function_id, absl::Time now) const {
  // Finished closures are reported before a closure of another function starts,
  // because that may take long.
  return runs_.empty() || runs_.front().function_id != function_id ||
         outbox_.entry_count >= kReportEntriesMax ||
         now - last_report_ >= options_.report_interval;
}

WorkerSession::Outbox WorkerSession::TakeOutbox(absl::Time now) {
  last_report_ = now;
  return std::exchange(outbox_, Outbox());
}

void WorkerSession::Send(Outbox outbox) {
  if (outbox.entry_count == 0) return;
  send_(Message{outbox.report->SerializeAsString(), std::move(outbox.tensors)});
}

}  // namespace muster
