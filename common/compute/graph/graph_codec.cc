#include "common/compute/graph/graph_codec.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/graph/graph_verifier.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/tensor_codec.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "proto/graph.pb.h"
#include "proto/tensor.pb.h"

namespace muster {
namespace {

void EncodeOutput(NodeOutput output, proto::NodeInput* encoded) {
  encoded->set_node(output.node);
  encoded->set_output(output.output);
}

NodeOutput DecodeOutput(const proto::NodeInput& encoded) {
  return {encoded.node(), encoded.output()};
}

absl::StatusOr<Graph> DecodeNodes(const proto::Graph& encoded, int depth);

absl::StatusOr<Node> DecodeNode(const proto::Node& encoded, int depth) {
  Node node = {.op = encoded.op(), .name = encoded.name()};
  for (const proto::NodeInput& input : encoded.inputs()) {
    node.inputs.push_back(DecodeOutput(input));
  }
  node.control_inputs.assign(encoded.control_inputs().begin(),
                             encoded.control_inputs().end());
  for (const auto& [name, value] : encoded.attributes()) {
    auto attribute = DecodeAttribute(value);
    if (!attribute.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("graph node \"", node.name, "\", attribute \"", name,
                       "\": ", attribute.status().message()));
    }
    node.attributes.Set(name, *std::move(attribute));
  }
  for (const proto::TensorType& type : encoded.outputs()) {
    ASSIGN_OR_RETURN(TensorType decoded, DecodeType(type, true));
    node.outputs.push_back(std::move(decoded));
  }
  for (const proto::Graph& subgraph : encoded.subgraphs()) {
    ASSIGN_OR_RETURN(Graph decoded, DecodeNodes(subgraph, depth + 1));
    node.subgraphs.push_back(std::make_shared<const Graph>(std::move(decoded)));
  }
  return node;
}

absl::StatusOr<Graph> DecodeNodes(const proto::Graph& encoded, int depth) {
  if (encoded.nodes_size() > kNodeCountMax || depth > kSubgraphDepthMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a graph of ", encoded.nodes_size(), " nodes at depth ", depth,
        "; the limits are ", kNodeCountMax, " and ", kSubgraphDepthMax));
  }
  Graph graph;
  graph.name = encoded.name();
  graph.nodes.reserve(encoded.nodes_size());
  for (const proto::Node& node : encoded.nodes()) {
    ASSIGN_OR_RETURN(Node decoded, DecodeNode(node, depth));
    graph.nodes.push_back(std::move(decoded));
  }
  graph.parameters.assign(encoded.parameters().begin(),
                          encoded.parameters().end());
  for (const proto::NodeInput& result : encoded.results()) {
    graph.results.push_back(DecodeOutput(result));
  }
  return graph;
}

}  // namespace

proto::Graph EncodeGraph(const Graph& graph) {
  proto::Graph encoded;
  encoded.set_name(graph.name);
  for (const Node& node : graph.nodes) {
    proto::Node* out = encoded.add_nodes();
    out->set_op(node.op);
    out->set_name(node.name);
    for (const NodeOutput& input : node.inputs) {
      EncodeOutput(input, out->add_inputs());
    }
    for (const int control : node.control_inputs) {
      out->add_control_inputs(control);
    }
    for (const auto& [name, attribute] : node.attributes.values()) {
      (*out->mutable_attributes())[name] = EncodeAttribute(attribute);
    }
    for (const TensorType& type : node.outputs) {
      *out->add_outputs() = EncodeType(type);
    }
    for (const auto& subgraph : node.subgraphs) {
      *out->add_subgraphs() = EncodeGraph(*subgraph);
    }
  }
  for (const int parameter : graph.parameters) {
    encoded.add_parameters(parameter);
  }
  for (const NodeOutput& result : graph.results) {
    EncodeOutput(result, encoded.add_results());
  }
  return encoded;
}

std::string SerializeGraph(const Graph& graph) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    // Otherwise the order of attributes depends on the process.
    coded.SetSerializationDeterministic(true);
    EncodeGraph(graph).SerializeToCodedStream(&coded);
  }
  return bytes;
}

absl::StatusOr<Graph> DecodeGraph(const proto::Graph& encoded,
                                  const OpRegistry& registry) {
  ASSIGN_OR_RETURN(Graph graph, DecodeNodes(encoded, 0));
  RETURN_IF_ERROR(VerifyGraph(graph, registry));
  return graph;
}

}  // namespace muster
