#include "coordinator/training_journal.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/host_name.h"
#include "common/core/system/log.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/net/process/exit_code.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/journal/timeline_record.h"
#include "proto/training_state.pb.h"

namespace muster {
namespace {

// Larger tensors of callbacks would delay the steps that wait for a record.
constexpr size_t kTensorBytesMax = size_t{64} << 20;
// The servers remember the pushes of at most about this many closures for a
// successor.
constexpr uint64_t kUnrecordedClosuresMax = 256 * 1024;
constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

std::vector<Tensor> TensorsOf(const TrainingState& state) {
  std::vector<Tensor> tensors;
  for (const std::vector<Tensor>& callback : state.callback_tensors()) {
    tensors.insert(tensors.end(), callback.begin(), callback.end());
  }
  return tensors;
}

bool AreSameTensors(const std::vector<Tensor>& a,
                    const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Tensor& x, const Tensor& y) {
                      return x.raw_data() == y.raw_data();
                    });
}

absl::StatusOr<TrainingState> StateOf(const proto::JournalTraining& training) {
  std::vector<std::vector<Tensor>> tensors;
  int next = 0;
  for (const int64_t count : training.state().callback_tensor_counts()) {
    std::vector<Tensor>& callback = tensors.emplace_back();
    for (int64_t i = 0; i < count; ++i, ++next) {
      if (next == training.callback_tensors_size()) {
        return absl::DataLossError(
            "the journal lacks tensors of the callbacks");
      }
      ASSIGN_OR_RETURN(callback.emplace_back(),
                       DecodeTensor(training.callback_tensors(next)));
    }
  }
  return TrainingState(training.state(), std::move(tensors));
}

// A full disk stays full. After other errors a new process may find another
// disk, or another machine.
absl::Status WithRestart(const absl::Status& status) {
  return absl::IsResourceExhausted(status)
             ? status
             : WithExitCode(status, ExitCode::kRestartMe);
}

TrainingJournal::Place PlaceOf(const proto::JournalTraining& training) {
  return {.graph_fingerprint = training.graph_fingerprint(),
          .steps_per_closure = training.steps_per_closure(),
          .steps_into_pass = training.steps_into_pass(),
          .open_round_gradients = training.open_round_gradients()};
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingJournal>> TrainingJournal::Open(
    const Options& options, Identity identity) {
  const auto make = [&](std::unique_ptr<CoordinatorJournal> journal) {
    return std::unique_ptr<TrainingJournal>(
        new TrainingJournal(options, std::move(identity), std::move(journal)));
  };
  if (options.folder.empty()) return make(nullptr);
  absl::StatusOr<std::unique_ptr<CoordinatorJournal>> opened =
      CoordinatorJournal::Open(
          {.folder = options.folder,
           .opened_by =
               absl::StrCat("process ", getpid(), " on host ", HostName()),
           .disk = options.disk});
  if (absl::IsUnimplemented(opened.status())) {
    LOG(INFO) << "the loss of the coordinator ends the job, because no journal "
                 "can be kept in "
              << options.folder << ": " << opened.status().message();
    return make(nullptr);
  }
  RETURN_IF_ERROR(opened.status());
  CoordinatorJournal* const journal = opened->get();
  ASSIGN_OR_RETURN(const std::optional<proto::JournalRecord> predecessor,
                   journal->ReadPredecessor());
  identity.coordinator_epoch = journal->epoch();
  identity.closure_ids.record = [journal](uint64_t limit) {
    proto::JournalRecord change;
    change.set_closure_id_limit(limit);
    return WithRestart(journal->Write(change));
  };
  if (predecessor.has_value()) {
    identity.job_id = predecessor->job().job_id();
    identity.seed = predecessor->job().seed();
    identity.generation = predecessor->job().generation();
    identity.closure_ids.first_id = std::max<uint64_t>(
        identity.closure_ids.first_id, predecessor->closure_id_limit());
    identity.low_water_mark_max = predecessor->training().next_closure_id();
    const proto::JournalJob& job = predecessor->job();
    identity.server_state_ids.assign(job.server_state_ids().begin(),
                                     job.server_state_ids().end());
    if (job.serving_tasks_size() == job.has_complete_copy_size()) {
      identity.copies = {
          {job.serving_tasks().begin(), job.serving_tasks().end()},
          {job.has_complete_copy().begin(), job.has_complete_copy().end()}};
    }
  }
  return make(*std::move(opened));
}

std::unique_ptr<TrainingJournal> TrainingJournal::None() {
  return std::unique_ptr<TrainingJournal>(
      new TrainingJournal(Options(), Identity(), nullptr));
}

TrainingJournal::TrainingJournal(const Options& options, Identity identity,
                                 std::unique_ptr<CoordinatorJournal> journal)
    : options_(options),
      identity_(std::move(identity)),
      journal_(std::move(journal)) {}

// ---- The start.

absl::StatusOr<Adoption> TrainingJournal::Decide(
    const std::vector<ServerDescription>& servers) {
  if (!is_kept()) return Adoption();
  ASSIGN_OR_RETURN(std::optional<proto::JournalRecord> predecessor,
                   journal_->ReadPredecessor());
  if (!predecessor.has_value()) return Adoption();
  Adoption adoption = DecideAdoption(*predecessor, servers);
  if (adoption.kind != AdoptionKind::kContinue) return adoption;
  RETURN_IF_ERROR(StateOf(predecessor->training()).status());
  absl::MutexLock lock(&mutex_);
  continued_ = *std::move(predecessor);
  return adoption;
}

absl::Status TrainingJournal::Begin(
    const std::vector<ServerDescription>& servers, uint64_t newest_step_id,
    ClosureDispatcher* dispatcher) {
  if (!is_kept()) return absl::OkStatus();
  proto::JournalRecord state;
  {
    absl::MutexLock lock(&mutex_);
    dispatcher_ = dispatcher;
    if (continued_.has_value()) {
      state = *continued_;
      repeated_id_max_ = newest_step_id;
      fit_number_ = continued_->training().fit_number();
      dispatcher->timeline().Continue(
          TimelineOf(continued_->timeline()),
          absl::StrCat("continuing the training of the last coordinator (",
                       continued_->opened_by(), ") in epoch ",
                       continued_->training().state().epoch() + 1,
                       " after step ",
                       continued_->training().state().step_in_epoch()));
    }
    dispatcher->LimitLowWaterMark(continued_.has_value()
                                      ? continued_->training().next_closure_id()
                                      : kNoLimit);
    job_.set_job_id(identity_.job_id);
    job_.set_seed(identity_.seed);
    job_.set_generation(servers.empty() ? 0 : servers[0].generation);
    for (const ServerDescription& server : servers) {
      job_.add_server_state_ids(server.state_id);
    }
    has_begun_ = true;
    *state.mutable_job() = job_;
    state.set_closure_id_limit(
        std::max(state.closure_id_limit(), identity_.closure_ids.first_id));
    state.clear_opened_by();
  }
  return WithRestart(journal_->Begin(state));
}

bool TrainingJournal::is_continuing() const {
  absl::MutexLock lock(&mutex_);
  return continued_.has_value();
}

bool TrainingJournal::is_repeating() {
  if (!is_kept()) return false;
  absl::MutexLock lock(&mutex_);
  if (continued_.has_value()) return true;
  if (repeated_id_max_ == 0) return false;
  const bool has_finished = dispatcher_->HasFinished(repeated_id_max_);
  if (has_finished) repeated_id_max_ = 0;
  return !has_finished;
}

std::optional<TrainingState> TrainingJournal::TakeProgress() {
  absl::MutexLock lock(&mutex_);
  if (!continued_.has_value() || has_given_progress_) return std::nullopt;
  has_given_progress_ = true;
  // Decide() has checked it.
  return *StateOf(continued_->training());
}

std::optional<TrainingJournal::Place> TrainingJournal::ContinuedPlace() const {
  absl::MutexLock lock(&mutex_);
  if (!continued_.has_value()) return std::nullopt;
  return PlaceOf(continued_->training());
}

void TrainingJournal::SetProgressSource(std::function<std::any()> source) {
  absl::MutexLock lock(&mutex_);
  progress_source_ = std::move(source);
}

// ---- Records.

absl::Status TrainingJournal::Write(const proto::JournalRecord& change) {
  return WithRestart(journal_->Write(change));
}

absl::Status TrainingJournal::NoteServers(
    const std::vector<uint64_t>& state_ids, uint64_t generation) {
  if (!is_kept()) return absl::OkStatus();
  proto::JournalRecord change;
  absl::MutexLock changing(&job_mutex_);
  {
    absl::MutexLock lock(&mutex_);
    job_.set_generation(generation);
    job_.mutable_server_state_ids()->Assign(state_ids.begin(), state_ids.end());
    *change.mutable_job() = job_;
    // The recorded place is not the one to which the variables were set.
    change.set_obstacle("training was rolled back");
    has_obstacle_ = true;
  }
  return Write(change);
}

absl::Status TrainingJournal::NoteCopies(const ServerCopies::Record& copies) {
  if (!is_kept()) return absl::OkStatus();
  proto::JournalRecord change;
  absl::MutexLock changing(&job_mutex_);
  {
    absl::MutexLock lock(&mutex_);
    job_.mutable_serving_tasks()->Assign(copies.serving_tasks.begin(),
                                         copies.serving_tasks.end());
    job_.mutable_has_complete_copy()->Assign(copies.has_complete_copy.begin(),
                                             copies.has_complete_copy.end());
    if (!has_begun_) return absl::OkStatus();
    *change.mutable_job() = job_;
  }
  return Write(change);
}

void TrainingJournal::NoteShardCounts(std::vector<int> counts) {
  absl::MutexLock lock(&mutex_);
  shard_counts_ = std::move(counts);
}

proto::JournalRecord TrainingJournal::RecordOf(const Place& place,
                                               uint64_t next_closure_id,
                                               bool is_progress) {
  std::function<std::any()> source;
  {
    absl::MutexLock lock(&mutex_);
    source = progress_source_;
  }
  proto::JournalRecord record;
  const std::any progress = source ? source() : std::any();
  const auto* const state = std::any_cast<TrainingState>(&progress);
  if (state == nullptr) {
    record.set_obstacle("a training loop outside of Fit() was running");
    return record;
  }
  proto::JournalTraining* const training = record.mutable_training();
  *training->mutable_state() = state->message();
  if (is_progress) {
    training->mutable_state()->clear_epoch_numbers();
    training->mutable_state()->clear_columns();
    training->set_keeps_history(true);
  }
  training->set_next_closure_id(next_closure_id);
  training->set_steps_per_closure(place.steps_per_closure);
  training->set_steps_into_pass(place.steps_into_pass);
  training->set_open_round_gradients(place.open_round_gradients);
  training->set_graph_fingerprint(place.graph_fingerprint);
  absl::MutexLock lock(&mutex_);
  AddTimeline(&record);
  training->set_fit_number(fit_number_);
  training->mutable_server_shard_counts()->Assign(shard_counts_.begin(),
                                                  shard_counts_.end());
  if (!AddTensors(*state, training)) {
    record.clear_training();
    record.set_obstacle(absl::StrCat("callbacks hold more than ",
                                     kTensorBytesMax >> 20, " MiB of tensors"));
  }
  return record;
}

void TrainingJournal::AddTimeline(proto::JournalRecord* record) {
  proto::JournalTimeline* const timeline = record->mutable_timeline();
  *timeline = RecordOfTimeline(dispatcher_->timeline().status(), absl::Now());
  if (timeline->event_count() != durable_event_count_) return;
  timeline->clear_events();
  timeline->set_keeps_events(true);
}

bool TrainingJournal::AddTensors(const TrainingState& state,
                                 proto::JournalTraining* training) {
  std::vector<Tensor> tensors = TensorsOf(state);
  if (AreSameTensors(tensors, recorded_tensors_)) {
    training->set_keeps_callback_tensors(true);
    return true;
  }
  size_t size_bytes = 0;
  for (const Tensor& tensor : tensors) size_bytes += tensor.size_bytes();
  if (size_bytes > kTensorBytesMax) return false;
  for (const Tensor& tensor : tensors) {
    *training->add_callback_tensors() = EncodeTensor(tensor);
  }
  recorded_tensors_ = std::move(tensors);
  return true;
}

absl::Status TrainingJournal::EndContinuing(const Place& place) {
  absl::MutexLock lock(&mutex_);
  if (!continued_.has_value()) return absl::OkStatus();
  const proto::JournalTraining& training = continued_->training();
  if (training.graph_fingerprint() != place.graph_fingerprint ||
      training.steps_per_closure() != place.steps_per_closure) {
    return WithExitCode(
        absl::FailedPreconditionError(absl::StrCat(
            "the program trains other steps than the last coordinator, or "
            "another number of steps per execution (",
            place.steps_per_closure, ", and it was ",
            training.steps_per_closure(),
            "): training cannot be continued with the tasks that run")),
        ExitCode::kRestartMe);
  }
  dispatcher_->ContinueAt(training.next_closure_id());
  continued_.reset();
  return absl::OkStatus();
}

absl::Status TrainingJournal::BeginRun(const Place& place) {
  if (!is_kept()) return absl::OkStatus();
  RETURN_IF_ERROR(EndContinuing(place));
  ClosureDispatcher* dispatcher = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    place_ = place;
    dispatcher = dispatcher_;
  }
  const uint64_t next = dispatcher->next_closure_id();
  const proto::JournalRecord record =
      RecordOf(place, next, /*is_progress=*/false);
  RETURN_IF_ERROR(Write(record));
  // Without a place nothing is run again.
  dispatcher->LimitLowWaterMark(record.has_training() ? next : kNoLimit);
  absl::MutexLock lock(&mutex_);
  has_obstacle_ = !record.has_training();
  last_record_ = options_.clock->Now();
  durable_id_ = next;
  durable_event_count_ = record.timeline().event_count();
  return absl::OkStatus();
}

absl::Status TrainingJournal::NoteProgress(const Place& place,
                                           uint64_t next_closure_id) {
  if (!is_kept()) return absl::OkStatus();
  const absl::Time now = options_.clock->Now();
  bool is_due = false;
  bool is_awaited = false;
  {
    absl::MutexLock lock(&mutex_);
    is_due = now >= last_record_ + options_.progress_interval;
    is_awaited = next_closure_id - durable_id_ >= kUnrecordedClosuresMax;
    if (is_due) last_record_ = now;
  }
  if (!is_due && !is_awaited) return absl::OkStatus();
  RETURN_IF_ERROR(WithRestart(journal_->status()));
  proto::JournalRecord record =
      RecordOf(place, next_closure_id, /*is_progress=*/true);
  if (!record.has_training()) return Write(record);
  const int64_t event_count = record.timeline().event_count();
  const auto on_durable = [this, next_closure_id, event_count] {
    absl::MutexLock lock(&mutex_);
    durable_event_count_ = event_count;
    durable_id_ = std::max(durable_id_, next_closure_id);
    dispatcher_->LimitLowWaterMark(durable_id_);
  };
  {
    absl::MutexLock lock(&mutex_);
    has_obstacle_ = false;
  }
  if (!is_awaited) {
    journal_->WriteLater(std::move(record), on_durable);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Write(record));
  on_durable();
  return absl::OkStatus();
}

absl::Status TrainingJournal::NoteTrained() {
  if (!is_kept()) return absl::OkStatus();
  std::optional<Place> place;
  {
    absl::MutexLock lock(&mutex_);
    if (continued_.has_value()) {
      place_ = PlaceOf(continued_->training());
    }
    place = place_;
  }
  if (!place.has_value()) return absl::OkStatus();
  RETURN_IF_ERROR(BeginRun(*place));
  absl::MutexLock lock(&mutex_);
  ++fit_number_;
  return absl::OkStatus();
}

absl::Status TrainingJournal::NoteObstacle(absl::string_view what) {
  if (!is_kept()) return absl::OkStatus();
  proto::JournalRecord change;
  ClosureDispatcher* dispatcher = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (continued_.has_value()) {
      return WithExitCode(
          absl::FailedPreconditionError(absl::StrCat(
              "training cannot be continued with the tasks that run: the "
              "program repeats ",
              what, " before it reaches Fit()")),
          ExitCode::kRestartMe);
    }
    // Before the first place there is nothing to continue from.
    if (has_obstacle_ || !place_.has_value()) return absl::OkStatus();
    has_obstacle_ = true;
    dispatcher = dispatcher_;
  }
  change.set_obstacle(absl::StrCat("it was interrupted during ", what));
  RETURN_IF_ERROR(Write(change));
  dispatcher->LimitLowWaterMark(kNoLimit);
  return absl::OkStatus();
}

absl::Status TrainingJournal::CheckContinuable() const {
  absl::string_view lack;
  absl::MutexLock lock(&mutex_);
  if (!is_kept()) {
    lack =
        "this coordinator keeps no journal (--run_dir, and "
        "--coordinator_return_timeout)";
  } else if (!place_.has_value()) {
    lack = "training has not begun";
  } else if (has_obstacle_) {
    lack = "what it does now cannot be repeated";
  } else {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("another coordinator could not continue the job: ", lack));
}

void TrainingJournal::NoteEnd(int exit_code, absl::string_view reason) {
  if (!is_kept()) return;
  proto::JournalRecord change;
  change.mutable_end()->set_exit_code(exit_code);
  change.mutable_end()->set_reason(std::string(reason));
  const absl::Status written = journal_->Write(change);
  if (!written.ok()) LOG(WARNING) << written.message();
}

}  // namespace muster
