#ifndef COMMON_IO_CHECKPOINT_OBJECT_GRAPH_H_
#define COMMON_IO_CHECKPOINT_OBJECT_GRAPH_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"
#include "proto/checkpoint.pb.h"

namespace muster {

// The tensor of a checkpoint that says which object of a program every other
// tensor belongs to. With it tf.train.Checkpoint restores by the names of
// attributes, whatever variables are called:
//
//   "model", "dense", "kernel"  is  tf.train.Checkpoint(model=m) with
//                                   m.dense.kernel
inline constexpr absl::string_view kObjectGraphKey =
    "_CHECKPOINTABLE_OBJECT_GRAPH";

// From the root, one name for each attribute.
using ObjectPath = std::vector<std::string>;

// "model/dense/kernel/.ATTRIBUTES/VARIABLE_VALUE": where TensorFlow keeps the
// value of the variable at `path`.
std::string VariableKey(absl::Span<const std::string> path);

// The same for what an optimizer keeps beside a variable.
std::string SlotKey(absl::Span<const std::string> variable_path,
                    absl::Span<const std::string> optimizer_path,
                    absl::string_view slot_name);

// A second path to an object.
struct ObjectReference {
  ObjectPath path;
  ObjectPath target;
};

// Gathers which variables a checkpoint holds, and writes the graph.
class ObjectGraphBuilder {
 public:
  ObjectGraphBuilder();

  // Returns the name under which the tensor is to be written: VariableKey(),
  // which TensorFlow takes apart again. `full_name` is how people call the
  // variable.
  //   kInvalidArgument  the path is empty or has an empty name
  //   kAlreadyExists    there is a variable at this path
  absl::StatusOr<std::string> AddVariable(absl::Span<const std::string> path,
                                          absl::string_view full_name);

  // The same for what an optimizer keeps beside a variable; SlotKey().
  //   kNotFound  no variable at `variable_path`
  //   others     as AddVariable()
  absl::StatusOr<std::string> AddSlot(
      absl::Span<const std::string> variable_path,
      absl::Span<const std::string> optimizer_path, absl::string_view slot_name,
      absl::string_view full_name);

  // Makes `reference.path` lead to the object at `reference.target` too.
  //   kNotFound         there is no object at `target`
  //   kInvalidArgument  `path` is empty or has an empty name
  //   kAlreadyExists    `path` leads to another object
  absl::Status AddReference(const ObjectReference& reference);

  // The last thing that is added to a checkpoint.
  absl::Status WriteTo(TensorBundleWriter* writer) const;

 private:
  absl::StatusOr<int> FindOrAddNode(absl::Span<const std::string> path);
  void AddChild(int node, const std::string& name, int child);
  void SetValue(int node, absl::string_view key, absl::string_view full_name);

  proto::TrackableObjectGraph graph_;
  std::map<std::pair<int, std::string>, int> children_;
};

// What a checkpoint says about its objects. Thread-compatible.
class ObjectGraph {
 public:
  //   kNotFound  the checkpoint has no object graph
  //   kDataLoss  it is damaged, or names objects that are not there
  //   others     as TensorBundleReader::Read()
  static absl::StatusOr<ObjectGraph> ReadFrom(const TensorBundleReader& reader);

  // The name of the tensor that holds the variable at `path`.
  //   kNotFound  no such object, or it is no variable; names the first step
  //              that leads nowhere
  absl::StatusOr<std::string> FindVariable(
      absl::Span<const std::string> path) const;
  absl::StatusOr<std::string> FindSlot(
      absl::Span<const std::string> variable_path,
      absl::Span<const std::string> optimizer_path,
      absl::string_view slot_name) const;

  struct Variable {
    ObjectPath path;  // The shortest that leads to it.
    std::string key;
    std::string full_name;
  };
  // All that a path leads to; not slots.
  std::vector<Variable> Variables() const;

 private:
  explicit ObjectGraph(proto::TrackableObjectGraph graph)
      : graph_(std::move(graph)) {}

  absl::StatusOr<int> FindNode(absl::Span<const std::string> path) const;

  proto::TrackableObjectGraph graph_;
};

}  // namespace muster

#endif  // COMMON_IO_CHECKPOINT_OBJECT_GRAPH_H_
