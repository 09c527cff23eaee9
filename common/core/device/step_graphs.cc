#include "common/core/device/step_graphs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"

namespace muster {
namespace {

// A graph with fewer launches saves nothing.
constexpr int kLaunchesMin = 2;

// While this object exists, the stream calls the driver and not the recorder.
class Bypass {
 public:
  Bypass(DeviceStream* stream, WorkRecorder* recorder)
      : stream_(*stream), recorder_(*recorder) {
    stream_.SetRecorder(nullptr);
  }
  ~Bypass() { stream_.SetRecorder(&recorder_); }
  Bypass(const Bypass&) = delete;
  Bypass& operator=(const Bypass&) = delete;

 private:
  DeviceStream& stream_;
  WorkRecorder& recorder_;
};

std::optional<WorkList::Memory> MemoryOf(Device& device, const void* address) {
  if (device.memory().Contains(address)) return WorkList::Memory::kDevice;
  if (device.pinned_memory().Contains(address)) {
    return WorkList::Memory::kPinned;
  }
  return std::nullopt;
}

}  // namespace

void StepGraphs::BeginStep() {
  segment_ = 0;
  current_.Clear();
  expected_ = FindExpected();
  stream_.SetRecorder(this);
}

absl::Status StepGraphs::EndStep() {
  const absl::Status status = Flush();
  stream_.SetRecorder(nullptr);
  return status;
}

StepGraphs::Segment& StepGraphs::segment() {
  // Earlier segments may be absent: they had too little work to be noted.
  if (segment_ >= segments_.size()) segments_.resize(segment_ + 1);
  return segments_[segment_];
}

bool StepGraphs::IsExpected(const Variant& variant) const {
  return variant.step_count >= kStepsBeforeCapture && !variant.is_refused;
}

bool StepGraphs::BeginsLike(const Variant& variant) const {
  if (variant.work.size() < current_.size()) return false;
  for (size_t i = 0; i < current_.size(); ++i) {
    if (!current_.IsLike(i, variant.work)) return false;
  }
  return true;
}

int StepGraphs::FindExpected() const {
  if (segment_ >= segments_.size()) return kNone;
  const Segment& segment = segments_[segment_];
  for (size_t i = 0; i < segment.size(); ++i) {
    if (IsExpected(*segment[i]) && BeginsLike(*segment[i])) {
      return static_cast<int>(i);
    }
  }
  return kNone;
}

absl::Status StepGraphs::AddLaunch(const KernelFunction& kernel,
                                   const LaunchShape& shape,
                                   absl::Span<const KernelArgument> arguments) {
  current_.AddLaunch(kernel, shape, arguments);
  return HandleLastItem();
}

absl::Status StepGraphs::AddCopy(const void* from, void* to,
                                 size_t size_bytes) {
  const auto from_memory = MemoryOf(device_, from);
  const auto to_memory = MemoryOf(device_, to);
  if (from_memory.has_value() && to_memory.has_value()) {
    current_.AddCopy(from, *from_memory, to, *to_memory, size_bytes);
    return HandleLastItem();
  }
  // Pageable memory must have been read or written when the call returns.
  RETURN_IF_ERROR(Flush());
  const Bypass bypass(&stream_, this);
  return stream_.Copy(from, to, size_bytes);
}

absl::Status StepGraphs::AddFill(void* to, uint8_t byte, size_t size_bytes) {
  current_.AddFill(to, byte, size_bytes);
  return HandleLastItem();
}

absl::Status StepGraphs::AddLibraryCall(LibraryCall call) {
  current_.AddLibraryCall(std::move(call));
  return HandleLastItem();
}

absl::Status StepGraphs::HandleLastItem() {
  const size_t last = current_.size() - 1;
  if (expected_ == kNone) return Enqueue(last);
  if (current_.IsLike(last, segment()[expected_]->work)) {
    return absl::OkStatus();
  }
  expected_ = FindExpected();
  return expected_ == kNone ? Enqueue(0) : absl::OkStatus();
}

absl::Status StepGraphs::Enqueue(size_t first) {
  const Bypass bypass(&stream_, this);
  for (size_t i = first; i < current_.size(); ++i) {
    RETURN_IF_ERROR(current_.Enqueue(i, &stream_));
  }
  return absl::OkStatus();
}

absl::Status StepGraphs::Flush() {
  if (current_.size() == 0) return absl::OkStatus();
  absl::Status status;
  if (expected_ != kNone) {
    const Segment& variants = segment();
    const auto is_done = [&](const std::unique_ptr<Variant>& variant) {
      return IsExpected(*variant) && variant->work.size() == current_.size() &&
             BeginsLike(*variant);
    };
    const auto found = std::find_if(variants.begin(), variants.end(), is_done);
    if (found != variants.end()) {
      status = LaunchGraph(found->get());
    } else {
      status = Enqueue(0);
      Note();
    }
  } else {
    Note();
  }
  current_.Clear();
  ++segment_;
  expected_ = FindExpected();
  return status;
}

void StepGraphs::Note() {
  if (current_.launch_count() < kLaunchesMin) return;
  Segment& variants = segment();
  for (const std::unique_ptr<Variant>& variant : variants) {
    if (variant->work.size() == current_.size() && BeginsLike(*variant)) {
      ++variant->step_count;
      return;
    }
  }
  if (variants.size() == kVariantsMax) {
    // Replaces a variant that is not expected: it was seen in too few steps, or
    // its graph failed.
    const auto unused = std::find_if(
        variants.begin(), variants.end(),
        [&](const auto& variant) { return !IsExpected(*variant); });
    if (unused == variants.end()) {
      device_.graph_counters().unsteady_segments.fetch_add(1);
      return;
    }
    variants.erase(unused);
  }
  variants.push_back(std::make_unique<Variant>());
  variants.back()->work = current_;
  variants.back()->step_count = 1;
}

absl::Status StepGraphs::LaunchGraph(Variant* variant) {
  {
    const Bypass bypass(&stream_, this);
    const absl::Status status = UpdateAndLaunch(variant);
    if (status.ok()) return status;
    Refuse(status, variant);
  }
  return Enqueue(0);
}

absl::Status StepGraphs::UpdateAndLaunch(Variant* variant) {
  GraphCounters& counters = device_.graph_counters();
  if (variant->graph == nullptr) {
    ASSIGN_OR_RETURN(variant->graph,
                     CapturedGraph::Capture(current_, &stream_));
    counters.captures.fetch_add(1);
  } else {
    for (size_t i = 0; i < current_.size(); ++i) {
      if (current_.IsSame(i, variant->work)) continue;
      RETURN_IF_ERROR(variant->graph->Update(i, current_));
      counters.updates.fetch_add(1);
    }
  }
  std::swap(variant->work, current_);
  has_launched_ = true;
  const absl::Status status = variant->graph->Launch();
  if (status.ok()) {
    counters.launches.fetch_add(1);
  } else {
    std::swap(variant->work, current_);
  }
  return status;
}

void StepGraphs::Refuse(const absl::Status& why, Variant* variant) {
  variant->is_refused = true;
  device_.graph_counters().refusals.fetch_add(1);
  if (std::exchange(has_refused_, true)) return;
  LOG(INFO) << why.message() << "; steps continue without this graph";
}

}  // namespace muster
