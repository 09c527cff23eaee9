#include "common/io/records/object_sink.h"

#include <cstddef>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace muster {
namespace {

class ObjectSink final : public ByteSink {
 public:
  ObjectSink(absl::string_view url, ObjectSinkOptions options)
      : url_(url),
        upload_interval_(options.upload_interval),
        disk_(options.disk),
        clock_(options.clock),
        content_(std::move(options.content)),
        flushed_bytes_(content_.size()),
        uploaded_bytes_(content_.size()),
        thread_([this] { UploadAll(); }) {}

  ~ObjectSink() override { Close().IgnoreError(); }

  absl::Status Append(absl::string_view bytes) override {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return status_;
    if (is_closing_) {
      return absl::FailedPreconditionError(absl::StrCat(url_, " is closed"));
    }
    content_.append(bytes.data(), bytes.size());
    return absl::OkStatus();
  }

  absl::Status Flush() override {
    absl::MutexLock lock(&mutex_);
    flushed_bytes_ = content_.size();
    return status_;
  }

  absl::Status Close() override {
    {
      absl::MutexLock lock(&mutex_);
      flushed_bytes_ = content_.size();
      is_closing_ = true;
    }
    if (thread_.joinable()) thread_.join();
    absl::MutexLock lock(&mutex_);
    return status_;
  }

 private:
  void UploadAll() {
    while (const std::optional<std::string> content = AwaitContent()) {
      const absl::Status status = ReplaceFile(disk_, url_, *content);
      absl::MutexLock lock(&mutex_);
      status_ = status;
      uploaded_bytes_ = content->size();
    }
  }

  // Blocks until the next upload is due. Returns its content, or nothing if
  // everything has been uploaded or an upload has failed.
  std::optional<std::string> AwaitContent() {
    absl::MutexLock lock(&mutex_);
    const auto is_wanted = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return is_closing_ || flushed_bytes_ > uploaded_bytes_;
    };
    mutex_.Await(absl::Condition(&is_wanted));
    clock_->AwaitWithDeadline(&mutex_, absl::Condition(&is_closing_),
                              next_upload_);
    if (!status_.ok() || flushed_bytes_ == uploaded_bytes_) return std::nullopt;
    next_upload_ = clock_->Now() + upload_interval_;
    return content_.substr(0, flushed_bytes_);
  }

  const std::string url_;
  const absl::Duration upload_interval_;
  Disk* const disk_;
  Clock* const clock_;

  absl::Mutex mutex_;
  std::string content_ ABSL_GUARDED_BY(mutex_);
  size_t flushed_bytes_ ABSL_GUARDED_BY(mutex_);
  size_t uploaded_bytes_ ABSL_GUARDED_BY(mutex_);
  absl::Time next_upload_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);  // The first error.

  std::thread thread_;
};

}  // namespace

std::unique_ptr<ByteSink> CreateObjectSink(absl::string_view url,
                                           ObjectSinkOptions options) {
  return std::make_unique<ObjectSink>(url, std::move(options));
}

}  // namespace muster
