#include "common/io/events/event_writer.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/host_name.h"
#include "common/io/records/object_sink.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/object_url.h"
#include "proto/event.pb.h"

namespace muster {
namespace {

constexpr absl::string_view kFileVersion = "brain.Event:2";

absl::StatusOr<std::unique_ptr<ByteSink>> CreateSink(absl::string_view path) {
  if (IsObjectUrl(path)) return CreateObjectSink(path);
  return CreateFileSink(path);
}

EventWriter::Options WithDefaults(EventWriter::Options options) {
  if (options.host.empty()) options.host = HostName();
  if (options.wall_time == nullptr) options.wall_time = absl::Now;
  if (options.create_file == nullptr) options.create_file = CreateSink;
  return options;
}

double WallSeconds(absl::Time time) {
  return static_cast<double>(absl::ToUnixMicros(time)) / 1e6;
}

// Chooses a name that no file in the folder has: a process that is restarted
// within a second may have the process id of the previous one.
std::string NewPath(const EventWriter::Options& options, absl::Time now) {
  static std::atomic<int64_t> file_count{0};
  for (;;) {
    const std::string name = absl::StrFormat(
        "events.out.tfevents.%010d.%s.%d.%d.v2", absl::ToUnixSeconds(now),
        options.host, ::getpid(), file_count.fetch_add(1));
    std::string path = JoinPath(options.folder, name);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return path;
  }
}

}  // namespace

EventWriter::EventWriter(Options options)
    : options_(WithDefaults(std::move(options))) {}

EventWriter::~EventWriter() { Close().IgnoreError(); }

absl::Status EventWriter::Write(
    int64_t step, absl::Span<const proto::Summary::Value> values) {
  const absl::Time now = options_.wall_time();
  if (file_ == nullptr) {
    if (now < retry_at_) return error_;
    RETURN_IF_ERROR(Note(Open(now), now));
  }
  proto::Event event;
  event.set_wall_time(WallSeconds(now));
  event.set_step(step);
  for (const proto::Summary::Value& value : values) {
    *event.mutable_summary()->add_value() = value;
  }
  RETURN_IF_ERROR(Note(Append(event), now));
  const bool is_full =
      IsObjectUrl(options_.folder) && event_bytes_ >= options_.object_bytes_max;
  return is_full ? Close() : absl::OkStatus();
}

absl::Status EventWriter::Close() {
  if (file_ == nullptr) return absl::OkStatus();
  const absl::Status status = file_->Close();
  if (!status.ok()) return Note(status, options_.wall_time());
  file_ = nullptr;
  path_.clear();
  return absl::OkStatus();
}

absl::Status EventWriter::Open(absl::Time now) {
  std::error_code error;
  if (!IsObjectUrl(options_.folder)) {
    std::filesystem::create_directories(options_.folder, error);
  }
  path_ = NewPath(options_, now);
  if (error) {
    return absl::ErrnoToStatus(error.value(), "cannot create its folder");
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ByteSink> sink, options_.create_file(path_));
  file_ = std::make_unique<RecordWriter>(std::move(sink));
  event_bytes_ = 0;
  proto::Event first;
  first.set_wall_time(WallSeconds(now));
  first.set_file_version(std::string(kFileVersion));
  return Append(first);
}

absl::Status EventWriter::Append(const proto::Event& event) {
  const std::string bytes = event.SerializeAsString();
  event_bytes_ += static_cast<int64_t>(bytes.size());
  RETURN_IF_ERROR(file_->Write(bytes));
  return file_->Flush();
}

absl::Status EventWriter::Note(const absl::Status& status, absl::Time now) {
  if (status.ok()) return status;
  file_ = nullptr;
  const bool names_file = absl::StrContains(status.message(), path_);
  error_ = absl::Status(
      status.code(), absl::StrCat("events are not written: ",
                                  names_file ? "" : absl::StrCat(path_, ": "),
                                  std::string(status.message())));
  // Removes an empty file, so that repeated attempts leave no files.
  std::error_code ignored;
  if (std::filesystem::file_size(path_, ignored) == 0) {
    std::filesystem::remove(path_, ignored);
  }
  path_.clear();
  retry_at_ = now + options_.retry_after;
  return error_;
}

}  // namespace muster
