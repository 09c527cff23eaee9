#include "common/io/checkpoint/object_graph.h"

#include <deque>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "proto/checkpoint.pb.h"

namespace muster {
namespace {

using Node = proto::TrackableObjectGraph::TrackableObject;

constexpr absl::string_view kVariableValue = "VARIABLE_VALUE";

// Escapes "/" and ".", because "/" separates names and TensorFlow's own path
// components begin with a dot.
std::string EscapeName(absl::string_view name) {
  return absl::StrReplaceAll(name, {{".", ".."}, {"/", ".S"}});
}

std::string JoinNames(absl::Span<const std::string> path) {
  return absl::StrJoin(path, "/", [](std::string* out, const auto& name) {
    out->append(EscapeName(name));
  });
}

std::string WithAttribute(absl::string_view path) {
  return absl::StrCat(path, "/.ATTRIBUTES/", kVariableValue);
}

// Returns null if the object is not a variable.
const Node::SerializedTensor* ValueOf(const Node& node) {
  for (const Node::SerializedTensor& attribute : node.attributes()) {
    if (attribute.name() == kVariableValue) return &attribute;
  }
  return nullptr;
}

absl::StatusOr<std::string> KeyOf(const Node& node, absl::string_view what) {
  const Node::SerializedTensor* const value = ValueOf(node);
  if (value != nullptr) return value->checkpoint_key();
  return absl::NotFoundError(absl::StrCat(what, " is not a variable"));
}

absl::Status CheckGraph(absl::string_view prefix,
                        const proto::TrackableObjectGraph& graph) {
  const auto is_node = [&](int id) {
    return id >= 0 && id < graph.nodes_size();
  };
  bool is_right = graph.nodes_size() > 0;
  for (const Node& node : graph.nodes()) {
    for (const auto& child : node.children()) {
      is_right = is_right && is_node(child.node_id());
    }
    for (const auto& slot : node.slot_variables()) {
      is_right = is_right && is_node(slot.original_variable_node_id()) &&
                 is_node(slot.slot_variable_node_id());
    }
  }
  if (is_right) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      prefix, ": its object graph refers to objects that do not exist"));
}

}  // namespace

std::string VariableKey(absl::Span<const std::string> path) {
  return WithAttribute(JoinNames(path));
}

std::string SlotKey(absl::Span<const std::string> variable_path,
                    absl::Span<const std::string> optimizer_path,
                    absl::string_view slot_name) {
  return WithAttribute(
      absl::StrCat(JoinNames(variable_path), "/.OPTIMIZER_SLOT/",
                   JoinNames(optimizer_path), "/", EscapeName(slot_name)));
}

ObjectGraphBuilder::ObjectGraphBuilder()
    : graph_(std::make_unique<proto::TrackableObjectGraph>()) {
  graph_->add_nodes();
}

ObjectGraphBuilder::~ObjectGraphBuilder() = default;

absl::StatusOr<int> ObjectGraphBuilder::FindOrAddNode(
    absl::Span<const std::string> path) {
  int node = 0;
  for (const std::string& name : path) {
    if (name.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "object path ", absl::StrJoin(path, "/"), " has an empty name"));
    }
    const auto child = children_.find({node, name});
    if (child != children_.end()) {
      node = child->second;
      continue;
    }
    const int added = graph_->nodes_size();
    graph_->add_nodes();
    AddChild(node, name, added);
    node = added;
  }
  return node;
}

void ObjectGraphBuilder::AddChild(int node, const std::string& name,
                                  int child) {
  children_[{node, name}] = child;
  auto* const reference = graph_->mutable_nodes(node)->add_children();
  reference->set_node_id(child);
  reference->set_local_name(name);
}

void ObjectGraphBuilder::SetValue(int node, absl::string_view key,
                                  absl::string_view full_name) {
  auto* const value = graph_->mutable_nodes(node)->add_attributes();
  value->set_name(std::string(kVariableValue));
  value->set_checkpoint_key(std::string(key));
  value->set_full_name(std::string(full_name));
}

absl::StatusOr<std::string> ObjectGraphBuilder::AddVariable(
    absl::Span<const std::string> path, absl::string_view full_name) {
  if (path.empty()) {
    return absl::InvalidArgumentError("the root cannot be a variable");
  }
  ASSIGN_OR_RETURN(const int node, FindOrAddNode(path));
  if (ValueOf(graph_->nodes(node)) != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat(
        "there is already a variable at ", absl::StrJoin(path, "/")));
  }
  std::string key = VariableKey(path);
  SetValue(node, key, full_name);
  return key;
}

absl::StatusOr<std::string> ObjectGraphBuilder::AddSlot(
    absl::Span<const std::string> variable_path,
    absl::Span<const std::string> optimizer_path, absl::string_view slot_name,
    absl::string_view full_name) {
  ASSIGN_OR_RETURN(const int variable, FindOrAddNode(variable_path));
  if (ValueOf(graph_->nodes(variable)) == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no variable at ",
                                            absl::StrJoin(variable_path, "/")));
  }
  ASSIGN_OR_RETURN(const int optimizer, FindOrAddNode(optimizer_path));
  for (const auto& slot : graph_->nodes(optimizer).slot_variables()) {
    if (slot.original_variable_node_id() == variable &&
        slot.slot_name() == slot_name) {
      return absl::AlreadyExistsError(
          absl::StrCat(absl::StrJoin(variable_path, "/"),
                       " already has a slot ", slot_name));
    }
  }
  const int node = graph_->nodes_size();
  graph_->add_nodes();
  std::string key = SlotKey(variable_path, optimizer_path, slot_name);
  SetValue(node, key, full_name);
  slots_[key] = node;
  auto* const slot = graph_->mutable_nodes(optimizer)->add_slot_variables();
  slot->set_original_variable_node_id(variable);
  slot->set_slot_name(std::string(slot_name));
  slot->set_slot_variable_node_id(node);
  return key;
}

absl::StatusOr<int> ObjectGraphBuilder::FindTarget(
    const ObjectReference& reference) const {
  if (!reference.slot.empty()) {
    const auto slot = slots_.find(
        SlotKey(reference.target, reference.optimizer, reference.slot));
    if (slot != slots_.end()) return slot->second;
    return absl::NotFoundError(absl::StrCat(
        absl::StrJoin(reference.target, "/"), " has no slot ", reference.slot));
  }
  int target = 0;
  for (const std::string& name : reference.target) {
    const auto child = children_.find({target, name});
    if (child == children_.end()) {
      return absl::NotFoundError(absl::StrCat(
          "there is no object at ", absl::StrJoin(reference.target, "/")));
    }
    target = child->second;
  }
  return target;
}

absl::Status ObjectGraphBuilder::AddReference(
    const ObjectReference& reference) {
  const ObjectPath& path = reference.path;
  if (path.empty() || path.back().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "object path ", absl::StrJoin(path, "/"), " has an empty name"));
  }
  ASSIGN_OR_RETURN(const int target, FindTarget(reference));
  ASSIGN_OR_RETURN(
      const int owner,
      FindOrAddNode(absl::MakeConstSpan(path).first(path.size() - 1)));
  const auto present = children_.find({owner, path.back()});
  if (present == children_.end()) {
    AddChild(owner, path.back(), target);
  } else if (present->second != target) {
    return absl::AlreadyExistsError(
        absl::StrCat("there is another object at ", absl::StrJoin(path, "/")));
  }
  return absl::OkStatus();
}

absl::Status ObjectGraphBuilder::WriteTo(TensorBundleWriter* writer) const {
  return writer->Add(kObjectGraphKey,
                     Tensor::Scalar<std::string>(graph_->SerializeAsString()));
}

absl::StatusOr<ObjectGraph> ObjectGraph::ReadFrom(
    const TensorBundleReader& reader) {
  ASSIGN_OR_RETURN(const Tensor tensor, reader.Read(kObjectGraphKey));
  proto::TrackableObjectGraph graph;
  if (tensor.dtype() != DType::kString || tensor.element_count() != 1 ||
      !graph.ParseFromString(tensor.scalar<std::string>())) {
    return absl::DataLossError(
        absl::StrCat(reader.prefix(), ": its object graph cannot be parsed"));
  }
  RETURN_IF_ERROR(CheckGraph(reader.prefix(), graph));
  return ObjectGraph(
      std::make_shared<const proto::TrackableObjectGraph>(std::move(graph)));
}

absl::StatusOr<int> ObjectGraph::FindNode(
    absl::Span<const std::string> path) const {
  int node = 0;
  for (size_t step = 0; step < path.size(); ++step) {
    int next = -1;
    for (const auto& child : graph_->nodes(node).children()) {
      if (child.local_name() == path[step]) next = child.node_id();
    }
    if (next < 0) {
      return absl::NotFoundError(absl::StrCat(
          "the checkpoint has no object ", absl::StrJoin(path, "/"), ": ",
          step == 0 ? "its root" : absl::StrJoin(path.subspan(0, step), "/"),
          " has no ", path[step]));
    }
    node = next;
  }
  return node;
}

absl::StatusOr<std::string> ObjectGraph::FindVariable(
    absl::Span<const std::string> path) const {
  ASSIGN_OR_RETURN(const int node, FindNode(path));
  return KeyOf(graph_->nodes(node), absl::StrJoin(path, "/"));
}

absl::StatusOr<std::string> ObjectGraph::FindSlot(
    absl::Span<const std::string> variable_path,
    absl::Span<const std::string> optimizer_path,
    absl::string_view slot_name) const {
  ASSIGN_OR_RETURN(const int variable, FindNode(variable_path));
  ASSIGN_OR_RETURN(const int optimizer, FindNode(optimizer_path));
  for (const auto& slot : graph_->nodes(optimizer).slot_variables()) {
    if (slot.original_variable_node_id() == variable &&
        slot.slot_name() == slot_name) {
      return KeyOf(graph_->nodes(slot.slot_variable_node_id()), slot_name);
    }
  }
  return absl::NotFoundError(absl::StrCat(absl::StrJoin(optimizer_path, "/"),
                                          " has no slot ", slot_name, " of ",
                                          absl::StrJoin(variable_path, "/")));
}

std::vector<ObjectGraph::Variable> ObjectGraph::Variables() const {
  // References may form cycles.
  std::vector<bool> is_seen(graph_->nodes_size(), false);
  std::deque<std::pair<int, ObjectPath>> to_visit = {{0, {}}};
  is_seen[0] = true;
  std::vector<Variable> variables;
  for (; !to_visit.empty(); to_visit.pop_front()) {
    const auto& [id, path] = to_visit.front();
    const Node& node = graph_->nodes(id);
    if (const auto* const value = ValueOf(node)) {
      variables.push_back({.path = path,
                           .key = value->checkpoint_key(),
                           .full_name = value->full_name()});
    }
    for (const auto& child : node.children()) {
      if (is_seen[child.node_id()]) continue;
      is_seen[child.node_id()] = true;
      ObjectPath child_path = path;
      child_path.push_back(child.local_name());
      to_visit.emplace_back(child.node_id(), std::move(child_path));
    }
  }
  return variables;
}

}  // namespace muster
