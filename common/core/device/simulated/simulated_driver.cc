#include "common/core/device/simulated/simulated_driver.h"

#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "common/core/base/check.h"
#include "common/core/device/driver/kernel_image.h"
#include "common/core/device/driver/launch_shape.h"
#include "common/core/device/simulated/driver_function.h"
#include "common/core/device/simulated/error_names.h"
#include "common/core/device/simulated/graph_functions.h"
#include "common/core/device/simulated/simulated_graphs.h"
#include "common/core/device/simulated/simulated_machine_state.h"

namespace muster {

using driver::Address;
using driver::ContextHandle;
using driver::EventHandle;
using driver::KernelHandle;
using driver::LibraryHandle;
using driver::Result;
using driver::StreamHandle;
using simulated::SimulatedMemory;
using simulated::the_machine;

namespace {

constexpr int kDriverVersion = 13000;

void SetDriverFunctions(driver::DriverApi* api) {
  api->cuInit = [](unsigned) -> Result {
    MUSTER_ENTER("cuInit");
    return driver::kSuccess;
  };
  api->cuDriverGetVersion = [](int* version) -> Result {
    *version = kDriverVersion;
    return driver::kSuccess;
  };
  api->cuGetErrorName = [](Result result, const char** name) -> Result {
    *name = simulated::ErrorName(result);
    return driver::kSuccess;
  };
  api->cuGetErrorString = [](Result, const char** text) -> Result {
    *text = "of a simulated GPU";
    return driver::kSuccess;
  };
}

void SetDeviceFunctions(driver::DriverApi* api) {
  api->cuDeviceGetCount = [](int* count) -> Result {
    MUSTER_ENTER("cuDeviceGetCount");
    *count = machine->options_.device_count;
    return driver::kSuccess;
  };
  api->cuDeviceGet = [](int* device, int ordinal) -> Result {
    MUSTER_ENTER("cuDeviceGet");
    MUSTER_REQUIRE(machine->HasDevice(ordinal), kInvalidDevice);
    *device = ordinal;
    return driver::kSuccess;
  };
  api->cuDeviceGetName = [](char* name, int size, int device) -> Result {
    MUSTER_ENTER("cuDeviceGetName");
    MUSTER_REQUIRE(machine->HasDevice(device), kInvalidDevice);
    MUSTER_REQUIRE(size > 0, kInvalidValue);
    std::strncpy(name, "simulated GPU", size - 1);
    name[size - 1] = '\0';
    return driver::kSuccess;
  };
  api->cuDeviceGetUuid_v2 = [](driver::Uuid* uuid, int device) -> Result {
    MUSTER_ENTER("cuDeviceGetUuid_v2");
    MUSTER_REQUIRE(machine->HasDevice(device), kInvalidDevice);
    *uuid = {};
    uuid->bytes[15] = static_cast<uint8_t>(device);
    return driver::kSuccess;
  };
  api->cuDeviceGetAttribute = [](int* value, driver::DeviceAttribute attribute,
                                 int device) -> Result {
    MUSTER_ENTER("cuDeviceGetAttribute");
    MUSTER_REQUIRE(machine->HasDevice(device), kInvalidDevice);
    return machine->Attribute(attribute, value);
  };
  api->cuDeviceTotalMem_v2 = [](size_t* size_bytes, int device) -> Result {
    MUSTER_ENTER("cuDeviceTotalMem_v2");
    MUSTER_REQUIRE(machine->HasDevice(device), kInvalidDevice);
    *size_bytes = machine->options_.memory_bytes;
    return driver::kSuccess;
  };
  api->cuDevicePrimaryCtxRetain = [](ContextHandle** context,
                                     int device) -> Result {
    MUSTER_ENTER("cuDevicePrimaryCtxRetain");
    MUSTER_REQUIRE(machine->HasDevice(device), kInvalidDevice);
    *context = &machine->contexts_[device];
    return driver::kSuccess;
  };
  api->cuDevicePrimaryCtxRelease_v2 = [](int device) -> Result {
    MUSTER_ENTER("cuDevicePrimaryCtxRelease_v2");
    MUSTER_REQUIRE(machine->HasDevice(device), kInvalidDevice);
    return driver::kSuccess;
  };
  api->cuCtxSetCurrent = [](ContextHandle* context) -> Result {
    simulated::MachineState* const machine = the_machine;
    MUSTER_REQUIRE(machine != nullptr, kNotInitialized);
    return machine->SetCurrent(context);
  };
}

void SetMemoryFunctions(driver::DriverApi* api) {
  api->cuMemGetInfo_v2 = [](size_t* free_bytes, size_t* total_bytes) -> Result {
    MUSTER_ENTER("cuMemGetInfo_v2");
    const int device = machine->current_device();
    MUSTER_REQUIRE(device >= 0, kInvalidContext);
    *free_bytes = machine->memory_.FreeBytes(device);
    *total_bytes = machine->options_.memory_bytes;
    return driver::kSuccess;
  };
  api->cuMemGetAllocationGranularity = [](size_t* size_bytes,
                                          const driver::AllocationProperties*,
                                          int) -> Result {
    MUSTER_ENTER("cuMemGetAllocationGranularity");
    *size_bytes = SimulatedMemory::kGranularityBytes;
    return driver::kSuccess;
  };
  api->cuMemAddressReserve = [](Address* address, size_t size_bytes, size_t,
                                Address, uint64_t) -> Result {
    MUSTER_ENTER("cuMemAddressReserve");
    return machine->memory_.Reserve(size_bytes, address);
  };
  api->cuMemAddressFree = [](Address address, size_t size_bytes) -> Result {
    MUSTER_ENTER("cuMemAddressFree");
    return machine->memory_.FreeReserved(address, size_bytes);
  };
  api->cuMemCreate = [](uint64_t* handle, size_t size_bytes,
                        const driver::AllocationProperties* properties,
                        uint64_t) -> Result {
    MUSTER_ENTER("cuMemCreate");
    return machine->memory_.Create(properties->location.id, size_bytes, handle);
  };
  api->cuMemRelease = [](uint64_t handle) -> Result {
    MUSTER_ENTER("cuMemRelease");
    return machine->memory_.Release(handle);
  };
  api->cuMemMap = [](Address address, size_t size_bytes, size_t offset_bytes,
                     uint64_t handle, uint64_t) -> Result {
    MUSTER_ENTER("cuMemMap");
    MUSTER_REQUIRE(offset_bytes == 0, kInvalidValue);
    return machine->memory_.Map(address, size_bytes, handle);
  };
  api->cuMemUnmap = [](Address address, size_t size_bytes) -> Result {
    MUSTER_ENTER("cuMemUnmap");
    return machine->memory_.Unmap(address, size_bytes);
  };
  api->cuMemSetAccess = [](Address address, size_t size_bytes,
                           const driver::AccessDescription*, size_t) -> Result {
    MUSTER_ENTER("cuMemSetAccess");
    return machine->memory_.SetAccess(address, size_bytes);
  };
  api->cuMemHostAlloc = [](void** data, size_t size_bytes, unsigned) -> Result {
    MUSTER_ENTER("cuMemHostAlloc");
    return machine->memory_.AllocateHost(size_bytes, data);
  };
  api->cuMemFreeHost = [](void* data) -> Result {
    MUSTER_ENTER("cuMemFreeHost");
    return machine->memory_.FreeHost(data);
  };
  api->cuMemHostRegister_v2 = [](void* data, size_t size_bytes,
                                 unsigned) -> Result {
    MUSTER_ENTER("cuMemHostRegister_v2");
    return machine->memory_.RegisterHost(data, size_bytes);
  };
  api->cuMemHostUnregister = [](void* data) -> Result {
    MUSTER_ENTER("cuMemHostUnregister");
    return machine->memory_.UnregisterHost(data);
  };
}

void SetStreamFunctions(driver::DriverApi* api) {
  api->cuStreamCreateWithPriority = [](StreamHandle** stream, unsigned,
                                       int) -> Result {
    MUSTER_ENTER("cuStreamCreateWithPriority");
    const int device = machine->current_device();
    MUSTER_REQUIRE(device >= 0, kInvalidContext);
    *stream =
        machine->stream_handles_.Add({machine->streams_.AddStream(device)});
    return driver::kSuccess;
  };
  api->cuStreamDestroy_v2 = [](StreamHandle* stream) -> Result {
    MUSTER_ENTER("cuStreamDestroy_v2");
    MUSTER_REQUIRE(machine->stream_handles_.Contains(stream), kInvalidHandle);
    machine->captures_.Forget(stream);
    const Result result = machine->streams_.RemoveStream(stream->stream);
    machine->stream_handles_.Remove(stream);
    return result;
  };
  api->cuStreamSynchronize = [](StreamHandle* stream) -> Result {
    MUSTER_ENTER("cuStreamSynchronize");
    MUSTER_REQUIRE(machine->stream_handles_.Contains(stream), kInvalidHandle);
    MUSTER_REQUIRE(machine->captures_.MayWait(stream),
                   kStreamCaptureUnsupported);
    return machine->streams_.Drain(stream->stream);
  };
  api->cuStreamWaitEvent = [](StreamHandle* stream, EventHandle* event,
                              unsigned) -> Result {
    MUSTER_ENTER("cuStreamWaitEvent");
    MUSTER_REQUIRE(machine->stream_handles_.Contains(stream), kInvalidHandle);
    MUSTER_REQUIRE(machine->event_handles_.Contains(event), kInvalidHandle);
    if (const auto captured = machine->captures_.Wait(stream, event)) {
      return *captured;
    }
    machine->streams_.Wait(stream->stream, event->state);
    return driver::kSuccess;
  };
}

void SetEventFunctions(driver::DriverApi* api) {
  api->cuEventCreate = [](EventHandle** event, unsigned flags) -> Result {
    MUSTER_ENTER("cuEventCreate");
    const bool is_timed = (flags & driver::kEventDisableTiming) == 0;
    *event =
        machine->event_handles_.Add({machine->streams_.AddEvent(is_timed)});
    return driver::kSuccess;
  };
  api->cuEventElapsedTime = [](float* milliseconds, EventHandle* from,
                               EventHandle* to) -> Result {
    MUSTER_ENTER("cuEventElapsedTime");
    MUSTER_REQUIRE(machine->event_handles_.Contains(from) &&
                       machine->event_handles_.Contains(to),
                   kInvalidHandle);
    return machine->streams_.ElapsedTime(*from->state, *to->state,
                                         milliseconds);
  };
  api->cuEventDestroy_v2 = [](EventHandle* event) -> Result {
    MUSTER_ENTER("cuEventDestroy_v2");
    MUSTER_REQUIRE(machine->event_handles_.Contains(event), kInvalidHandle);
    machine->captures_.Forget(event);
    machine->event_handles_.Remove(event);
    return driver::kSuccess;
  };
  api->cuEventRecord = [](EventHandle* event, StreamHandle* stream) -> Result {
    MUSTER_ENTER("cuEventRecord");
    MUSTER_REQUIRE(machine->event_handles_.Contains(event), kInvalidHandle);
    MUSTER_REQUIRE(machine->stream_handles_.Contains(stream), kInvalidHandle);
    if (const auto captured = machine->captures_.Record(stream, event)) {
      return *captured;
    }
    machine->streams_.Record(stream->stream, event->state);
    return driver::kSuccess;
  };
  api->cuEventQuery = [](EventHandle* event) -> Result {
    MUSTER_ENTER("cuEventQuery");
    MUSTER_REQUIRE(machine->event_handles_.Contains(event), kInvalidHandle);
    MUSTER_REQUIRE(machine->captures_.MayQuery(event), kCapturedEvent);
    const Result result = machine->streams_.Query(event->state.get());
    if (result != driver::kSuccess) return result;
    const int device = machine->current_device();
    return device < 0 ? driver::kSuccess : machine->streams_.error(device);
  };
}

void SetWorkFunctions(driver::DriverApi* api) {
  api->cuMemcpyAsync = [](Address to, Address from, size_t size_bytes,
                          StreamHandle* stream) -> Result {
    MUSTER_ENTER("cuMemcpyAsync");
    MUSTER_REQUIRE(machine->stream_handles_.Contains(stream), kInvalidHandle);
    return machine->Copy(to, from, size_bytes, stream);
  };
  api->cuMemcpyPeerAsync = [](Address to, ContextHandle* to_context,
                              Address from, ContextHandle* from_context,
                              size_t size_bytes,
                              StreamHandle* stream) -> Result {
    MUSTER_ENTER("cuMemcpyPeerAsync");
    MUSTER_REQUIRE(machine->stream_handles_.Contains(stream), kInvalidHandle);
    MUSTER_REQUIRE(to_context != nullptr && from_context != nullptr,
                   kInvalidContext);
    return machine->Copy(to, from, size_bytes, stream);
  };
  api->cuMemsetD8Async = [](Address to, uint8_t byte, size_t size_bytes,
                            StreamHandle* stream) -> Result {
    MUSTER_ENTER("cuMemsetD8Async");
    MUSTER_REQUIRE(machine->stream_handles_.Contains(stream), kInvalidHandle);
    return machine->Fill(to, byte, size_bytes, stream);
  };
  api->cuLibraryLoadData = [](LibraryHandle** library, const void* code, int*,
                              void**, unsigned, int*, void**,
                              unsigned) -> Result {
    MUSTER_ENTER("cuLibraryLoadData");
    const auto* const image = static_cast<const KernelImage*>(code);
    MUSTER_REQUIRE(image != nullptr, kInvalidValue);
    MUSTER_REQUIRE(!image->simulated.empty(), kNoBinaryForGpu);
    *library = machine->library_handles_.Add({image});
    return driver::kSuccess;
  };
  api->cuLibraryUnload = [](LibraryHandle* library) -> Result {
    MUSTER_ENTER("cuLibraryUnload");
    MUSTER_REQUIRE(machine->library_handles_.Remove(library), kInvalidHandle);
    return driver::kSuccess;
  };
  api->cuLibraryGetKernel = [](KernelHandle** kernel, LibraryHandle* library,
                               const char* name) -> Result {
    MUSTER_ENTER("cuLibraryGetKernel");
    MUSTER_REQUIRE(machine->library_handles_.Contains(library), kInvalidHandle);
    for (const SimulatedKernel& candidate : library->image->simulated) {
      if (std::strcmp(candidate.name, name) != 0) continue;
      *kernel = machine->kernel_handles_.Add({&candidate});
      return driver::kSuccess;
    }
    return driver::kNotFound;
  };
}

void SetLaunchFunction(driver::DriverApi* api) {
  api->cuLaunchKernelEx = [](const driver::LaunchConfiguration* launch,
                             KernelHandle* kernel, void** arguments,
                             void**) -> Result {
    MUSTER_ENTER("cuLaunchKernelEx");
    MUSTER_REQUIRE(machine->kernel_handles_.Contains(kernel), kInvalidHandle);
    MUSTER_REQUIRE(machine->stream_handles_.Contains(launch->stream),
                   kInvalidHandle);
    const unsigned(&grid)[3] = launch->grid;
    const unsigned(&block)[3] = launch->block;
    simulated::GraphWork work;
    if (const Result made =
            machine->MakeLaunch(kernel,
                                {.grid = {grid[0], grid[1], grid[2]},
                                 .block = {block[0], block[1], block[2]},
                                 .shared_bytes = launch->shared_bytes},
                                arguments, &work);
        made != driver::kSuccess) {
      return made;
    }
    return machine->Submit(launch->stream, std::move(work));
  };
}

driver::DriverApi MakeDriver() {
  driver::DriverApi api;
  SetDriverFunctions(&api);
  SetDeviceFunctions(&api);
  SetMemoryFunctions(&api);
  SetStreamFunctions(&api);
  SetEventFunctions(&api);
  SetWorkFunctions(&api);
  SetLaunchFunction(&api);
  simulated::SetGraphFunctions(&api);
  api.is_simulated = true;
  api.has_graphs = true;
  return api;
}

}  // namespace

SimulatedMachine::SimulatedMachine(const Options& options)
    : state_(std::make_unique<simulated::MachineState>(options)) {
  MUSTER_CHECK(the_machine.exchange(state_.get()) == nullptr);
}

SimulatedMachine::~SimulatedMachine() { the_machine = nullptr; }

const driver::DriverApi& SimulatedMachine::driver() const {
  static const driver::DriverApi api = MakeDriver();
  return api;
}

Result SimulatedMachine::Enqueue(StreamHandle* stream,
                                 std::function<Result()> work) {
  simulated::MachineState* const machine = the_machine;
  if (machine == nullptr) return driver::kNotInitialized;
  if (!machine->stream_handles_.Contains(stream)) return driver::kInvalidHandle;
  return machine->Submit(stream, {.run = std::move(work)});
}

bool SimulatedMachine::IsDeviceMemory(const void* address, size_t size_bytes) {
  simulated::MachineState* const machine = the_machine;
  return machine != nullptr && machine->current_device() >= 0 &&
         machine->memory_.IsOnDevice(reinterpret_cast<Address>(address),
                                     size_bytes);
}

void SimulatedMachine::Fail(absl::string_view function, Result result,
                            int after, bool is_sticky) {
  state_->Fail(function, result, after, is_sticky);
}

int64_t SimulatedMachine::pageable_copy_count() const {
  return state_->pageable_copy_count_;
}

int64_t SimulatedMachine::host_copy_bytes() const {
  return state_->host_copy_bytes_;
}

std::map<std::string, int64_t> SimulatedMachine::counts() const {
  return state_->counts();
}

}  // namespace muster
