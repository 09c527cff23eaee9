#include "common/dataset/combine_stages.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/shape.h"
#include "common/dataset/components.h"
#include "common/dataset/interleaved_stream.h"
#include "common/dataset/row_tables.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

absl::Status EncodeAll(const std::vector<NodePointer>& inputs,
                       proto::Dataset* encoded) {
  for (const NodePointer& input : inputs) {
    RETURN_IF_ERROR(input->Encode(encoded));
  }
  return absl::OkStatus();
}

std::string TypesToString(const std::vector<TensorType>& types) {
  return absl::StrCat(
      "{",
      absl::StrJoin(types, ", ",
                    [](std::string* out, const TensorType& type) {
                      absl::StrAppend(out, type.ToString());
                    }),
      "}");
}

// The names of all components, "" for those without.
std::vector<std::string> NamesOf(const std::vector<NodePointer>& inputs) {
  std::vector<std::string> names;
  for (const NodePointer& input : inputs) {
    const std::vector<std::string>& added = input->component_names();
    names.insert(names.end(), added.begin(), added.end());
    if (added.empty()) {
      names.resize(names.size() + input->element_types().size());
    }
  }
  return names;
}

class ZippedElements final : public ElementStream {
 public:
  explicit ZippedElements(std::vector<std::unique_ptr<ElementStream>> inputs)
      : inputs_(std::move(inputs)), parts_(inputs_.size()) {}

  absl::StatusOr<bool> Next(Element* element) override {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      ASSIGN_OR_RETURN(const bool more, inputs_[i]->Next(&parts_[i]));
      if (!more) return false;
    }
    element->clear();
    for (Element& part : parts_) {
      element->insert(element->end(), std::make_move_iterator(part.begin()),
                      std::make_move_iterator(part.end()));
      part.clear();
    }
    return true;
  }

 private:
  const std::vector<std::unique_ptr<ElementStream>> inputs_;
  std::vector<Element> parts_;
};

class ZipNode final : public DatasetNode {
 public:
  explicit ZipNode(std::vector<NodePointer> inputs)
      : DatasetNode(TypesOf(inputs), CardinalityOf(inputs), NamesOf(inputs)),
        inputs_(std::move(inputs)) {}

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const override {
    std::vector<std::unique_ptr<ElementStream>> streams;
    for (const NodePointer& input : inputs_) {
      ASSIGN_OR_RETURN(streams.emplace_back(), input->MakeElements(context));
    }
    return std::make_unique<ZippedElements>(std::move(streams));
  }

  // Rows can be combined by number only if no stage has changed their order.
  absl::StatusOr<RowSelection> MakeRows(
      const PassContext& context) const override {
    std::vector<std::shared_ptr<const RowTable>> tables;
    for (const NodePointer& input : inputs_) {
      ASSIGN_OR_RETURN(RowSelection selection, input->MakeRows(context));
      if (!selection.is_whole_table) return RowSelection();
      tables.push_back(std::move(selection.table));
    }
    return WholeTable(std::make_shared<ZippedTable>(std::move(tables)));
  }

  StageKind kind() const override { return StageKind::kZip; }
  std::vector<NodePointer> inputs() const override { return inputs_; }
  absl::StatusOr<NodePointer> WithInputs(
      std::vector<NodePointer> inputs) const override {
    return MakeZip(std::move(inputs));
  }

  absl::Status Encode(proto::Dataset* encoded) const override {
    RETURN_IF_ERROR(EncodeAll(inputs_, encoded));
    encoded->add_stages()->mutable_zip()->set_input_count(
        static_cast<int>(inputs_.size()));
    return absl::OkStatus();
  }

 private:
  static std::vector<TensorType> TypesOf(
      const std::vector<NodePointer>& inputs) {
    std::vector<TensorType> types;
    for (const NodePointer& input : inputs) {
      types.insert(types.end(), input->element_types().begin(),
                   input->element_types().end());
    }
    return types;
  }
  static int64_t CardinalityOf(const std::vector<NodePointer>& inputs) {
    int64_t shortest = Dataset::kInfinite;
    for (const NodePointer& input : inputs) {
      if (input->cardinality() == 0) return 0;
      if (input->cardinality() == Dataset::kInfinite ||
          shortest == Dataset::kUnknownCardinality) {
        continue;
      }
      shortest = input->cardinality() == Dataset::kUnknownCardinality
                     ? Dataset::kUnknownCardinality
                 : shortest == Dataset::kInfinite
                     ? input->cardinality()
                     : std::min(shortest, input->cardinality());
    }
    return shortest;
  }

  const std::vector<NodePointer> inputs_;
};

class ConcatenatedElements final : public ElementStream {
 public:
  ConcatenatedElements(std::vector<NodePointer> inputs, PassContext context)
      : inputs_(std::move(inputs)), context_(context) {}

  absl::StatusOr<bool> Next(Element* element) override {
    for (; next_ < inputs_.size(); ++next_, stream_.reset()) {
      if (stream_ == nullptr) {
        ASSIGN_OR_RETURN(stream_, inputs_[next_]->MakeElements(context_));
      }
      ASSIGN_OR_RETURN(const bool more, stream_->Next(element));
      if (more) return true;
    }
    return false;
  }

 private:
  const std::vector<NodePointer> inputs_;
  const PassContext context_;
  size_t next_ = 0;
  std::unique_ptr<ElementStream> stream_;  // Of inputs_[next_], or null.
};

class ConcatenateNode final : public DatasetNode {
 public:
  ConcatenateNode(std::vector<NodePointer> inputs,
                  std::vector<TensorType> types)
      : DatasetNode(std::move(types), SumOfCardinalities(inputs),
                    inputs[0]->component_names()),
        inputs_(std::move(inputs)) {}

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const override {
    return std::make_unique<ConcatenatedElements>(inputs_, context);
  }

  StageKind kind() const override { return StageKind::kConcatenate; }
  std::vector<NodePointer> inputs() const override { return inputs_; }
  absl::StatusOr<NodePointer> WithInputs(
      std::vector<NodePointer> inputs) const override {
    return MakeConcatenate(std::move(inputs));
  }

  absl::Status Encode(proto::Dataset* encoded) const override {
    RETURN_IF_ERROR(EncodeAll(inputs_, encoded));
    encoded->add_stages()->mutable_concatenate()->set_input_count(
        static_cast<int>(inputs_.size()));
    return absl::OkStatus();
  }

 private:
  const std::vector<NodePointer> inputs_;
};

using InterleavedElements = InterleavedStream<Element>;

class InterleaveNode final : public DatasetNode {
 public:
  InterleaveNode(std::vector<NodePointer> inputs, std::vector<TensorType> types,
                 const InterleaveOptions& options)
      : DatasetNode(std::move(types), SumOfCardinalities(inputs),
                    inputs[0]->component_names()),
        inputs_(std::move(inputs)),
        options_(options) {}

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const override {
    InterleavedElements::NextStream next_stream = [inputs = inputs_, context,
                                                   next = size_t{0}]() mutable
        -> absl::StatusOr<std::unique_ptr<ElementStream>> {
      if (next == inputs.size()) return nullptr;
      return inputs[next++]->MakeElements(context);
    };
    return std::make_unique<InterleavedElements>(std::move(next_stream),
                                                 options_);
  }

  StageKind kind() const override { return StageKind::kInterleave; }
  std::vector<NodePointer> inputs() const override { return inputs_; }
  absl::StatusOr<NodePointer> WithInputs(
      std::vector<NodePointer> inputs) const override {
    return MakeInterleave(std::move(inputs), options_);
  }

  absl::Status Encode(proto::Dataset* encoded) const override {
    RETURN_IF_ERROR(EncodeAll(inputs_, encoded));
    proto::DatasetStage::Interleave* const interleave =
        encoded->add_stages()->mutable_interleave();
    interleave->set_input_count(static_cast<int>(inputs_.size()));
    interleave->set_cycle_length(options_.cycle_length);
    interleave->set_block_length(options_.block_length);
    return absl::OkStatus();
  }

 private:
  const std::vector<NodePointer> inputs_;
  const InterleaveOptions options_;
};

class InterleaveFunctionNode final : public DatasetNode {
 public:
  InterleaveFunctionNode(NodePointer input, Dataset::ElementToDataset function,
                         std::vector<TensorType> types,
                         const InterleaveOptions& options)
      : DatasetNode(std::move(types), input->cardinality() == 0
                                          ? 0
                                          : Dataset::kUnknownCardinality),
        input_(std::move(input)),
        function_(std::move(function)),
        options_(options) {}

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const override {
    ASSIGN_OR_RETURN(std::shared_ptr<ElementStream> elements,
                     input_->MakeElements(context));
    InterleavedElements::NextStream next_stream =
        [this_types = element_types(), elements, context, function = function_,
         names = std::optional<std::vector<std::string>>()]() mutable
        -> absl::StatusOr<std::unique_ptr<ElementStream>> {
      Element element;
      ASSIGN_OR_RETURN(const bool more, elements->Next(&element));
      if (!more) return nullptr;
      const Dataset made = function(element);
      RETURN_IF_ERROR(made.status());
      const std::vector<TensorType>& types = made.node()->element_types();
      if (!names.has_value()) names = made.node()->component_names();
      bool fits = types.size() == this_types.size() &&
                  made.node()->component_names() == *names;
      for (size_t c = 0; fits && c < types.size(); ++c) {
        fits = types[c].dtype == this_types[c].dtype &&
               types[c].shape.IsCompatibleWith(this_types[c].shape);
      }
      if (!fits) {
        return absl::InvalidArgumentError(
            absl::StrCat("Interleave: the function made a dataset of ",
                         TypesToString(types), ", ",
                         ComponentNamesToString(made.node()->component_names(),
                                                types.size()),
                         "; expected ", TypesToString(this_types),
                         ", with names as in the first dataset"));
      }
      return made.node()->MakeElements(context);
    };
    return std::make_unique<InterleavedElements>(std::move(next_stream),
                                                 options_);
  }

  StageKind kind() const override { return StageKind::kInterleaveFunction; }
  std::vector<NodePointer> inputs() const override { return {input_}; }
  absl::StatusOr<NodePointer> WithInputs(
      std::vector<NodePointer> inputs) const override {
    return MakeInterleave(std::move(inputs[0]), function_, element_types(),
                          options_);
  }

  absl::StatusOr<NodePointer> FirstMade() const override {
    ASSIGN_OR_RETURN(const std::unique_ptr<ElementStream> elements,
                     input_->MakeElements({}));
    Element element;
    ASSIGN_OR_RETURN(const bool more, elements->Next(&element));
    if (!more) return nullptr;
    const Dataset made = function_(element);
    RETURN_IF_ERROR(made.status());
    return made.node();
  }

  absl::Status Encode(proto::Dataset*) const override {
    return absl::FailedPreconditionError(
        "Interleave: a dataset with a C++ function cannot be sent; list the "
        "datasets with Dataset::Interleave({...}), or make the dataset in each "
        "process");
  }

 private:
  const NodePointer input_;
  const Dataset::ElementToDataset function_;
  const InterleaveOptions options_;
};

}  // namespace

absl::Status CheckCombinedInputs(const char* stage,
                                 const std::vector<NodePointer>& inputs) {
  if (!inputs.empty() && inputs.size() <= kCombinedInputCountMax) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(stage, ": ", inputs.size(),
                                                 " datasets; expected 1 to ",
                                                 kCombinedInputCountMax));
}

absl::StatusOr<std::vector<TensorType>> CommonTypes(
    const char* stage, const std::vector<NodePointer>& inputs) {
  std::vector<TensorType> types = inputs[0]->element_types();
  for (const NodePointer& input : inputs) {
    const std::vector<TensorType>& others = input->element_types();
    bool fits = others.size() == types.size();
    for (size_t c = 0; fits && c < types.size(); ++c) {
      Shape& shape = types[c].shape;
      const Shape& other = others[c].shape;
      fits = types[c].dtype == others[c].dtype && shape.rank() == other.rank();
      for (int axis = 0; fits && axis < shape.rank(); ++axis) {
        if (shape.dim(axis) != other.dim(axis)) {
          shape.set_dim(axis, Shape::kUnknown);
        }
      }
    }
    if (!fits) {
      return absl::InvalidArgumentError(absl::StrCat(
          stage, ": elements of one dataset are ", TypesToString(types),
          " and of another ", TypesToString(others)));
    }
    if (input->component_names() == inputs[0]->component_names()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        stage, ": the components of one dataset are ",
        ComponentNamesToString(inputs[0]->component_names(), types.size()),
        " and of another ",
        ComponentNamesToString(input->component_names(), types.size()),
        "; expected the same names in the same order, as Rename() and Select() "
        "make them"));
  }
  return types;
}

int64_t SumOfCardinalities(const std::vector<NodePointer>& inputs) {
  int64_t sum = 0;
  bool is_unknown = false;
  for (const NodePointer& input : inputs) {
    if (input->cardinality() == Dataset::kInfinite) return Dataset::kInfinite;
    is_unknown |= input->cardinality() == Dataset::kUnknownCardinality;
    if (is_unknown) continue;
    if (__builtin_add_overflow(sum, input->cardinality(), &sum)) {
      return Dataset::kInfinite;
    }
  }
  return is_unknown ? Dataset::kUnknownCardinality : sum;
}

absl::StatusOr<NodePointer> MakeZip(std::vector<NodePointer> inputs) {
  RETURN_IF_ERROR(CheckCombinedInputs("Zip", inputs));
  const absl::Status unique = CheckUniqueNames(NamesOf(inputs));
  if (!unique.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("Zip: ", unique.message(), "; Rename() one of them"));
  }
  return std::make_shared<ZipNode>(std::move(inputs));
}

absl::StatusOr<NodePointer> MakeConcatenate(std::vector<NodePointer> inputs) {
  RETURN_IF_ERROR(CheckCombinedInputs("Concatenate", inputs));
  ASSIGN_OR_RETURN(std::vector<TensorType> types,
                   CommonTypes("Concatenate", inputs));
  return std::make_shared<ConcatenateNode>(std::move(inputs), std::move(types));
}

absl::StatusOr<NodePointer> MakeInterleave(std::vector<NodePointer> inputs,
                                           const InterleaveOptions& options) {
  RETURN_IF_ERROR(CheckCombinedInputs("Interleave", inputs));
  RETURN_IF_ERROR(CheckInterleave("Interleave", options));
  ASSIGN_OR_RETURN(std::vector<TensorType> types,
                   CommonTypes("Interleave", inputs));
  return std::make_shared<InterleaveNode>(std::move(inputs), std::move(types),
                                          options);
}

absl::StatusOr<NodePointer> MakeInterleave(NodePointer input,
                                           Dataset::ElementToDataset function,
                                           std::vector<TensorType> output_types,
                                           const InterleaveOptions& options) {
  RETURN_IF_ERROR(CheckInterleave("Interleave", options));
  if (function == nullptr) {
    return absl::InvalidArgumentError("Interleave: the function is null");
  }
  return std::make_shared<InterleaveFunctionNode>(
      std::move(input), std::move(function), std::move(output_types), options);
}

}  // namespace muster
