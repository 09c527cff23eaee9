// Messages between tasks.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/graph/graph_codec.h"
#include "common/compute/graph/graph_verifier.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/codec/dataset_codec.h"
#include "common/dataset/dataset.h"
#include "common/net/collectives/message/frame.h"
#include "common/net/rpc/message.h"
#include "common/net/status/chrome_trace.h"
#include "common/net/status/trace_service.h"
#include "proto/dataset.pb.h"
#include "proto/graph.pb.h"
#include "proto/rpc.pb.h"
#include "proto/trace.pb.h"
#include "tests/fuzz/fuzz_target.h"

namespace muster {
namespace {

// Maximum number of elements that are read from a dataset.
constexpr int kDrawnElementsMax = 8;

template <typename T>
bool Parse(absl::string_view input, T* message) {
  return message->ParseFromArray(input.data(), static_cast<int>(input.size()));
}

// The last byte selects the position at which the message is split.
bool RunMessage(absl::string_view input) {
  const auto bytes = std::make_shared<const std::string>(input);
  const auto* const data = reinterpret_cast<const uint8_t*>(bytes->data());
  const size_t cut =
      input.empty() ? 0 : static_cast<uint8_t>(input.back()) % input.size();
  const auto message = ReceivedMessage::Parse(
      {{data, cut, bytes}, {data + cut, input.size() - cut, bytes}});
  return message.ok() && message->ToTensors().ok();
}

std::vector<std::string> MessageSeeds() {
  proto::RequestIdentity identity;
  identity.set_job_id("job");
  identity.set_caller_task("worker 1");
  const Message message = {
      "body",
      {Tensor::FromValues<float>(Shape({2, 2}), {1, 2, 3, 4}),
       Tensor::FromValues<std::string>(Shape({2}), {"a", "bcd"})}};
  std::string bytes;
  for (const MessageSlice& slice : EncodeMessage(identity, message)) {
    bytes.append(reinterpret_cast<const char*>(slice.data), slice.size_bytes);
  }
  return {bytes};
}

bool RunFrame(absl::string_view input) {
  EncodedFrameHeader header = {};
  std::memcpy(header.data(), input.data(),
              std::min(input.size(), header.size()));
  // DecodeAbort() always returns an error: the one that it decodes.
  DecodeAbort(input).IgnoreError();
  return DecodeFrameHeader(header).ok();
}

std::vector<std::string> FrameSeeds() {
  FrameHeader header;
  header.generation = 7;
  header.sequence = 1;
  header.payload_bytes = 1024;
  const EncodedFrameHeader bytes = EncodeFrameHeader(header);
  return {std::string(bytes.begin(), bytes.end())};
}

bool RunAbort(absl::string_view input) { return !DecodeAbort(input).ok(); }

std::vector<std::string> AbortSeeds() {
  return {EncodeAbort(absl::UnavailableError("worker 1 is lost"))};
}

bool RunGraph(absl::string_view input) {
  proto::Graph encoded;
  if (!Parse(input, &encoded)) return false;
  const auto graph = DecodeGraph(encoded, BuiltinOps());
  return graph.ok() && VerifyGraph(*graph, BuiltinOps()).ok();
}

std::vector<std::string> GraphSeeds() {
  GraphBuilder builder(&BuiltinOps(), "step");
  const Value x =
      builder.Parameter("x", {DType::kFloat32, Shape({Shape::kUnknown, 4})});
  const Value w = builder.Parameter("w", {DType::kFloat32, Shape({4, 3})});
  builder.AddResult(Relu(MatMul(x, w)));
  const auto graph = std::move(builder).Build();
  return {graph.ok() ? EncodeGraph(*graph).SerializeAsString() : ""};
}

// True if a stage reads or writes files, which are not part of the input.
bool HasFiles(const proto::Dataset& dataset) {
  return absl::StrContains(dataset.ShortDebugString(), "file") ||
         absl::StrContains(dataset.ShortDebugString(), "path");
}

bool RunDataset(absl::string_view input) {
  proto::Dataset encoded;
  if (!Parse(input, &encoded) || HasFiles(encoded)) return false;
  const auto dataset = DecodeDataset(encoded);
  if (!dataset.ok() || !dataset->status().ok()) return false;
  const auto iterator = dataset->MakeIterator();
  if (!iterator.ok()) return false;
  Element element;
  for (int i = 0; i < kDrawnElementsMax; ++i) {
    const auto has_element = (*iterator)->Next(&element);
    if (!has_element.ok()) return false;
    if (!*has_element) break;
  }
  return true;
}

std::vector<std::string> DatasetSeeds() {
  std::vector<std::string> seeds;
  for (const Dataset& dataset :
       {Dataset::Range(20).Shuffle(5).Batch(4).Repeat(2),
        Dataset::FromTensorSlices(
            {Tensor::FromValues<float>(Shape({3, 2}), {1, 2, 3, 4, 5, 6}),
             Tensor::FromValues<int64_t>(Shape({3}), {0, 1, 2})})
            .Take(2)
            .Prefetch(1)}) {
    const auto encoded = EncodeDataset(dataset);
    if (encoded.ok()) seeds.push_back(encoded->SerializeAsString());
  }
  return seeds;
}

bool RunTrace(absl::string_view input) {
  auto spans = std::make_shared<proto::TraceResponse>();
  if (!Parse(input, spans.get()) || !CheckSpans(*spans).ok()) return false;
  return !ChromeTraceJson({{.task = "worker 0", .spans = std::move(spans)}})
              .empty();
}

std::vector<std::string> TraceSeeds() {
  proto::TraceResponse spans;
  spans.add_names("step");
  for (const int64_t start_ns : {1000, 500}) {
    spans.add_category(0);
    spans.add_name(0);
    spans.add_start_ns(start_ns);
    spans.add_duration_ns(100);
    spans.add_thread(0);
    spans.add_overlaps(start_ns == 500);
  }
  return {spans.SerializeAsString()};
}

}  // namespace

std::vector<FuzzTarget> WireFuzzTargets() {
  return {
      {"message", RunMessage, MessageSeeds}, {"frame", RunFrame, FrameSeeds},
      {"abort", RunAbort, AbortSeeds},       {"graph", RunGraph, GraphSeeds},
      {"dataset", RunDataset, DatasetSeeds}, {"trace", RunTrace, TraceSeeds}};
}

}  // namespace muster
