#include "common/core/device/simulated/graph_functions.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/core/device/driver/launch_shape.h"
#include "common/core/device/simulated/driver_function.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/device/simulated/simulated_graphs.h"
#include "common/core/device/simulated/simulated_machine_state.h"

namespace muster::simulated {
namespace {

using driver::CaptureMode;
using driver::CaptureStatus;
using driver::ContextHandle;
using driver::CopyNodeParameters;
using driver::CopyNodeSide;
using driver::GraphExecHandle;
using driver::GraphHandle;
using driver::GraphNodeHandle;
using driver::KernelNodeParameters;
using driver::Result;
using driver::StreamHandle;

void SetCaptureFunctions(driver::DriverApi* api) {
  api->cuStreamBeginCapture_v2 = [](StreamHandle* stream,
                                    CaptureMode mode) -> Result {
    MUSTER_ENTER("cuStreamBeginCapture_v2");
    MUSTER_REQUIRE(machine->stream_handles_.Contains(stream), kInvalidHandle);
    return machine->captures_.Begin(stream, mode);
  };
  api->cuStreamEndCapture = [](StreamHandle* stream,
                               GraphHandle** graph) -> Result {
    *graph = nullptr;
    simulated::MachineState* const machine = the_machine;
    MUSTER_REQUIRE(machine != nullptr, kNotInitialized);
    MUSTER_REQUIRE(machine->stream_handles_.Contains(stream), kInvalidHandle);
    // The stream leaves the capture even if this call fails.
    SimulatedGraph captured;
    const Result ended = machine->captures_.End(stream, &captured);
    const Result entered = machine->Enter("cuStreamEndCapture");
    const Result result = entered == driver::kSuccess ? ended : entered;
    if (result == driver::kSuccess) {
      *graph = machine->graph_handles_.Add({std::move(captured)});
    }
    return result;
  };
  api->cuStreamGetCaptureInfo_v3 =
      [](StreamHandle* stream, CaptureStatus* status, uint64_t*, GraphHandle**,
         GraphNodeHandle* const** dependencies, const void**,
         size_t* dependency_count) -> Result {
    MUSTER_ENTER("cuStreamGetCaptureInfo_v3");
    MUSTER_REQUIRE(machine->stream_handles_.Contains(stream), kInvalidHandle);
    *status =
        machine->captures_.StatusOf(stream, dependencies, dependency_count);
    return driver::kSuccess;
  };
}

void SetNodeFunctions(driver::DriverApi* api) {
  api->cuGraphMemcpyNodeGetParams =
      [](GraphNodeHandle* node, CopyNodeParameters* parameters) -> Result {
    MUSTER_ENTER("cuGraphMemcpyNodeGetParams");
    MUSTER_REQUIRE(node != nullptr && node->work.kind == GraphWork::Kind::kCopy,
                   kInvalidValue);
    *parameters = {};
    for (CopyNodeSide* const side : {&parameters->from, &parameters->to}) {
      side->memory_type = driver::kMemoryTypeUnified;
    }
    parameters->from.device = node->work.from;
    parameters->to.device = node->work.to;
    parameters->width_bytes = node->work.size_bytes;
    return driver::kSuccess;
  };
  api->cuGraphExecMemcpyNodeSetParams =
      [](GraphExecHandle* exec, GraphNodeHandle* node,
         const CopyNodeParameters* parameters, ContextHandle*) -> Result {
    MUSTER_ENTER("cuGraphExecMemcpyNodeSetParams");
    MUSTER_REQUIRE(machine->graph_exec_handles_.Contains(exec), kInvalidHandle);
    GraphWork* const work = exec->graph.FindWork(node);
    MUSTER_REQUIRE(work != nullptr && work->kind == GraphWork::Kind::kCopy,
                   kInvalidValue);
    MUSTER_REQUIRE(parameters->height == 1 && parameters->depth == 1 &&
                       parameters->width_bytes > 0,
                   kInvalidValue);
    const auto kind = [&](driver::Address address) {
      return machine->memory_.KindAt(address);
    };
    MUSTER_REQUIRE(kind(parameters->from.device) == kind(work->from) &&
                       kind(parameters->to.device) == kind(work->to),
                   kInvalidValue);
    return machine->MakeCopy(parameters->to.device, parameters->from.device,
                             parameters->width_bytes, work);
  };
  api->cuGraphExecKernelNodeSetParams_v2 =
      [](GraphExecHandle* exec, GraphNodeHandle* node,
         const KernelNodeParameters* p) -> Result {
    MUSTER_ENTER("cuGraphExecKernelNodeSetParams_v2");
    MUSTER_REQUIRE(machine->graph_exec_handles_.Contains(exec), kInvalidHandle);
    GraphWork* const work = exec->graph.FindWork(node);
    MUSTER_REQUIRE(work != nullptr && work->kind == GraphWork::Kind::kKernel,
                   kInvalidValue);
    MUSTER_REQUIRE(
        p->function == nullptr && machine->kernel_handles_.Contains(p->kernel),
        kInvalidHandle);
    return machine->MakeLaunch(
        p->kernel,
        {.grid = {p->grid[0], p->grid[1], p->grid[2]},
         .block = {p->block[0], p->block[1], p->block[2]},
         .shared_bytes = p->shared_bytes},
        p->arguments, work);
  };
}

void SetLaunchFunctions(driver::DriverApi* api) {
  api->cuGraphInstantiateWithFlags = [](GraphExecHandle** exec,
                                        GraphHandle* graph,
                                        unsigned long long) -> Result {
    MUSTER_ENTER("cuGraphInstantiateWithFlags");
    MUSTER_REQUIRE(machine->graph_handles_.Contains(graph), kInvalidHandle);
    *exec = machine->graph_exec_handles_.Add(
        {ExecutableGraph(graph->graph, machine->captures_.seed())});
    return driver::kSuccess;
  };
  api->cuGraphLaunch = [](GraphExecHandle* exec,
                          StreamHandle* stream) -> Result {
    MUSTER_ENTER("cuGraphLaunch");
    MUSTER_REQUIRE(machine->graph_exec_handles_.Contains(exec), kInvalidHandle);
    MUSTER_REQUIRE(machine->stream_handles_.Contains(stream), kInvalidHandle);
    // Capturing a launch would need a child graph node, which is not simulated.
    MUSTER_REQUIRE(machine->captures_.MayWait(stream), kNotSupported);
    for (GraphWork& work : exec->graph.WorkOfLaunch()) {
      const Result result = machine->Submit(stream, std::move(work));
      if (result != driver::kSuccess) return result;
    }
    return driver::kSuccess;
  };
  api->cuGraphExecDestroy = [](GraphExecHandle* exec) -> Result {
    MUSTER_ENTER("cuGraphExecDestroy");
    MUSTER_REQUIRE(machine->graph_exec_handles_.Remove(exec), kInvalidHandle);
    return driver::kSuccess;
  };
  api->cuGraphDestroy = [](GraphHandle* graph) -> Result {
    MUSTER_ENTER("cuGraphDestroy");
    MUSTER_REQUIRE(machine->graph_handles_.Remove(graph), kInvalidHandle);
    return driver::kSuccess;
  };
}

}  // namespace

void SetGraphFunctions(driver::DriverApi* api) {
  SetCaptureFunctions(api);
  SetNodeFunctions(api);
  SetLaunchFunctions(api);
}

}  // namespace muster::simulated
