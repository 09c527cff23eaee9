#include "common/dataset/dataset_node.h"

#include <algorithm>

#include "absl/status/status.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

class CountingStream final : public RowStream {
 public:
  explicit CountingStream(int64_t count) : count_(count) {}

  absl::StatusOr<bool> Next(int64_t* row) override {
    if (next_ == count_) return false;
    *row = next_++;
    return true;
  }

 private:
  const int64_t count_;
  int64_t next_ = 0;
};

class SelectedElements final : public ElementStream {
 public:
  explicit SelectedElements(RowSelection selection)
      : selection_(std::move(selection)) {}

  absl::StatusOr<bool> Next(Element* element) override {
    int64_t row = 0;
    ASSIGN_OR_RETURN(const bool more, selection_.rows->Next(&row));
    if (!more) return false;
    element->resize(selection_.table->component_count());
    RETURN_IF_ERROR(selection_.table->Get(row, absl::MakeSpan(*element)));
    return true;
  }

 private:
  const RowSelection selection_;
};

// Names that are all "" are none, so that each definition has one form.
bool HasNames(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return !name.empty(); });
}

}  // namespace

std::unique_ptr<ElementStream> ElementsOf(RowSelection selection) {
  return std::make_unique<SelectedElements>(std::move(selection));
}

RowSelection WholeTable(std::shared_ptr<const RowTable> table) {
  RowSelection selection;
  selection.rows = std::make_unique<CountingStream>(table->row_count());
  selection.table = std::move(table);
  selection.is_whole_table = true;
  return selection;
}

DatasetNode::DatasetNode(std::vector<TensorType> element_types,
                         int64_t cardinality,
                         std::vector<std::string> component_names)
    : element_types_(std::move(element_types)),
      component_names_(HasNames(component_names) ? std::move(component_names)
                                                 : std::vector<std::string>()),
      cardinality_(cardinality) {
  MUSTER_CHECK(component_names_.empty() ||
               component_names_.size() == element_types_.size());
}

absl::StatusOr<NodePointer> DatasetNode::WithInputs(
    std::vector<NodePointer>) const {
  return absl::InternalError("a stage without inputs was given inputs");
}

absl::StatusOr<NodePointer> DatasetNode::WithFiles(
    absl::Span<const int>) const {
  return absl::InternalError("a stage that reads no files was given files");
}

absl::StatusOr<NodePointer> DatasetNode::FirstMade() const { return nullptr; }

absl::StatusOr<std::unique_ptr<ElementStream>> TableNode::MakeElements(
    const PassContext& context) const {
  ASSIGN_OR_RETURN(RowSelection selection, MakeRows(context));
  return ElementsOf(std::move(selection));
}

absl::StatusOr<RowSelection> TableNode::MakeRows(const PassContext&) const {
  ASSIGN_OR_RETURN(std::shared_ptr<const RowTable> table, Table());
  return WholeTable(std::move(table));
}

}  // namespace muster
