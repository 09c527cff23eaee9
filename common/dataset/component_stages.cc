#include "common/dataset/component_stages.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/components.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

// The tensors of the consumer and of the input change places, so that both
// reuse their memory.
class SelectedComponents final : public ElementStream {
 public:
  SelectedComponents(std::unique_ptr<ElementStream> input,
                     std::vector<int> indices)
      : input_(std::move(input)), indices_(std::move(indices)) {}

  absl::StatusOr<bool> Next(Element* element) override {
    ASSIGN_OR_RETURN(const bool more, input_->Next(&whole_));
    if (!more) return false;
    element->resize(indices_.size());
    for (size_t i = 0; i < indices_.size(); ++i) {
      std::swap((*element)[i], whole_[indices_[i]]);
    }
    return true;
  }

 private:
  const std::unique_ptr<ElementStream> input_;
  const std::vector<int> indices_;
  Element whole_;
};

bool IsIdentity(const std::vector<int>& indices, size_t component_count) {
  if (indices.size() != component_count) return false;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] != static_cast<int>(i)) return false;
  }
  return true;
}

std::vector<TensorType> TypesAt(const DatasetNode& input,
                                const std::vector<int>& indices) {
  std::vector<TensorType> types;
  for (const int index : indices) {
    types.push_back(input.element_types()[index]);
  }
  return types;
}

class ComponentsNode final : public DatasetNode {
 public:
  ComponentsNode(NodePointer input, std::vector<int> indices,
                 std::vector<std::string> names)
      : DatasetNode(TypesAt(*input, indices), input->cardinality(),
                    std::move(names)),
        input_(std::move(input)),
        indices_(std::move(indices)),
        is_identity_(IsIdentity(indices_, input_->element_types().size())) {}

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<ElementStream> elements,
                     input_->MakeElements(context));
    if (is_identity_) return elements;
    return std::make_unique<SelectedComponents>(std::move(elements), indices_);
  }

  absl::StatusOr<RowSelection> MakeRows(
      const PassContext& context) const override {
    ASSIGN_OR_RETURN(RowSelection selection, input_->MakeRows(context));
    if (is_identity_ || selection.table == nullptr) return selection;
    selection.table = selection.table->Select(indices_);
    if (selection.table == nullptr) return RowSelection();
    return selection;
  }

  StageKind kind() const override { return StageKind::kElements; }
  std::vector<NodePointer> inputs() const override { return {input_}; }
  absl::StatusOr<NodePointer> WithInputs(
      std::vector<NodePointer> inputs) const override {
    return MakeComponents(std::move(inputs[0]), indices_, component_names());
  }

  absl::Status Encode(proto::Dataset* encoded) const override {
    RETURN_IF_ERROR(input_->Encode(encoded));
    proto::DatasetStage::Components* const components =
        encoded->add_stages()->mutable_components();
    *components->mutable_index() = {indices_.begin(), indices_.end()};
    *components->mutable_name() = {component_names().begin(),
                                   component_names().end()};
    return absl::OkStatus();
  }

 private:
  const NodePointer input_;
  const std::vector<int> indices_;
  const bool is_identity_;
};

absl::Status Named(absl::string_view stage, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(stage, ": ", status.message()));
}

absl::StatusOr<NodePointer> Named(absl::string_view stage,
                                  absl::StatusOr<NodePointer> node) {
  if (node.ok()) return node;
  return Named(stage, node.status());
}

absl::StatusOr<int> IndexOf(const DatasetNode& input, absl::string_view name) {
  return FindComponentIn(input.component_names(), input.element_types().size(),
                         name);
}

std::vector<int> AllOf(const DatasetNode& input) {
  std::vector<int> indices(input.element_types().size());
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

absl::StatusOr<NodePointer> MakeSelected(NodePointer input,
                                         std::vector<int> indices) {
  std::vector<std::string> names;
  if (!input->component_names().empty()) {
    for (const int index : indices) {
      const bool is_one =
          index >= 0 && index < static_cast<int>(input->element_types().size());
      names.push_back(is_one ? input->component_names()[index] : "");
    }
  }
  return MakeComponents(std::move(input), std::move(indices), std::move(names));
}

absl::Status CheckIndices(const std::vector<int>& indices, size_t count) {
  if (indices.empty()) {
    return absl::InvalidArgumentError(
        "no components are left; expected at least one");
  }
  absl::flat_hash_set<int> seen;
  for (const int index : indices) {
    if (index < 0 || static_cast<size_t>(index) >= count) {
      return absl::InvalidArgumentError(
          absl::StrCat("component ", index, " of ", count, " does not exist"));
    }
    if (!seen.insert(index).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("component ", index, " is given twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckComponentNames(const std::vector<std::string>& names,
                                 size_t count) {
  if (!names.empty() && names.size() != count) {
    return absl::InvalidArgumentError(
        absl::StrCat(names.size(), " names for ", count,
                     " components; expected one for each, \"\" for a component "
                     "without a name"));
  }
  return CheckUniqueNames(names);
}

}  // namespace

absl::StatusOr<NodePointer> MakeComponents(NodePointer input,
                                           std::vector<int> indices,
                                           std::vector<std::string> names) {
  RETURN_IF_ERROR(CheckIndices(indices, input->element_types().size()));
  RETURN_IF_ERROR(CheckComponentNames(names, indices.size()));
  return std::make_shared<ComponentsNode>(std::move(input), std::move(indices),
                                          std::move(names));
}

absl::StatusOr<NodePointer> MakeWithNames(NodePointer input,
                                          std::vector<std::string> names) {
  std::vector<int> indices = AllOf(*input);
  return Named("WithNames", MakeComponents(std::move(input), std::move(indices),
                                           std::move(names)));
}

absl::StatusOr<NodePointer> MakeRename(
    NodePointer input,
    absl::Span<const std::pair<std::string, std::string>> names) {
  std::vector<std::string> renamed = input->component_names();
  for (const auto& [name, new_name] : names) {
    const absl::StatusOr<int> index = IndexOf(*input, name);
    if (!index.ok()) return Named("Rename", index.status());
    renamed[*index] = new_name;
  }
  std::vector<int> indices = AllOf(*input);
  return Named("Rename", MakeComponents(std::move(input), std::move(indices),
                                        std::move(renamed)));
}

absl::StatusOr<NodePointer> MakeSelect(NodePointer input,
                                       absl::Span<const std::string> names) {
  std::vector<int> indices;
  for (const std::string& name : names) {
    const absl::StatusOr<int> index = IndexOf(*input, name);
    if (!index.ok()) return Named("Select", index.status());
    indices.push_back(*index);
  }
  for (const int index : AllOf(*input)) {
    if (input->component_names().empty() ||
        input->component_names()[index].empty()) {
      indices.push_back(index);
    }
  }
  return Named("Select", MakeSelected(std::move(input), std::move(indices)));
}

absl::StatusOr<NodePointer> MakeDrop(NodePointer input,
                                     absl::Span<const std::string> names) {
  absl::flat_hash_set<int> dropped;
  for (const std::string& name : names) {
    const absl::StatusOr<int> index = IndexOf(*input, name);
    if (!index.ok()) return Named("Drop", index.status());
    dropped.insert(*index);
  }
  std::vector<int> indices = AllOf(*input);
  indices.erase(
      std::remove_if(indices.begin(), indices.end(),
                     [&](int index) { return dropped.contains(index); }),
      indices.end());
  return Named("Drop", MakeSelected(std::move(input), std::move(indices)));
}

absl::StatusOr<NodePointer> MakeSelectComponents(NodePointer input,
                                                 std::vector<int> indices) {
  return Named("SelectComponents",
               MakeSelected(std::move(input), std::move(indices)));
}

}  // namespace muster
