#ifndef COMMON_IO_CHECKPOINT_OBJECT_GRAPH_H_
#define COMMON_IO_CHECKPOINT_OBJECT_GRAPH_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"

namespace muster {

namespace proto {
class TrackableObjectGraph;
}  // namespace proto

// The key of the tensor with the object graph, which maps the tensors of a
// checkpoint to the objects of a program. With it tf.train.Checkpoint restores
// by attribute names, independent of the names of variables:
//
//   "model", "dense", "kernel"  is  tf.train.Checkpoint(model=m) with
//                                   m.dense.kernel
inline constexpr absl::string_view kObjectGraphKey =
    "_CHECKPOINTABLE_OBJECT_GRAPH";

// The attribute names from the root to an object.
using ObjectPath = std::vector<std::string>;

// Returns "model/dense/kernel/.ATTRIBUTES/VARIABLE_VALUE", TensorFlow's key for
// the value of the variable at `path`.
std::string VariableKey(absl::Span<const std::string> path);

// Returns TensorFlow's key for an optimizer slot of a variable.
std::string SlotKey(absl::Span<const std::string> variable_path,
                    absl::Span<const std::string> optimizer_path,
                    absl::string_view slot_name);

// An additional path to an object.
struct ObjectReference {
  ObjectPath path;
  ObjectPath target;
  // If not empty, the object is this slot of the variable at `target`, kept by
  // the optimizer at `optimizer`.
  std::string slot = "";
  ObjectPath optimizer = {};
};

// Collects the variables of a checkpoint and writes the object graph.
class ObjectGraphBuilder {
 public:
  ObjectGraphBuilder();
  ~ObjectGraphBuilder();

  // Adds a variable. Returns the name for its tensor: VariableKey(), which
  // TensorFlow parses. `full_name` is the variable's display name.
  //   kInvalidArgument  the path is empty or has an empty name
  //   kAlreadyExists    there is a variable at this path
  absl::StatusOr<std::string> AddVariable(absl::Span<const std::string> path,
                                          absl::string_view full_name);

  // Adds an optimizer slot. Returns SlotKey().
  //   kNotFound  there is no variable at `variable_path`
  //   others     as AddVariable()
  absl::StatusOr<std::string> AddSlot(
      absl::Span<const std::string> variable_path,
      absl::Span<const std::string> optimizer_path, absl::string_view slot_name,
      absl::string_view full_name);

  // Adds `reference.path` as another path to the object at `reference.target`,
  // or to its slot.
  //   kNotFound         there is no object at `target`, or no such slot
  //   kInvalidArgument  `path` is empty or has an empty name
  //   kAlreadyExists    `path` leads to another object
  absl::Status AddReference(const ObjectReference& reference);

  // Adds the object graph to a checkpoint. Call after all tensors have been
  // added.
  absl::Status WriteTo(TensorBundleWriter* writer) const;

 private:
  absl::StatusOr<int> FindOrAddNode(absl::Span<const std::string> path);
  absl::StatusOr<int> FindTarget(const ObjectReference& reference) const;
  void AddChild(int node, const std::string& name, int child);
  void SetValue(int node, absl::string_view key, absl::string_view full_name);

  const std::unique_ptr<proto::TrackableObjectGraph> graph_;
  std::map<std::pair<int, std::string>, int> children_;
  std::map<std::string, int> slots_;  // By SlotKey().
};

// The object graph of a checkpoint. Thread-compatible.
class ObjectGraph {
 public:
  // Reads the object graph.
  //   kNotFound  the checkpoint has no object graph
  //   kDataLoss  the graph is damaged or refers to objects that do not exist
  //   others     as TensorBundleReader::Read()
  static absl::StatusOr<ObjectGraph> ReadFrom(const TensorBundleReader& reader);

  // Returns the name of the tensor of the variable at `path`.
  //   kNotFound  no such object, or it is not a variable; the message names the
  //              first step that does not exist
  absl::StatusOr<std::string> FindVariable(
      absl::Span<const std::string> path) const;
  absl::StatusOr<std::string> FindSlot(
      absl::Span<const std::string> variable_path,
      absl::Span<const std::string> optimizer_path,
      absl::string_view slot_name) const;

  struct Variable {
    ObjectPath path;  // The shortest path to it.
    std::string key;
    std::string full_name;
  };
  // Returns all variables that are reachable by a path; no slots.
  std::vector<Variable> Variables() const;

 private:
  explicit ObjectGraph(std::shared_ptr<const proto::TrackableObjectGraph> graph)
      : graph_(std::move(graph)) {}

  absl::StatusOr<int> FindNode(absl::Span<const std::string> path) const;

  std::shared_ptr<const proto::TrackableObjectGraph> graph_;  // Never null.
};

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_OBJECT_GRAPH_H_
