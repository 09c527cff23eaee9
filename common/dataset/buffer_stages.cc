#include "common/dataset/buffer_stages.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/status_macros.h"
#include "common/dataset/autotune.h"
#include "common/dataset/dataset.h"
#include "common/dataset/row_tables.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

// State shared by the passes of one input pipeline. Thread-safe.
class CacheContent {
 public:
  // Null before the first complete pass, and if the input was empty.
  std::shared_ptr<const RowTable> table() const {
    absl::MutexLock lock(&mutex_);
    return table_;
  }
  // The first pass to end defines it.
  void Fill(std::vector<Element> elements) {
    if (elements.empty()) return;
    absl::MutexLock lock(&mutex_);
    if (table_ != nullptr) return;
    table_ = std::make_shared<ElementTable>(std::move(elements));
  }

 private:
  mutable absl::Mutex mutex_;
  std::shared_ptr<const RowTable> table_ ABSL_GUARDED_BY(mutex_);
};

class FillingElements final : public ElementStream {
 public:
  FillingElements(std::unique_ptr<ElementStream> input,
                  std::shared_ptr<CacheContent> content)
      : input_(std::move(input)), content_(std::move(content)) {}

  absl::StatusOr<bool> Next(Element* element) override {
    if (ended_) return false;
    ASSIGN_OR_RETURN(const bool more, input_->Next(element));
    if (more) {
      elements_.push_back(*element);
    } else {
      ended_ = true;
      content_->Fill(std::move(elements_));
    }
    return more;
  }

 private:
  const std::unique_ptr<ElementStream> input_;
  const std::shared_ptr<CacheContent> content_;
  std::vector<Element> elements_;
  bool ended_ = false;
};

class CacheNode final : public DatasetNode {
 public:
  explicit CacheNode(NodePointer input)
      : DatasetNode(input->element_types(), input->cardinality(),
                    input->component_names()),
        input_(std::move(input)) {}

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const override {
    ASSIGN_OR_RETURN(RowSelection selection, MakeRows(context));
    if (selection.table != nullptr) return ElementsOf(std::move(selection));
    ASSIGN_OR_RETURN(std::unique_ptr<ElementStream> elements,
                     input_->MakeElements(context));
    return std::make_unique<FillingElements>(std::move(elements),
                                             ContentFor(context.input));
  }

  absl::StatusOr<RowSelection> MakeRows(
      const PassContext& context) const override {
    std::shared_ptr<const RowTable> table = ContentFor(context.input)->table();
    if (table != nullptr) return WholeTable(std::move(table));
    // Data in memory needs no second copy, unless its order changes with each
    // pass.
    ASSIGN_OR_RETURN(RowSelection selection, input_->MakeRows(context));
    const bool is_there =
        selection.is_whole_table && selection.table->is_stored();
    if (!is_there) return RowSelection();
    return selection;
  }

  StageKind kind() const override { return StageKind::kElements; }
  std::vector<NodePointer> inputs() const override { return {input_}; }
  absl::StatusOr<NodePointer> WithInputs(
      std::vector<NodePointer> inputs) const override {
    return MakeCache(std::move(inputs[0]));
  }

  absl::Status Encode(proto::Dataset* encoded) const override {
    RETURN_IF_ERROR(input_->Encode(encoded));
    encoded->add_stages()->mutable_cache();
    return absl::OkStatus();
  }

 private:
  // Pipelines of one process may read different elements of one definition.
  using Key = std::tuple<int, int, int>;

  std::shared_ptr<CacheContent> ContentFor(const InputContext& input) const {
    absl::MutexLock lock(&mutex_);
    std::shared_ptr<CacheContent>& content =
        contents_[Key(input.num_input_pipelines, input.input_pipeline_id,
                      input.num_replicas_in_sync)];
    if (content == nullptr) content = std::make_shared<CacheContent>();
    return content;
  }

  const NodePointer input_;
  mutable absl::Mutex mutex_;
  mutable std::map<Key, std::shared_ptr<CacheContent>> contents_
      ABSL_GUARDED_BY(mutex_);
};

// Elements are returned in the order in which one thread draws them. The
// consumer hands them back for reuse of their memory.
class PrefetchedElements final : public ElementStream {
 public:
  PrefetchedElements(std::unique_ptr<ElementStream> input, int64_t buffer_size)
      : input_(std::move(input)),
        limit_max_(static_cast<size_t>(
            buffer_size == kAutotune ? kAutotunedBufferMax : buffer_size)),
        limit_(buffer_size == kAutotune ? 1 : limit_max_),
        producer_([this] { Produce(); }) {}

  ~PrefetchedElements() override {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    producer_.join();
  }

  absl::StatusOr<bool> Next(Element* element) override {
    absl::MutexLock lock(&mutex_);
    if (ready_.empty()) Grow();
    mutex_.Await(absl::Condition(
        +[](std::deque<Drawn>* ready) { return !ready->empty(); }, &ready_));
    Drawn& drawn = ready_.front();
    if (!drawn.more.ok() || !*drawn.more) return drawn.more;
    std::swap(*element, drawn.element);
    if (free_.size() <= limit_) free_.push_back(std::move(drawn.element));
    ready_.pop_front();
    return true;
  }

 private:
  // The result of the input: an element, its end or an error. The last two stay
  // at the front.
  struct Drawn {
    absl::StatusOr<bool> more = false;
    Element element;
  };

  bool StoppingOrRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || ready_.size() < limit_;
  }

  // The producer fills the buffer, but not always in time.
  void Grow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!was_full_) return;
    was_full_ = false;
    limit_ = std::min(2 * limit_, limit_max_);
  }

  void Produce() ABSL_LOCKS_EXCLUDED(mutex_) {
    while (true) {
      Drawn drawn;
      {
        absl::MutexLock lock(&mutex_);
        mutex_.Await(
            absl::Condition(this, &PrefetchedElements::StoppingOrRoom));
        if (stopping_) return;
        if (!free_.empty()) {
          drawn.element = std::move(free_.back());
          free_.pop_back();
        }
      }
      drawn.more = input_->Next(&drawn.element);
      const bool is_last = !drawn.more.ok() || !*drawn.more;
      absl::MutexLock lock(&mutex_);
      ready_.push_back(std::move(drawn));
      was_full_ |= ready_.size() >= limit_;
      if (is_last) return;
    }
  }

  const std::unique_ptr<ElementStream> input_;  // The producer's.
  const size_t limit_max_;
  absl::Mutex mutex_;
  size_t limit_ ABSL_GUARDED_BY(mutex_);
  bool was_full_ ABSL_GUARDED_BY(mutex_) = false;  // Since it last grew.
  std::deque<Drawn> ready_ ABSL_GUARDED_BY(mutex_);
  std::vector<Element> free_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread producer_;  // Last: it uses all members above.
};

class PrefetchNode final : public DatasetNode {
 public:
  PrefetchNode(NodePointer input, int64_t buffer_size)
      : DatasetNode(input->element_types(), input->cardinality(),
                    input->component_names()),
        input_(std::move(input)),
        buffer_size_(buffer_size) {}

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<ElementStream> elements,
                     input_->MakeElements(context));
    return std::make_unique<PrefetchedElements>(std::move(elements),
                                                buffer_size_);
  }

  StageKind kind() const override { return StageKind::kElements; }
  std::vector<NodePointer> inputs() const override { return {input_}; }
  absl::StatusOr<NodePointer> WithInputs(
      std::vector<NodePointer> inputs) const override {
    return MakePrefetch(std::move(inputs[0]), buffer_size_);
  }

  absl::Status Encode(proto::Dataset* encoded) const override {
    RETURN_IF_ERROR(input_->Encode(encoded));
    encoded->add_stages()->mutable_prefetch()->set_buffer_size(buffer_size_);
    return absl::OkStatus();
  }

 private:
  const NodePointer input_;
  const int64_t buffer_size_;
};

}  // namespace

absl::StatusOr<NodePointer> MakeCache(NodePointer input) {
  if (input->cardinality() == Dataset::kInfinite) {
    return absl::InvalidArgumentError(
        "Cache: the dataset is infinite; put Cache() before Repeat()");
  }
  return std::make_shared<CacheNode>(std::move(input));
}

absl::StatusOr<NodePointer> MakePrefetch(NodePointer input,
                                         int64_t buffer_size) {
  if (buffer_size != kAutotune &&
      (buffer_size < 1 || buffer_size > kPrefetchBufferSizeMax)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Prefetch: buffer_size is ", buffer_size, "; expected 1 to ",
        kPrefetchBufferSizeMax, " or kAutotune"));
  }
  return std::make_shared<PrefetchNode>(std::move(input), buffer_size);
}

}  // namespace muster
