#include "common/compute/graph/graph.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

std::string OutputName(NodeOutput output) {
  return output.output == 0
             ? absl::StrCat("%", output.node)
             : absl::StrCat("%", output.node, ":", output.output);
}

constexpr auto kFormatOutput = [](std::string* out, NodeOutput output) {
  out->append(OutputName(output));
};

std::string NodeToString(const Node& node, int index) {
  std::string line =
      absl::StrCat("%", index, " = ", node.op, "(",
                   absl::StrJoin(node.inputs, ", ", kFormatOutput), ")");
  if (!node.attributes.values().empty()) {
    absl::StrAppend(&line, " {",
                    absl::StrJoin(node.attributes.values(), ", ",
                                  [](std::string* out, const auto& attribute) {
                                    absl::StrAppend(
                                        out, attribute.first, "=",
                                        AttributeToString(attribute.second));
                                  }),
                    "}");
  }
  absl::StrAppend(&line, " : ",
                  absl::StrJoin(node.outputs, ", ",
                                [](std::string* out, const TensorType& type) {
                                  out->append(type.ToString());
                                }));
  if (!node.control_inputs.empty()) {
    absl::StrAppend(&line, " after ",
                    absl::StrJoin(node.control_inputs, ", ",
                                  [](std::string* out, int control) {
                                    absl::StrAppend(out, "%", control);
                                  }));
  }
  return absl::StrCat(line, "  # ", node.name, "\n");
}

void AppendGraph(const Graph& graph, const std::string& indent,
                 std::string* text) {
  absl::StrAppend(text, indent, "graph ", graph.name, "\n");
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    absl::StrAppend(text, indent, "  ",
                    NodeToString(node, static_cast<int>(i)));
    for (const auto& subgraph : node.subgraphs) {
      AppendGraph(*subgraph, indent + "    ", text);
    }
  }
  absl::StrAppend(text, indent, "  return ",
                  absl::StrJoin(graph.results, ", ", kFormatOutput), "\n");
}

}  // namespace

std::string Graph::ToString() const {
  std::string text;
  AppendGraph(*this, "", &text);
  return text;
}

}  // namespace muster
