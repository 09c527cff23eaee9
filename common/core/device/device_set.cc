#include "common/core/device/device_set.h"

#include <atomic>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/driver/real_driver.h"

namespace muster {
namespace {

// Simulated memory is memory of this machine.
constexpr size_t kSimulatedMemoryBytes = size_t{1} << 30;
constexpr size_t kSimulatedPieceBytes = 2 << 20;

constexpr MetricInfo kMemoryBytes = {"muster_gpu_memory_bytes",
                                     "Memory of the GPU that is in use."};
constexpr MetricInfo kMemoryPeakBytes = {
    "muster_gpu_memory_peak_bytes",
    "The largest value of muster_gpu_memory_bytes."};
constexpr MetricInfo kMemoryLimitBytes = {
    "muster_gpu_memory_limit_bytes",
    "Memory of the GPU that this process may use."};

constexpr MetricInfo kGraphLaunches = {
    "muster_gpu_graph_launches_total",
    "Launches of CUDA graphs that steps were captured as."};
constexpr MetricInfo kGraphCaptures = {"muster_gpu_graph_captures_total",
                                       "CUDA graphs that were captured."};
constexpr MetricInfo kGraphUpdates = {
    "muster_gpu_graph_updates_total",
    "Nodes of CUDA graphs that were changed between launches."};
constexpr MetricInfo kGraphsWithout = {
    "muster_gpu_graph_fallbacks_total",
    "Work that was not captured as CUDA graphs, by reason."};

void AddGraphCounters(const GraphCounters& counters, const MetricLabels& labels,
                      MetricSink* sink) {
  const auto add = [&](const MetricInfo& info,
                       const std::atomic<int64_t>& value,
                       absl::string_view reason = "") {
    MetricLabels all = labels;
    if (!reason.empty()) all.emplace_back("reason", std::string(reason));
    sink->AddCounter(info, static_cast<double>(value.load()), std::move(all));
  };
  add(kGraphLaunches, counters.launches);
  add(kGraphCaptures, counters.captures);
  add(kGraphUpdates, counters.updates);
  add(kGraphsWithout, counters.refusals, "refused");
  add(kGraphsWithout, counters.host_steps, "host");
  add(kGraphsWithout, counters.unsteady_segments, "unsteady");
}

std::unique_ptr<MetricSource> MetricsOf(Device* device) {
  return std::make_unique<MetricSource>([device](MetricSink* sink) {
    const MemoryReport report = device->memory().report();
    const MetricLabels labels = {{"device", device->name()}};
    sink->AddGauge(kMemoryBytes, static_cast<double>(report.current_bytes),
                   labels);
    sink->AddGauge(kMemoryPeakBytes, static_cast<double>(report.peak_bytes),
                   labels);
    sink->AddGauge(kMemoryLimitBytes, static_cast<double>(report.limit_bytes),
                   labels);
    AddGraphCounters(device->graph_counters(), labels, sink);
  });
}

}  // namespace

DeviceSet& DeviceSet::OfProcess() {
  static auto* const devices = new DeviceSet(RealDriver);
  return *devices;
}

DeviceSet::~DeviceSet() {
  // Destroys the devices before the machine that simulates them.
  const absl::MutexLock lock(&mutex_);
  logical_.clear();
}

absl::Status DeviceSet::UseSimulatedDevices(int count) {
  const absl::MutexLock lock(&mutex_);
  if (count < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(count, " simulated GPUs; expected at least 1"));
  }
  if (is_discovered_) {
    return absl::FailedPreconditionError(
        "simulated GPUs must be set up before the first use of a GPU; the "
        "driver is already in use");
  }
  machine_ = std::make_unique<SimulatedMachine>(SimulatedMachine::Options{
      .device_count = count, .memory_bytes = kSimulatedMemoryBytes});
  return absl::OkStatus();
}

absl::Status DeviceSet::FailSimulatedDevices(absl::string_view function,
                                             int64_t occurrence) {
  const absl::MutexLock lock(&mutex_);
  if (machine_ == nullptr) {
    return absl::FailedPreconditionError("no GPUs are simulated");
  }
  machine_->Fail(function, driver::kEccUncorrectable,
                 static_cast<int>(occurrence - 1), /*is_sticky=*/true);
  return absl::OkStatus();
}

absl::Status DeviceSet::Discover() {
  if (std::exchange(is_discovered_, true)) return discovery_;
  discovery_ = [&]() -> absl::Status {
    mutex_.AssertHeld();
    if (machine_ != nullptr) {
      api_ = &machine_->driver();
    } else {
      ASSIGN_OR_RETURN(api_, find_driver_());
    }
    int count = 0;
    if (const driver::Result result = api_->cuDeviceGetCount(&count);
        result != driver::kSuccess) {
      return absl::UnavailableError(
          absl::StrCat("cannot query the number of GPUs: error ", result));
    }
    for (int i = 0; i < count; ++i) {
      Physical physical;
      ASSIGN_OR_RETURN(physical.description, DescribePhysicalDevice(*api_, i));
      physical_.push_back(std::move(physical));
      visible_.push_back(i);
    }
    return absl::OkStatus();
  }();
  return discovery_;
}

absl::StatusOr<std::vector<DeviceDescription>>
DeviceSet::ListPhysicalDevices() {
  const absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(Discover());
  std::vector<DeviceDescription> descriptions;
  for (const Physical& physical : physical_) {
    descriptions.push_back(physical.description);
  }
  return descriptions;
}

absl::Status DeviceSet::CheckNotInUse() const {
  if (!is_in_use_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "GPUs are in use: configure them before the first strategy or device is "
      "made");
}

absl::StatusOr<DeviceSet::Physical*> DeviceSet::FindPhysical(int index) {
  RETURN_IF_ERROR(CheckNotInUse());
  RETURN_IF_ERROR(Discover());
  if (index >= 0 && index < static_cast<int>(physical_.size())) {
    return &physical_[index];
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no physical GPU ", index, "; this machine has ",
                   physical_.size(), ", numbered from 0"));
}

absl::Status DeviceSet::SetVisibleDevices(
    absl::Span<const int> physical_indices) {
  const absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckNotInUse());
  std::set<int> seen;
  for (const int index : physical_indices) {
    RETURN_IF_ERROR(FindPhysical(index).status());
    if (seen.insert(index).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("physical GPU ", index, " is named twice"));
  }
  visible_.assign(physical_indices.begin(), physical_indices.end());
  return absl::OkStatus();
}

absl::Status DeviceSet::SetMemoryGrowth(int physical_index, bool grows) {
  const absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(Physical* const physical, FindPhysical(physical_index));
  physical->grows = grows;
  return absl::OkStatus();
}

absl::Status DeviceSet::SetLogicalDevices(
    int physical_index, absl::Span<const LogicalDeviceOptions> devices) {
  const absl::MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(Physical* const physical, FindPhysical(physical_index));
  if (devices.empty()) {
    return absl::InvalidArgumentError(
        "no logical devices; hide a GPU with SetVisibleDevices()");
  }
  const size_t memory_bytes = physical->description.memory_bytes;
  size_t left_bytes = memory_bytes;
  for (const LogicalDeviceOptions& device : devices) {
    if (device.memory_limit_bytes == 0 && devices.size() > 1) {
      return absl::InvalidArgumentError(
          "a logical device has no memory limit; several that share a GPU "
          "need one each");
    }
    if (device.memory_limit_bytes > left_bytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the memory limits of the logical devices exceed the ", memory_bytes,
          " bytes of physical GPU ", physical_index));
    }
    left_bytes -= device.memory_limit_bytes;
  }
  physical->logical.assign(devices.begin(), devices.end());
  return absl::OkStatus();
}

std::vector<DeviceSet::Logical> DeviceSet::MakeLogical() const {
  std::vector<Logical> logical;
  for (const int index : visible_) {
    for (const LogicalDeviceOptions& options : physical_[index].logical) {
      logical.push_back({.physical_index = index,
                         .options = options,
                         .device = nullptr,
                         .metrics = nullptr});
    }
  }
  return logical;
}

absl::Status DeviceSet::EnableTensorFloat32(bool enabled) {
  const absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckNotInUse());
  tensor_float_32_ = enabled;
  return absl::OkStatus();
}

void DeviceSet::CaptureSteps(bool enabled) {
  const absl::MutexLock lock(&mutex_);
  captures_steps_ = enabled;
  for (const Logical& logical : logical_) {
    if (logical.device != nullptr) logical.device->CaptureSteps(enabled);
  }
}

absl::StatusOr<int> DeviceSet::CountLogicalDevices() {
  const absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(Discover());
  return static_cast<int>(MakeLogical().size());
}

absl::StatusOr<Device*> DeviceSet::FindDevice(int index) {
  const absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(Discover());
  const int count = static_cast<int>(MakeLogical().size());
  if (index < 0 || index >= count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no device \"gpu:", index, "\"; this process has ", count,
        count == 1 ? " GPU, \"gpu:0\"" : " GPUs, numbered from 0"));
  }
  if (!is_in_use_) logical_ = MakeLogical();
  is_in_use_ = true;
  Logical& logical = logical_[index];
  if (logical.device != nullptr) return logical.device.get();
  const Physical& physical = physical_[logical.physical_index];
  const size_t limit_bytes = logical.options.memory_limit_bytes;
  Device::Options options{
      .name = absl::StrCat("gpu:", index),
      .ordinal = physical.description.ordinal,
      .memory = {.limit_bytes = limit_bytes > 0
                                    ? limit_bytes
                                    : physical.description.memory_bytes,
                 .maps_all = !physical.grows},
      .tensor_float_32 = tensor_float_32_,
      .captures_steps = captures_steps_};
  if (api_->is_simulated) options.memory.piece_bytes = kSimulatedPieceBytes;
  ASSIGN_OR_RETURN(logical.device, Device::Create(api_, options));
  logical.metrics = MetricsOf(logical.device.get());
  return logical.device.get();
}

absl::StatusOr<MemoryReport> DeviceSet::GetMemoryInfo(int index) {
  ASSIGN_OR_RETURN(Device* const device, FindDevice(index));
  return device->memory().report();
}

absl::Status DeviceSet::ResetPeakMemory(int index) {
  ASSIGN_OR_RETURN(Device* const device, FindDevice(index));
  device->memory().ResetPeak();
  return absl::OkStatus();
}

}  // namespace muster
