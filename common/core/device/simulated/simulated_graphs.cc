#include "common/core/device/simulated/simulated_graphs.h"

#include <algorithm>
#include <set>
#include <utility>

namespace muster::simulated {
namespace {

using driver::CaptureMode;
using driver::CaptureStatus;
using driver::EventHandle;
using driver::GraphNodeHandle;
using driver::Result;
using driver::StreamHandle;

void AddTo(const std::vector<GraphNodeHandle*>& more,
           std::vector<GraphNodeHandle*>* nodes) {
  for (GraphNodeHandle* const node : more) {
    if (std::find(nodes->begin(), nodes->end(), node) == nodes->end()) {
      nodes->push_back(node);
    }
  }
}

// Returns these nodes, and all nodes that they depend on.
std::set<const GraphNodeHandle*> Reachable(
    std::vector<GraphNodeHandle*> nodes) {
  std::set<const GraphNodeHandle*> reached;
  while (!nodes.empty()) {
    const GraphNodeHandle* const node = nodes.back();
    nodes.pop_back();
    if (!reached.insert(node).second) continue;
    nodes.insert(nodes.end(), node->dependencies.begin(),
                 node->dependencies.end());
  }
  return reached;
}

}  // namespace

ExecutableGraph::ExecutableGraph(const SimulatedGraph& graph, uint64_t seed)
    : random_state_(seed) {
  std::map<const GraphNodeHandle*, size_t> positions;
  for (const auto& node : graph.nodes) {
    positions[node.get()] = nodes_.size();
    nodes_.push_back(node.get());
    work_.push_back(node->work);
    auto& dependencies = dependencies_.emplace_back();
    for (const GraphNodeHandle* const dependency : node->dependencies) {
      dependencies.push_back(positions.at(dependency));
    }
  }
}

GraphWork* ExecutableGraph::FindWork(const GraphNodeHandle* node) {
  const auto found = std::find(nodes_.begin(), nodes_.end(), node);
  return found == nodes_.end() ? nullptr : &work_[found - nodes_.begin()];
}

std::vector<GraphWork> ExecutableGraph::WorkOfLaunch() {
  std::vector<GraphWork> ordered;
  std::vector<bool> is_done(work_.size());
  while (ordered.size() < work_.size()) {
    std::vector<size_t> ready;
    for (size_t i = 0; i < work_.size(); ++i) {
      if (!is_done[i] &&
          std::all_of(dependencies_[i].begin(), dependencies_[i].end(),
                      [&](size_t dependency) { return is_done[dependency]; })) {
        ready.push_back(i);
      }
    }
    random_state_ = random_state_ * 6364136223846793005u + 1442695040888963407u;
    const size_t next = ready[(random_state_ >> 33) % ready.size()];
    is_done[next] = true;
    ordered.push_back(work_[next]);
  }
  return ordered;
}

SimulatedCaptures::Capture* SimulatedCaptures::FindCapture(
    const StreamHandle* stream) const {
  for (const auto& capture : captures_) {
    if (capture->tails.count(stream) > 0) return capture.get();
  }
  return nullptr;
}

SimulatedCaptures::Capture* SimulatedCaptures::FindCapture(
    const EventHandle* event) const {
  for (const auto& capture : captures_) {
    if (capture->events.count(event) > 0) return capture.get();
  }
  return nullptr;
}

void SimulatedCaptures::Remove(const Capture* capture) {
  std::erase_if(captures_,
                [&](const auto& owned) { return owned.get() == capture; });
}

Result SimulatedCaptures::Begin(StreamHandle* stream, CaptureMode mode) {
  const absl::MutexLock lock(&mutex_);
  if (FindCapture(stream) != nullptr) return driver::kIllegalState;
  auto capture = std::make_unique<Capture>();
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->tails[stream] = {};
  captures_.push_back(std::move(capture));
  return driver::kSuccess;
}

Result SimulatedCaptures::End(StreamHandle* stream, SimulatedGraph* graph) {
  const absl::MutexLock lock(&mutex_);
  Capture* const capture = FindCapture(stream);
  if (capture == nullptr) return driver::kIllegalState;
  if (capture->mode != CaptureMode::kRelaxed &&
      capture->thread != std::this_thread::get_id()) {
    return driver::kStreamCaptureWrongThread;
  }
  Result result = driver::kSuccess;
  if (!capture->is_valid) {
    result = driver::kStreamCaptureInvalidated;
  } else if (capture->origin != stream) {
    capture->is_valid = false;
    return driver::kStreamCaptureUnmatched;
  } else if (Reachable(capture->tails.at(stream)).size() !=
             capture->graph.nodes.size()) {
    result = driver::kStreamCaptureUnjoined;
  }
  if (result == driver::kSuccess) *graph = std::move(capture->graph);
  Remove(capture);
  return result;
}

CaptureStatus SimulatedCaptures::StatusOf(const StreamHandle* stream,
                                          GraphNodeHandle* const** tails,
                                          size_t* tail_count) const {
  const absl::MutexLock lock(&mutex_);
  const Capture* const capture = FindCapture(stream);
  if (capture == nullptr) return CaptureStatus::kNone;
  if (!capture->is_valid) return CaptureStatus::kInvalidated;
  const Nodes& nodes = capture->tails.at(stream);
  *tails = nodes.data();
  *tail_count = nodes.size();
  return CaptureStatus::kActive;
}

std::optional<Result> SimulatedCaptures::Add(StreamHandle* stream,
                                             GraphWork* work) {
  const absl::MutexLock lock(&mutex_);
  Capture* const capture = FindCapture(stream);
  if (capture == nullptr) return std::nullopt;
  if (!capture->is_valid) return driver::kStreamCaptureInvalidated;
  Nodes& tails = capture->tails.at(stream);
  auto node = std::make_unique<GraphNodeHandle>();
  node->work = std::move(*work);
  node->dependencies = std::move(tails);
  tails = {node.get()};
  capture->graph.nodes.push_back(std::move(node));
  return driver::kSuccess;
}

std::optional<Result> SimulatedCaptures::Record(StreamHandle* stream,
                                                EventHandle* event) {
  const absl::MutexLock lock(&mutex_);
  if (Capture* const before = FindCapture(event); before != nullptr) {
    before->events.erase(event);
  }
  Capture* const capture = FindCapture(stream);
  if (capture == nullptr) return std::nullopt;
  if (!capture->is_valid) return driver::kStreamCaptureInvalidated;
  capture->events[event] = capture->tails.at(stream);
  return driver::kSuccess;
}

std::optional<Result> SimulatedCaptures::Wait(StreamHandle* stream,
                                              EventHandle* event) {
  const absl::MutexLock lock(&mutex_);
  Capture* const capture = FindCapture(stream);
  Capture* const of_event = FindCapture(event);
  if (of_event != nullptr && !of_event->is_valid) {
    return driver::kStreamCaptureInvalidated;
  }
  if (capture == nullptr && of_event == nullptr) return std::nullopt;
  if (capture == nullptr) {
    // The stream joins the capture.
    of_event->tails[stream] = of_event->events.at(event);
    return driver::kSuccess;
  }
  if (!capture->is_valid) return driver::kStreamCaptureInvalidated;
  if (of_event != capture) {
    capture->is_valid = false;
    if (of_event == nullptr) return driver::kStreamCaptureIsolation;
    of_event->is_valid = false;
    return driver::kStreamCaptureMerge;
  }
  AddTo(capture->events.at(event), &capture->tails.at(stream));
  return driver::kSuccess;
}

bool SimulatedCaptures::MayWait(StreamHandle* stream) {
  const absl::MutexLock lock(&mutex_);
  Capture* const capture = FindCapture(stream);
  if (capture != nullptr) capture->is_valid = false;
  return capture == nullptr;
}

bool SimulatedCaptures::MayQuery(EventHandle* event) {
  const absl::MutexLock lock(&mutex_);
  Capture* const capture = FindCapture(event);
  if (capture != nullptr) capture->is_valid = false;
  return capture == nullptr;
}

bool SimulatedCaptures::MayCallUnsafe() {
  const absl::MutexLock lock(&mutex_);
  bool is_allowed = true;
  for (const auto& capture : captures_) {
    const bool is_own = capture->thread == std::this_thread::get_id();
    const bool forbids = capture->mode == CaptureMode::kGlobal ||
                         (is_own && capture->mode != CaptureMode::kRelaxed);
    if (!forbids) continue;
    capture->is_valid = false;
    is_allowed = false;
  }
  return is_allowed;
}

void SimulatedCaptures::Forget(StreamHandle* stream) {
  const absl::MutexLock lock(&mutex_);
  Capture* const capture = FindCapture(stream);
  if (capture == nullptr) return;
  capture->is_valid = false;
  if (capture->origin == stream) Remove(capture);
}

void SimulatedCaptures::Forget(EventHandle* event) {
  const absl::MutexLock lock(&mutex_);
  for (const auto& capture : captures_) capture->events.erase(event);
}

}  // namespace muster::simulated
