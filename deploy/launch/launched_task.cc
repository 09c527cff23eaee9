#include "deploy/launch/launched_task.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kLastLineCount = 10;
constexpr size_t kReadBytesMax = 1 << 16;
// Limits the reads from one task, so that a task that writes continuously does
// not delay the others.
constexpr int kReadsPerPumpMax = 16;

}  // namespace

LaunchedTask::LaunchedTask(TaskPlan plan, Options options, Console* console)
    : plan_(std::move(plan)),
      options_(std::move(options)),
      label_(plan_.task.ToString()),
      console_(console),
      log_(options_.log_path, options_.log_bytes_max) {}

absl::Status LaunchedTask::Start(absl::Time now) {
  MUSTER_CHECK(child_ == nullptr);
  RETURN_IF_ERROR(log_.Open());
  ChildProcess::Options child;
  child.arguments = plan_.arguments;
  for (const auto& [name, value] : plan_.environment) {
    child.environment[name] = value;
  }
  if (options_.owns_terminal) {
    child.standard_output = ChildProcess::Output::kTerminal;
  }
  ASSIGN_OR_RETURN(child_, ChildProcess::Start(child));
  started_ = now;
  output_.fd = child_->stdout_fd();
  error_.fd = child_->stderr_fd();
  for (int fd : {output_.fd, error_.fd}) {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  return absl::OkStatus();
}

void LaunchedTask::AppendPollFds(std::vector<pollfd>* fds) const {
  if (!running()) return;
  for (int fd : {child_->end_fd(), output_.fd, error_.fd}) {
    if (fd >= 0) fds->push_back({fd, POLLIN, 0});
  }
}

std::optional<ProcessEnd> LaunchedTask::Pump() {
  if (!running()) return std::nullopt;
  // Poll() must come before Drain(). If the process has ended by then, Drain()
  // can read all of its output.
  const std::optional<ProcessEnd> end = child_->Poll();
  for (Source* source : {&output_, &error_}) {
    Drain(source);
    if (end.has_value()) {
      KeepText(source, source->shown.Finish());
      source->cutter.Finish(
          [&](absl::string_view line) { OnLine(*source, line); });
    }
  }
  if (end.has_value()) child_.reset();
  return end;
}

void LaunchedTask::SendSignal(int signal) {
  if (running()) child_->SendSignal(signal);
}

void LaunchedTask::Drain(Source* source) {
  char buffer[kReadBytesMax];
  for (int reads = 0; source->fd >= 0 && reads < kReadsPerPumpMax;) {
    const ssize_t count = read(source->fd, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {  // The end of the stream; a terminal ends with EIO.
      source->fd = -1;
      return;
    }
    ++reads;
    HandOn(source, absl::string_view(buffer, count));
  }
}

void LaunchedTask::HandOn(Source* source, absl::string_view bytes) {
  if (!IsRaw(*source)) return KeepText(source, bytes);
  console_->WriteRaw(bytes);
  KeepText(source, source->shown.Add(bytes));
}

void LaunchedTask::KeepText(Source* source, absl::string_view text) {
  if (text.empty()) return;
  log_.Write(text);
  source->cutter.Add(text,
                     [&](absl::string_view line) { OnLine(*source, line); });
}

void LaunchedTask::OnLine(const Source& source, absl::string_view line) {
  last_lines_.emplace_back(line);
  if (last_lines_.size() > kLastLineCount) last_lines_.pop_front();
  if (IsRaw(source) || is_muted_) return;
  console_->WriteLine(source.stream, label_, options_.color_index, line);
}

}  // namespace muster
