#ifndef COMMON_COMPUTE_GRAPH_GRAPH_CODEC_H_
#define COMMON_COMPUTE_GRAPH_GRAPH_CODEC_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"

namespace muster {

namespace proto {
class Graph;
}  // namespace proto

proto::Graph EncodeGraph(const Graph& graph);

// Returns the bytes of EncodeGraph(). Equal graphs have equal bytes in all
// processes of one version of Muster, so that fingerprints can be compared.
std::string SerializeGraph(const Graph& graph);

// Decodes and verifies a graph.
//   kInvalidArgument    as VerifyGraph(), or an attribute or type is invalid
//   kResourceExhausted  as VerifyGraph()
absl::StatusOr<Graph> DecodeGraph(const proto::Graph& encoded,
                                  const OpRegistry& registry);

}  // namespace muster

#endif  // COMMON_COMPUTE_GRAPH_GRAPH_CODEC_H_
