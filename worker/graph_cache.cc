#include "worker/graph_cache.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_codec.h"
#include "common/core/base/status_macros.h"
#include "proto/graph.pb.h"
#include "worker/client/worker_protocol.h"

namespace muster {

absl::StatusOr<std::shared_ptr<const CachedStep>> GraphCache::Get(
    uint64_t fingerprint, absl::string_view serialized) {
  if (auto step = Find(fingerprint); step != nullptr) return step;
  if (serialized.empty()) {
    return absl::NotFoundError(
        absl::StrCat("the cache has no graph with fingerprint ",
                     absl::Hex(fingerprint), ", and none was sent"));
  }
  if (GraphFingerprint(serialized) != fingerprint) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a graph announced as ", absl::Hex(fingerprint), " has fingerprint ",
        absl::Hex(GraphFingerprint(serialized))));
  }
  proto::Graph encoded;
  if (!encoded.ParseFromArray(serialized.data(),
                              static_cast<int>(serialized.size()))) {
    return absl::InvalidArgumentError(
        "a function definition does not hold a valid graph");
  }
  auto step = std::make_shared<CachedStep>();
  step->fingerprint = fingerprint;
  ASSIGN_OR_RETURN(step->graph, DecodeGraph(encoded, *ops_));
  ASSIGN_OR_RETURN(step->signature, StepSignature::Create(step->graph));

  absl::MutexLock lock(&mutex_);
  steps_.push_front(step);
  if (static_cast<int>(steps_.size()) > step_count_max_) steps_.pop_back();
  return std::shared_ptr<const CachedStep>(step);
}

std::vector<uint64_t> GraphCache::fingerprints() const {
  absl::MutexLock lock(&mutex_);
  std::vector<uint64_t> fingerprints;
  for (const auto& step : steps_) fingerprints.push_back(step->fingerprint);
  return fingerprints;
}

std::shared_ptr<const CachedStep> GraphCache::Find(uint64_t fingerprint) {
  absl::MutexLock lock(&mutex_);
  const auto found = std::find_if(
      steps_.begin(), steps_.end(),
      [&](const auto& step) { return step->fingerprint == fingerprint; });
  if (found == steps_.end()) return nullptr;
  steps_.splice(steps_.begin(), steps_, found);
  return steps_.front();
}

}  // namespace muster
