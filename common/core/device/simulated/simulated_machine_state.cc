#include "common/core/device/simulated/simulated_machine_state.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "common/core/device/simulated/launch_arguments.h"
#include "common/core/device/simulated/simulated_grid.h"
#include "common/core/system/log.h"

namespace muster::simulated {

using driver::Address;
using driver::ContextHandle;
using driver::KernelHandle;
using driver::Result;
using driver::StreamHandle;

namespace {

// Values of an H100.
constexpr int kMultiprocessorCount = 132;
constexpr int kL2CacheBytes = 50 << 20;
constexpr unsigned kOptInSharedBytesMax = 227 << 10;

std::atomic<uint64_t> last_machine_id = 0;

// The context that is current on this thread, and the machine that made it.
thread_local const ContextHandle* current_context = nullptr;
thread_local uint64_t current_machine_id = 0;

// True for errors after which the driver refuses every call for the device.
bool LosesDevice(Result result) {
  return result == driver::kEccUncorrectable ||
         result == driver::kIllegalAddress || result == driver::kLaunchFailed;
}

// True for calls that a thread must not make while it captures, because they
// may synchronize.
bool IsUnsafeInCapture(absl::string_view function) {
  static constexpr absl::string_view kUnsafe[] = {
      "cuMemCreate",          "cuMemRelease",        "cuMemMap",
      "cuMemUnmap",           "cuMemSetAccess",      "cuMemHostAlloc",
      "cuMemHostRegister_v2", "cuMemHostUnregister", "cuMemFreeHost",
      "cuEventQuery",         "cuLibraryLoadData",   "cuLibraryUnload"};
  return std::find(std::begin(kUnsafe), std::end(kUnsafe), function) !=
         std::end(kUnsafe);
}

}  // namespace

std::atomic<MachineState*> the_machine = nullptr;

MachineState::MachineState(const SimulatedMachine::Options& options)
    : options_(options),
      id_(++last_machine_id),
      memory_(options.device_count, options.memory_bytes,
              options.order == simulated::Order::kAtWait),
      streams_(&memory_, options.device_count, options.order, options.seed),
      captures_(options.seed),
      contexts_(options.device_count) {
  for (int i = 0; i < options.device_count; ++i) contexts_[i].device = i;
}

Result MachineState::Enter(const char* function) {
  {
    const absl::MutexLock lock(&mutex_);
    ++counts_[function];
    const auto fault = faults_.find(function);
    if (fault != faults_.end() && fault->second.after-- <= 0) {
      const Result result = fault->second.result;
      if (!fault->second.is_sticky) {
        faults_.erase(fault);
      } else if (LosesDevice(result) && current_device() >= 0) {
        streams_.set_error(current_device(), result);
      }
      return result;
    }
  }
  if (IsUnsafeInCapture(function) && !captures_.MayCallUnsafe()) {
    return driver::kStreamCaptureUnsupported;
  }
  // Functions that query GPUs succeed even if a GPU is lost.
  const int device = current_device();
  return device < 0 || absl::StartsWith(function, "cuDevice")
             ? driver::kSuccess
             : streams_.error(device);
}

int MachineState::current_device() const {
  return current_context == nullptr || current_machine_id != id_
             ? -1
             : current_context->device;
}

Result MachineState::SetCurrent(ContextHandle* context) {
  const bool is_ours = context >= contexts_.data() &&
                       context < contexts_.data() + contexts_.size();
  if (context != nullptr && !is_ours) return driver::kInvalidContext;
  current_context = context;
  current_machine_id = id_;
  return driver::kSuccess;
}

Result MachineState::Attribute(driver::DeviceAttribute attribute,
                               int* value) const {
  switch (attribute) {
    case driver::DeviceAttribute::kMultiprocessorCount:
      *value = kMultiprocessorCount;
      return driver::kSuccess;
    case driver::DeviceAttribute::kL2CacheBytes:
      *value = kL2CacheBytes;
      return driver::kSuccess;
    case driver::DeviceAttribute::kComputeCapabilityMajor:
      *value = 9;
      return driver::kSuccess;
    case driver::DeviceAttribute::kComputeCapabilityMinor:
      *value = 0;
      return driver::kSuccess;
  }
  return driver::kInvalidValue;
}

Result MachineState::Submit(StreamHandle* stream, GraphWork work) {
  if (const auto captured = captures_.Add(stream, &work)) return *captured;
  host_copy_bytes_ += static_cast<int64_t>(work.host_bytes);
  streams_.Enqueue(stream->stream, std::move(work.run));
  return driver::kSuccess;
}

Result MachineState::MakeCopy(Address to, Address from, size_t size_bytes,
                              GraphWork* work) const {
  if (!IsUsable(to, size_bytes) || !IsUsable(from, size_bytes) ||
      !memory_.IsOfOneKind(to, size_bytes) ||
      !memory_.IsOfOneKind(from, size_bytes)) {
    return driver::kInvalidValue;
  }
  *work = {.kind = GraphWork::Kind::kCopy,
           .to = to,
           .from = from,
           .size_bytes = size_bytes};
  if (memory_.KindAt(to) != SimulatedMemory::Kind::kDevice ||
      memory_.KindAt(from) != SimulatedMemory::Kind::kDevice) {
    work->host_bytes = size_bytes;
  }
  work->run = [to, from, size_bytes] {
    std::memmove(reinterpret_cast<void*>(to),
                 reinterpret_cast<const void*>(from), size_bytes);
    return driver::kSuccess;
  };
  return driver::kSuccess;
}

Result MachineState::Copy(Address to, Address from, size_t size_bytes,
                          StreamHandle* stream) {
  GraphWork work;
  if (const Result made = MakeCopy(to, from, size_bytes, &work);
      made != driver::kSuccess) {
    return made;
  }
  const bool reads_pageable =
      memory_.KindAt(from) == SimulatedMemory::Kind::kPageable;
  const bool writes_pageable =
      memory_.KindAt(to) == SimulatedMemory::Kind::kPageable;
  if (reads_pageable || writes_pageable) {
    // A copy of pageable memory may block, which a capture does not allow.
    if (!captures_.MayWait(stream)) return driver::kStreamCaptureUnsupported;
    ++pageable_copy_count_;
  }
  // The driver reads pageable memory before it returns.
  if (reads_pageable) {
    const auto* const source = reinterpret_cast<const uint8_t*>(from);
    work.run = [to, staged = std::make_shared<std::vector<uint8_t>>(
                        source, source + size_bytes)] {
      std::memmove(reinterpret_cast<void*>(to), staged->data(), staged->size());
      return driver::kSuccess;
    };
  }
  if (const Result taken = Submit(stream, std::move(work));
      taken != driver::kSuccess) {
    return taken;
  }
  // Pageable memory has been written when the call returns.
  return writes_pageable ? streams_.Drain(stream->stream) : driver::kSuccess;
}

Result MachineState::Fill(Address to, uint8_t byte, size_t size_bytes,
                          StreamHandle* stream) {
  if (!IsUsable(to, size_bytes)) return driver::kInvalidValue;
  return Submit(stream, {.run = [to, byte, size_bytes] {
                  std::memset(reinterpret_cast<void*>(to), byte, size_bytes);
                  return driver::kSuccess;
                }});
}

Result MachineState::MakeLaunch(const KernelHandle* kernel,
                                const LaunchShape& shape, void** arguments,
                                GraphWork* work) const {
  uint64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    if (shape.grid[i] == 0 || shape.block[i] == 0) return driver::kInvalidValue;
    threads *= shape.block[i];
  }
  if (threads > kThreadsPerBlockMax ||
      shape.shared_bytes > kOptInSharedBytesMax) {
    return driver::kInvalidValue;
  }
  const SimulatedKernel* const code = kernel->kernel;
  auto copied =
      std::make_shared<LaunchArguments>(code->argument_bytes, arguments);
  *work = {.kind = GraphWork::Kind::kKernel,
           .run = [seed = options_.seed, code, shape, copied] {
             const absl::Status status =
                 RunSimulatedGrid(*code, shape, copied->pointers(), seed);
             if (status.ok()) return driver::kSuccess;
             LOG(ERROR) << "simulated GPU: kernel " << code->name
                        << " failed: " << status.message();
             return driver::kLaunchFailed;
           }};
  return driver::kSuccess;
}

}  // namespace muster::simulated
