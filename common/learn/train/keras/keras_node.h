#ifndef COMMON_LEARN_TRAIN_KERAS_KERAS_NODE_H_
#define COMMON_LEARN_TRAIN_KERAS_KERAS_NODE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/learn/nn/structure.h"
#include "common/learn/train/keras/keras_object.h"

// The calls of layers in the config of a functional model. `place` is where
// they stand, for errors.
namespace muster {

absl::Status BadKerasStructure(absl::string_view place, absl::string_view what);

// {layer, call of the layer, output of the call}.
struct KerasHistory {
  std::string layer;
  size_t call = 0;
  size_t output = 0;
};

// A call of a layer, as an entry of inbound_nodes describes it.
struct KerasNode {
  std::vector<KerasHistory> inputs;
  std::optional<bool> training;
  bool is_reversed = false;
  // Arguments that are neither inputs nor null: {"use_causal_mask": true}.
  KerasJson arguments = KerasJson::object();
};

// Outputs of layers, and how they are nested.
struct KerasHistories {
  std::vector<KerasHistory> leaves;  // In the order of the structure.
  Structure structure;
};

// Parses one history, or lists and dictionaries of some, at any depth.
//   kInvalidArgument  it is none of these, or one that is empty
absl::StatusOr<KerasHistories> KerasHistoriesFrom(absl::string_view place,
                                                  const KerasJson& json);

// Returns `leaves`, a list, nested in lists and dictionaries.
KerasJson NestedJson(const Structure& structure, const KerasJson& leaves);

// Parses an entry of inbound_nodes, of Keras 3 or 2.
//   kInvalidArgument  it has no inputs, or one that Muster's layers do not take
absl::StatusOr<KerasNode> KerasNodeFrom(absl::string_view place,
                                        const KerasJson& json);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_KERAS_KERAS_NODE_H_
