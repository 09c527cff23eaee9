#ifndef COMMON_LEARN_NN_STRUCTURE_H_
#define COMMON_LEARN_NN_STRUCTURE_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace muster {

// How the inputs or the outputs of a model are nested in lists and
// dictionaries: {"up": a, "down": [b, c]}. Their order is that of
// keras.tree.flatten(), in which the keys of a dictionary are ascending.
class Structure {
 public:
  // A key of a dictionary, and what it has.
  using Entry = std::pair<std::string, Structure>;

  // One input or output.
  Structure() = default;
  static Structure List(std::vector<Structure> children);
  // A list of `count` inputs or outputs; of 1, it without a list.
  static Structure Flat(size_t count);
  // `entries` in any order, with different keys.
  static Structure Dictionary(std::vector<Entry> entries);

  bool is_leaf() const { return kind_ == Kind::kLeaf; }
  bool is_dictionary() const { return kind_ == Kind::kDictionary; }
  // Of a list or a dictionary, in their order.
  const std::vector<Structure>& children() const { return children_; }
  // Of the children of a dictionary.
  const std::vector<std::string>& keys() const { return keys_; }

  size_t leaf_count() const;

  // Returns the names by which Keras' logs call the leaves: the keys that lead
  // to a leaf, joined by "/", in which `own_names`, one for each leaf, stands
  // for the place in a list: "up", "down/b", "down/c".
  std::vector<std::string> LeafNames(
      absl::Span<const std::string> own_names) const;

 private:
  enum class Kind { kLeaf, kList, kDictionary };

  void AddLeafNames(const std::string& parent, const std::string& step,
                    absl::Span<const std::string> own_names,
                    std::vector<std::string>* names) const;

  Kind kind_ = Kind::kLeaf;
  std::vector<Structure> children_;
  std::vector<std::string> keys_;
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_STRUCTURE_H_
