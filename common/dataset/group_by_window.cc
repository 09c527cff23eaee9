#include "common/dataset/group_by_window.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/components.h"
#include "common/dataset/dataset.h"
#include "common/dataset/dataset_node.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

absl::Status Refuse(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("GroupByWindow: ", what));
}

std::string ToString(const std::vector<TensorType>& types) {
  return absl::StrCat("{",
                      absl::StrJoin(types, ", ",
                                    [](std::string* out, const TensorType& t) {
                                      absl::StrAppend(out, t.ToString());
                                    }),
                      "}");
}

bool Fits(const std::vector<TensorType>& types,
          const std::vector<TensorType>& expected) {
  if (types.size() != expected.size()) return false;
  for (size_t c = 0; c < types.size(); ++c) {
    if (types[c].dtype != expected[c].dtype ||
        !types[c].shape.IsCompatibleWith(expected[c].shape)) {
      return false;
    }
  }
  return true;
}

absl::Status CannotBeSent() {
  return absl::FailedPreconditionError(
      "GroupByWindow: a dataset with functions of this process cannot be sent "
      "to others");
}

// The elements of a window.
class WindowElements final : public ElementStream {
 public:
  explicit WindowElements(std::shared_ptr<const std::vector<Element>> elements)
      : elements_(std::move(elements)) {}

  absl::StatusOr<bool> Next(Element* element) override {
    if (next_ == elements_->size()) return false;
    *element = (*elements_)[next_++];
    return true;
  }

 private:
  const std::shared_ptr<const std::vector<Element>> elements_;
  size_t next_ = 0;
};

class WindowSource final : public DatasetNode {
 public:
  WindowSource(const DatasetNode& input, std::vector<Element> elements)
      : DatasetNode(input.element_types(),
                    static_cast<int64_t>(elements.size()),
                    input.component_names()),
        elements_(
            std::make_shared<const std::vector<Element>>(std::move(elements))) {
  }

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext&) const override {
    return std::make_unique<WindowElements>(elements_);
  }
  StageKind kind() const override { return StageKind::kSource; }
  absl::Status Encode(proto::Dataset*) const override { return CannotBeSent(); }

 private:
  const std::shared_ptr<const std::vector<Element>> elements_;
};

class GroupedElements final : public ElementStream {
 public:
  // Windows have the components of `input_node`.
  GroupedElements(std::unique_ptr<ElementStream> input,
                  const GroupByWindowOptions& options, NodePointer input_node,
                  std::vector<TensorType> output_types,
                  const PassContext& context)
      : input_(std::move(input)),
        options_(options),
        input_node_(std::move(input_node)),
        output_types_(std::move(output_types)),
        context_(context) {}

  absl::StatusOr<bool> Next(Element* element) override {
    while (true) {
      if (reduced_ != nullptr) {
        ASSIGN_OR_RETURN(const bool more, reduced_->Next(element));
        if (more) return true;
        reduced_.reset();
      }
      ASSIGN_OR_RETURN(const std::optional<int64_t> key, FillWindow());
      if (!key.has_value()) return false;
      RETURN_IF_ERROR(Reduce(*key));
    }
  }

 private:
  struct Window {
    int64_t size = 0;  // When it is full.
    std::vector<Element> elements;
  };

  // Returns the key of the next window to reduce; none at the end.
  absl::StatusOr<std::optional<int64_t>> FillWindow() {
    while (!is_ended_) {
      Element element;
      ASSIGN_OR_RETURN(const bool more, input_->Next(&element));
      if (!more) {
        is_ended_ = true;
        break;
      }
      ASSIGN_OR_RETURN(const int64_t key, options_.key_of(element));
      Window& window = windows_[key];
      if (window.elements.empty()) {
        ASSIGN_OR_RETURN(window.size, SizeOfWindow(key));
      }
      window.elements.push_back(std::move(element));
      if (static_cast<int64_t>(window.elements.size()) == window.size) {
        return key;
      }
    }
    if (windows_.empty()) return std::nullopt;
    return windows_.begin()->first;
  }

  absl::StatusOr<int64_t> SizeOfWindow(int64_t key) const {
    if (options_.window_size_of == nullptr) return options_.window_size;
    const int64_t size = options_.window_size_of(key);
    if (size >= 1) return size;
    return Refuse(absl::StrCat("window_size_of(", key, ") is ", size,
                               "; expected at least 1"));
  }

  absl::Status Reduce(int64_t key) {
    const auto found = windows_.find(key);
    const Dataset window(
        absl::StatusOr<NodePointer>(std::make_shared<WindowSource>(
            *input_node_, std::move(found->second.elements))));
    windows_.erase(found);
    const Dataset made = options_.reduce(key, window);
    RETURN_IF_ERROR(made.status());
    if (!Fits(made.element_types(), output_types_)) {
      return Refuse(absl::StrCat("reduce() made a dataset of ",
                                 ToString(made.element_types()), " for key ",
                                 key, "; expected ", ToString(output_types_)));
    }
    if (!names_.has_value()) names_ = made.component_names();
    if (made.component_names() != *names_) {
      return Refuse(absl::StrCat(
          "reduce() made a dataset with the components ",
          ComponentNamesToString(made.component_names(), output_types_.size()),
          " for key ", key, "; that of an earlier window has ",
          ComponentNamesToString(*names_, output_types_.size())));
    }
    ASSIGN_OR_RETURN(reduced_, made.node()->MakeElements(context_));
    return absl::OkStatus();
  }

  const std::unique_ptr<ElementStream> input_;
  const GroupByWindowOptions options_;
  const NodePointer input_node_;
  const std::vector<TensorType> output_types_;
  const PassContext context_;
  std::map<int64_t, Window> windows_;
  std::optional<std::vector<std::string>> names_;  // Of the first dataset made.
  std::unique_ptr<ElementStream> reduced_;  // Null: a window is to be filled.
  bool is_ended_ = false;
};

class GroupByWindowNode final : public DatasetNode {
 public:
  GroupByWindowNode(NodePointer input, GroupByWindowOptions options,
                    std::vector<TensorType> types)
      : DatasetNode(std::move(types), input->cardinality() == 0
                                          ? 0
                                          : Dataset::kUnknownCardinality),
        input_(std::move(input)),
        options_(std::move(options)) {}

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<ElementStream> elements,
                     input_->MakeElements(context));
    return std::make_unique<GroupedElements>(std::move(elements), options_,
                                             input_, element_types(), context);
  }

  StageKind kind() const override { return StageKind::kWindow; }
  std::vector<NodePointer> inputs() const override { return {input_}; }
  absl::StatusOr<NodePointer> WithInputs(
      std::vector<NodePointer> inputs) const override {
    return std::make_shared<GroupByWindowNode>(std::move(inputs[0]), options_,
                                               element_types());
  }
  absl::Status Encode(proto::Dataset*) const override { return CannotBeSent(); }

 private:
  const NodePointer input_;
  const GroupByWindowOptions options_;
};

absl::Status Check(const GroupByWindowOptions& options,
                   const std::vector<TensorType>& output_types) {
  if (options.key_of == nullptr) return Refuse("key_of is missing");
  if (options.reduce == nullptr) return Refuse("reduce is missing");
  if (output_types.empty()) return Refuse("output_types are missing");
  const bool has_function = options.window_size_of != nullptr;
  if (has_function && options.window_size == 0) return absl::OkStatus();
  if (!has_function && options.window_size >= 1) return absl::OkStatus();
  return Refuse(absl::StrCat(
      "expected either a window_size of at least 1 or window_size_of, got ",
      options.window_size, has_function ? " and" : " without",
      " window_size_of"));
}

}  // namespace

Dataset GroupByWindow(const Dataset& input, GroupByWindowOptions options,
                      std::vector<TensorType> output_types) {
  absl::Status status = input.status();
  if (status.ok()) status = Check(options, output_types);
  if (!status.ok()) return Dataset(absl::StatusOr<NodePointer>(status));
  return Dataset(
      absl::StatusOr<NodePointer>(std::make_shared<GroupByWindowNode>(
          input.node(), std::move(options), std::move(output_types))));
}

}  // namespace muster
