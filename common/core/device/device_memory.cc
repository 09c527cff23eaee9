#include "common/core/device/device_memory.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device_context.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/place.h"

namespace muster {
namespace {

constexpr size_t kHoldersInErrorsMax = 5;
// Timeout of a wait for freed memory, when no other is left. A step takes
// milliseconds.
constexpr absl::Duration kFreedTimeout = absl::Seconds(30);
constexpr uint8_t kPoison = 0xff;  // NaN in every floating-point format.

size_t RoundUp(size_t value, size_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceMemory>> DeviceMemory::Create(
    DeviceContext* context, const Options& options) {
  auto memory = absl::WrapUnique(new DeviceMemory(context, options));
  RETURN_IF_ERROR(memory->Reserve());
  if (options.maps_all) {
    const absl::MutexLock lock(&memory->mutex_);
    RETURN_IF_ERROR(memory->MapUntil(memory->options_.limit_bytes));
  }
  return memory;
}

absl::Status DeviceMemory::Reserve() {
  const driver::DriverApi& api = context_.api();
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  RETURN_IF_ERROR(context_.Call("cuMemGetInfo", api.cuMemGetInfo_v2,
                                &free_bytes, &total_bytes));
  if (options_.limit_bytes == 0 || options_.limit_bytes > total_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        context_.name(), ": the memory limit is ", options_.limit_bytes,
        " bytes; expected at least 1 and at most the GPU's ", total_bytes));
  }
  const driver::AllocationProperties properties{
      .location = {.id = context_.ordinal()}};
  size_t granularity = 0;
  RETURN_IF_ERROR(context_.Call("cuMemGetAllocationGranularity",
                                api.cuMemGetAllocationGranularity, &granularity,
                                &properties, driver::kGranularityMinimum));
  options_.piece_bytes =
      RoundUp(std::max<size_t>(options_.piece_bytes, 1), granularity);
  options_.limit_bytes = options_.limit_bytes / granularity * granularity;
  if (options_.limit_bytes == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(context_.name(), ": the memory limit is less than ",
                     granularity, " bytes, the driver's smallest piece"));
  }
  if (api.is_simulated) {
    RETURN_IF_ERROR(
        context_.Call("cuStreamCreate", api.cuStreamCreateWithPriority,
                      &poison_stream_, driver::kStreamNonBlocking, 0));
  }
  return context_.Call("cuMemAddressReserve", api.cuMemAddressReserve, &base_,
                       options_.limit_bytes, size_t{0}, driver::Address{0},
                       uint64_t{0});
}

DeviceMemory::~DeviceMemory() {
  const absl::MutexLock lock(&mutex_);
  MUSTER_CHECK(blocks_.empty());
  // Errors are ignored: no buffer is left that they could affect.
  const driver::DriverApi& api = context_.api();
  AwaitFreedBlocks();
  if (mapped_bytes_ > 0) {
    (void)context_.TryCall(api.cuMemUnmap, base_, mapped_bytes_);
  }
  for (const auto& [handle, size_bytes] : pieces_) {
    (void)context_.TryCall(api.cuMemRelease, handle);
  }
  if (base_ != 0) {
    (void)context_.TryCall(api.cuMemAddressFree, base_, options_.limit_bytes);
  }
  if (poison_stream_ != nullptr) {
    (void)context_.TryCall(api.cuStreamDestroy_v2, poison_stream_);
  }
}

absl::StatusOr<std::shared_ptr<Buffer>> DeviceMemory::Allocate(
    size_t size_bytes, const MemoryTag& tag) {
  const std::string holder = absl::StrCat(tag.what, " \"", tag.name, "\"");
  const absl::MutexLock lock(&mutex_);
  if (size_bytes > options_.limit_bytes) {
    return Exhausted(size_bytes, holder, absl::OkStatus());
  }
  CollectFreedBlocks();
  ArenaPlanner::Block place = heap_.Allocate(size_bytes);
  absl::Status status = MapUntil(place.offset_bytes + place.size_bytes);
  if (!status.ok()) {
    heap_.Free(place);
    AwaitFreedBlocks();
    place = heap_.Allocate(size_bytes);
    status = MapUntil(place.offset_bytes + place.size_bytes);
  }
  if (!status.ok()) {
    heap_.Free(place);
    return Exhausted(size_bytes, holder, status);
  }
  auto* const data = reinterpret_cast<uint8_t*>(base_ + place.offset_bytes);
  current_bytes_ += place.size_bytes;
  peak_bytes_ = std::max(peak_bytes_, current_bytes_);
  blocks_[data] = {place, holder, size_bytes, {}};
  return Buffer::Wrap(data, size_bytes, [this, data] { Free(data); },
                      {.kind = PlaceKind::kDevice,
                       .device = static_cast<int16_t>(context_.ordinal())});
}

void DeviceMemory::NoteUse(const Buffer& buffer, DeviceStream* stream) {
  const absl::MutexLock lock(&mutex_);
  std::vector<DeviceStream*>& streams = blocks_.at(buffer.data()).streams;
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
    streams.push_back(stream);
  }
}

absl::Status DeviceMemory::MapUntil(size_t end_bytes) {
  if (end_bytes <= mapped_bytes_) return absl::OkStatus();
  if (end_bytes > options_.limit_bytes) {
    return absl::ResourceExhaustedError("the limit of the device is reached");
  }
  const size_t wanted_bytes =
      RoundUp(end_bytes - mapped_bytes_, options_.piece_bytes);
  return MapPiece(std::min(wanted_bytes, options_.limit_bytes - mapped_bytes_));
}

absl::Status DeviceMemory::MapPiece(size_t piece_bytes) {
  const driver::DriverApi& api = context_.api();
  const driver::AllocationProperties properties{
      .location = {.id = context_.ordinal()}};
  const driver::Address address = base_ + mapped_bytes_;
  uint64_t handle = 0;
  RETURN_IF_ERROR(context_.Call("cuMemCreate", api.cuMemCreate, &handle,
                                piece_bytes, &properties, uint64_t{0}));
  absl::Status status =
      context_.Call("cuMemMap", api.cuMemMap, address, piece_bytes, size_t{0},
                    handle, uint64_t{0});
  if (status.ok()) {
    const driver::AccessDescription access{.location = properties.location};
    status = context_.Call("cuMemSetAccess", api.cuMemSetAccess, address,
                           piece_bytes, &access, size_t{1});
    if (!status.ok()) {
      (void)context_.TryCall(api.cuMemUnmap, address, piece_bytes);
    }
  }
  if (!status.ok()) {
    (void)context_.TryCall(api.cuMemRelease, handle);
    return status;
  }
  pieces_.emplace_back(handle, piece_bytes);
  mapped_bytes_ += piece_bytes;
  return absl::OkStatus();
}

void DeviceMemory::Free(uint8_t* data) {
  const absl::MutexLock lock(&mutex_);
  const auto found = blocks_.find(data);
  FreedBlock freed{.place = found->second.place};
  for (DeviceStream* stream : found->second.streams) {
    driver::EventHandle* handle = nullptr;
    absl::Status status =
        context_.Call("cuEventCreate", context_.api().cuEventCreate, &handle,
                      driver::kEventDisableTiming);
    if (status.ok()) {
      freed.events.push_back(std::make_unique<Event>(&context_, handle));
      status = stream->Record(freed.events.back().get());
    }
    if (status.ok()) continue;
    // Without an event, the end of the work is unknown. This happens only on a
    // lost device, and nothing will be allocated on it.
    freed.events.clear();
    break;
  }
  blocks_.erase(found);
  current_bytes_ -= freed.place.size_bytes;
  freed_.push_back(std::move(freed));
  CollectFreedBlocks();
}

void DeviceMemory::CollectFreedBlocks() {
  // On a lost device IsReached() fails. Its work has ended, too.
  const auto is_reached = [](const std::unique_ptr<Event>& event) {
    return event->IsReached().value_or(true);
  };
  std::vector<FreedBlock> in_use;
  for (FreedBlock& block : freed_) {
    if (std::all_of(block.events.begin(), block.events.end(), is_reached)) {
      ReleasePlace(block.place);
    } else {
      in_use.push_back(std::move(block));
    }
  }
  freed_ = std::move(in_use);
}

void DeviceMemory::AwaitFreedBlocks() {
  const absl::Time deadline = Clock::Real()->Now() + kFreedTimeout;
  for (const FreedBlock& block : freed_) {
    for (const auto& event : block.events) {
      // A block whose work has not ended stays in the list.
      (void)AwaitEvent(&context_, *event, deadline, "the work on freed memory");
    }
  }
  CollectFreedBlocks();
}

void DeviceMemory::ReleasePlace(const ArenaPlanner::Block& place) {
  heap_.Free(place);
  if (poison_stream_ == nullptr) return;
  const driver::DriverApi& api = context_.api();
  (void)context_.TryCall(api.cuMemsetD8Async, base_ + place.offset_bytes,
                         kPoison, place.size_bytes, poison_stream_);
  (void)context_.TryCall(api.cuStreamSynchronize, poison_stream_);
}

absl::Status DeviceMemory::Exhausted(size_t size_bytes, const std::string& tag,
                                     const absl::Status& cause) const {
  const MemoryReport report = MakeReport();
  std::string message =
      absl::StrCat(context_.name(), " has no memory for ", tag, ": requested ",
                   size_bytes, " bytes, in use ", report.current_bytes,
                   " of at most ", report.limit_bytes);
  if (!cause.ok()) absl::StrAppend(&message, " (", cause.message(), ")");
  const size_t count = std::min(report.holders.size(), kHoldersInErrorsMax);
  for (size_t i = 0; i < count; ++i) {
    absl::StrAppend(&message, i == 0 ? "; held by " : ", ",
                    report.holders[i].tag, ": ", report.holders[i].size_bytes);
  }
  absl::StrAppend(&message,
                  "; raise the device's memory limit, use smaller batches, or "
                  "end other programs on the GPU");
  return absl::ResourceExhaustedError(message);
}

MemoryReport DeviceMemory::MakeReport() const {
  MemoryReport report{.current_bytes = current_bytes_,
                      .peak_bytes = peak_bytes_,
                      .mapped_bytes = mapped_bytes_,
                      .limit_bytes = options_.limit_bytes};
  std::map<std::string, size_t> bytes_by_tag;
  for (const auto& [data, block] : blocks_) {
    bytes_by_tag[block.tag] += block.place.size_bytes;
  }
  for (const auto& [tag, size_bytes] : bytes_by_tag) {
    report.holders.push_back({tag, size_bytes});
  }
  std::stable_sort(
      report.holders.begin(), report.holders.end(),
      [](const auto& a, const auto& b) { return a.size_bytes > b.size_bytes; });
  return report;
}

MemoryReport DeviceMemory::report() const {
  const absl::MutexLock lock(&mutex_);
  return MakeReport();
}

void DeviceMemory::ResetPeak() {
  const absl::MutexLock lock(&mutex_);
  peak_bytes_ = current_bytes_;
}

}  // namespace muster
