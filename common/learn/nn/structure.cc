#include "common/learn/nn/structure.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace muster {

Structure Structure::List(std::vector<Structure> children) {
  Structure list;
  list.kind_ = Kind::kList;
  list.children_ = std::move(children);
  return list;
}

Structure Structure::Flat(size_t count) {
  if (count == 1) return Structure();
  return List(std::vector<Structure>(count));
}

Structure Structure::Dictionary(std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.first < b.first; });
  Structure dictionary;
  dictionary.kind_ = Kind::kDictionary;
  for (Entry& entry : entries) {
    dictionary.keys_.push_back(std::move(entry.first));
    dictionary.children_.push_back(std::move(entry.second));
  }
  return dictionary;
}

size_t Structure::leaf_count() const {
  if (is_leaf()) return 1;
  size_t count = 0;
  for (const Structure& child : children_) count += child.leaf_count();
  return count;
}

std::vector<std::string> Structure::LeafNames(
    absl::Span<const std::string> own_names) const {
  std::vector<std::string> names;
  AddLeafNames("", "", own_names, &names);
  return names;
}

void Structure::AddLeafNames(const std::string& parent, const std::string& step,
                             absl::Span<const std::string> own_names,
                             std::vector<std::string>* names) const {
  const auto joined = [&parent](const std::string& name) {
    return parent.empty() ? name : absl::StrCat(parent, "/", name);
  };
  if (is_leaf()) {
    names->push_back(joined(step.empty() ? own_names[names->size()] : step));
    return;
  }
  for (size_t i = 0; i < children_.size(); ++i) {
    const Structure& child = children_[i];
    const std::string path = parent.empty() && step.empty() ? "" : joined(step);
    if (is_dictionary()) {
      child.AddLeafNames(path, keys_[i], own_names, names);
    } else if (child.is_leaf()) {
      child.AddLeafNames(path, "", own_names, names);
    } else {
      child.AddLeafNames(path, absl::StrCat(i), own_names, names);
    }
  }
}

}  // namespace muster
