#include "common/compute/variables/variable_state.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/compute/variables/checkpoint_names.h"
#include "common/core/base/did_you_mean.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/io/checkpoint/object_graph.h"
#include "common/io/checkpoint/tensor_slice.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

// Errors name at most this many of the invalid variables.
constexpr size_t kNamedCountMax = 5;

absl::StatusOr<TensorSlice> SliceOf(const VariableRows& rows) {
  const Shape& full = rows.full_type.shape;
  const int64_t row_count = full.rank() == 0 ? 1 : full.dim(0);
  if (rows.begin < 0 || rows.begin > rows.end || rows.end > row_count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", rows.variable, "\" has ", row_count,
        " rows; there are no rows ", rows.begin, " to ", rows.end));
  }
  return full.rank() == 0 ? TensorSlice::Whole(full)
                          : TensorSlice::Rows(full, rows.begin, rows.end);
}

absl::Status Write(const VariableRows& rows, const TensorSlice& slice,
                   const std::string& key, const Tensor& tensor,
                   TensorBundleWriter* writer) {
  if (tensor.dtype() != rows.full_type.dtype || tensor.shape() != slice.shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", key, "\" is ",
        tensor.IsValid() ? tensor.type().ToString() : "nothing", "; expected ",
        TensorType{rows.full_type.dtype, slice.shape}.ToString()));
  }
  if (slice.IsWhole(rows.full_type.shape)) return writer->Add(key, tensor);
  return writer->AddSlice(key, rows.full_type.shape, slice, tensor);
}

absl::Status CheckType(const TensorBundleReader& reader,
                       const VariableRows& variable,
                       const StoredTensor& stored) {
  const TensorType type{stored.dtype, stored.shape};
  if (type == variable.full_type) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      reader.prefix(), ": variable \"", variable.variable, "\" is ",
      type.ToString(), " there and ", variable.full_type.ToString(), " here"));
}

// Returns all slots of the variable, and possibly other tensors.
absl::Span<const StoredTensor> SlotsOf(const TensorBundleReader& reader,
                                       absl::string_view variable) {
  const std::string no_slot = VariableSlotKey(variable, "");
  const absl::string_view prefix =
      absl::string_view(no_slot).substr(0, no_slot.find("/.ATTRIBUTES"));
  const std::vector<StoredTensor>& all = reader.tensors();
  const auto begin =
      std::lower_bound(all.begin(), all.end(), prefix,
                       [](const StoredTensor& tensor, absl::string_view name) {
                         return tensor.name < name;
                       });
  const auto end =
      std::find_if(begin, all.end(), [&](const StoredTensor& tensor) {
        return !absl::StartsWith(tensor.name, prefix);
      });
  return absl::MakeConstSpan(all).subspan(begin - all.begin(), end - begin);
}

// True if this is a weight and not other training state.
bool IsWeight(const ObjectGraph::Variable& variable) {
  const std::string& root = variable.path.front();
  const std::string optimizer = OptimizerPath().front();
  // A compiled Keras model contains its optimizer.
  const bool is_of_model =
      variable.path.size() > 1 && variable.path[1] == optimizer;
  if (root == optimizer || is_of_model) {
    // The optimizer refers to the weights that it trains.
    return absl::StrContains(variable.key, "/_trainable_variables/") ||
           VariableNameOf(variable.key).has_value();
  }
  return root != SaveCounterPath().front() &&
         root != TrainingStatePath().front();
}

// Returns names as users write them. A shard, or a checkpoint that has only
// names, has no object graph.
std::vector<std::string> VariablesOf(const TensorBundleReader& reader) {
  std::vector<std::string> names;
  const absl::StatusOr<ObjectGraph> graph = ObjectGraph::ReadFrom(reader);
  if (graph.ok()) {
    for (ObjectGraph::Variable& variable : graph->Variables()) {
      if (IsWeight(variable)) names.push_back(std::move(variable.full_name));
    }
    return names;
  }
  for (const StoredTensor& stored : reader.tensors()) {
    std::optional<std::string> name = VariableNameOf(stored.name);
    if (name.has_value()) names.push_back(*std::move(name));
  }
  return names;
}

// Returns the number of path components before `name` in `full_name`; nothing
// if `full_name` does not end with `name`.
std::optional<int> LeadingNameCount(absl::string_view full_name,
                                    absl::string_view name) {
  if (!absl::ConsumeSuffix(&full_name, name)) return std::nullopt;
  if (!full_name.empty() && !absl::EndsWith(full_name, "/")) {
    return std::nullopt;
  }
  return static_cast<int>(std::count(full_name.begin(), full_name.end(), '/'));
}

// Finds a variable by its object path. The last attribute may begin with an
// underscore.
absl::StatusOr<std::string> FindByPath(const ObjectGraph& graph,
                                       absl::string_view variable) {
  ObjectPath path = VariablePath(variable);
  absl::StatusOr<std::string> key = graph.FindVariable(path);
  if (key.ok()) return key;
  path.back().insert(0, "_");
  return graph.FindVariable(path);
}

// Finds a variable by the name that the program gave it. Of several names that
// end with `variable`, the one with the fewest components before it is the
// model's.
absl::StatusOr<std::string> FindByName(const TensorBundleReader& reader,
                                       const ObjectGraph& graph,
                                       absl::string_view variable) {
  std::vector<ObjectGraph::Variable> found;
  int ahead_min = 0;
  for (ObjectGraph::Variable& candidate : graph.Variables()) {
    const std::optional<int> ahead =
        LeadingNameCount(candidate.full_name, variable);
    if (!ahead.has_value() || (!found.empty() && *ahead > ahead_min)) continue;
    if (!found.empty() && *ahead < ahead_min) found.clear();
    ahead_min = *ahead;
    found.push_back(std::move(candidate));
  }
  if (found.size() == 1) return found.front().key;
  if (found.empty()) {
    return absl::NotFoundError(
        absl::StrCat(reader.prefix(), " lacks \"", variable, "\""));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      reader.prefix(), ": \"", variable, "\" may be \"", found[0].full_name,
      "\" (", found[0].key, ") or \"", found[1].full_name, "\" (", found[1].key,
      "); give the layers of the saved model distinct names"));
}

// Returns null if the checkpoint lacks the variable.
absl::StatusOr<const StoredTensor*> FindStored(const TensorBundleReader& reader,
                                               absl::string_view variable) {
  const absl::StatusOr<std::string> key = FindVariableValue(reader, variable);
  if (absl::IsNotFound(key.status())) return nullptr;
  RETURN_IF_ERROR(key.status());
  return reader.Find(*key);
}

std::string FirstOf(const std::vector<std::string>& all) {
  const size_t count = std::min(all.size(), kNamedCountMax);
  std::string text = absl::StrJoin(all.begin(), all.begin() + count, ", ");
  if (count < all.size()) {
    absl::StrAppend(&text, " and ", all.size() - count, " more");
  }
  return text;
}

// Returns one error about several variables.
absl::Status Misfit(const TensorBundleReader& reader,
                    const std::vector<std::string>& missing,
                    const std::vector<std::string>& retyped) {
  const std::vector<std::string> there = VariablesOf(reader);
  const std::vector<absl::string_view> candidates(there.begin(), there.end());
  std::string text =
      absl::StrCat(reader.prefix(), " is not a checkpoint of this model");
  if (!missing.empty()) {
    std::vector<std::string> named;
    for (const std::string& name : missing) {
      if (named.size() == kNamedCountMax) break;
      named.push_back(
          absl::StrCat("\"", name, "\"", DidYouMean(name, candidates)));
    }
    absl::StrAppend(&text, ": it lacks ", absl::StrJoin(named, ", "));
    if (named.size() < missing.size()) {
      absl::StrAppend(&text, " and ", missing.size() - named.size(), " more");
    }
  }
  if (!retyped.empty()) absl::StrAppend(&text, ": ", FirstOf(retyped));
  absl::StrAppend(&text, ". It holds ", there.size(), " variables",
                  there.empty() ? "" : ": ", FirstOf(there));
  return missing.empty() ? absl::InvalidArgumentError(text)
                         : absl::NotFoundError(text);
}

}  // namespace

VariableRows VariableRows::All(absl::string_view variable,
                               const TensorType& type) {
  return {.variable = std::string(variable),
          .full_type = type,
          .begin = 0,
          .end = type.shape.rank() == 0 ? 1 : type.shape.dim(0)};
}

absl::Status WriteVariableState(const VariableRows& rows,
                                const VariableState& state,
                                TensorBundleWriter* writer) {
  ASSIGN_OR_RETURN(const TensorSlice slice, SliceOf(rows));
  const bool is_nothing =
      slice.shape.element_count() == 0 && !slice.IsWhole(rows.full_type.shape);
  if (is_nothing) return absl::OkStatus();
  RETURN_IF_ERROR(
      Write(rows, slice, VariableValueKey(rows.variable), state.value, writer));
  for (const VariableState::Slot& slot : state.slots) {
    const std::string key = VariableSlotKey(rows.variable, slot.name);
    if (slice.IsWhole(rows.full_type.shape) &&
        slot.value.dtype() == rows.full_type.dtype) {
      RETURN_IF_ERROR(writer->Add(key, slot.value));
    } else {
      RETURN_IF_ERROR(Write(rows, slice, key, slot.value, writer));
    }
  }
  if (rows.begin != 0) return absl::OkStatus();
  return writer->Add(UpdateCountKey(rows.variable),
                     Tensor::Scalar<int64_t>(state.update_count));
}

absl::StatusOr<std::string> FindVariableValue(const TensorBundleReader& reader,
                                              absl::string_view variable) {
  std::string own_key = VariableValueKey(variable);
  if (reader.Find(own_key) != nullptr) return own_key;
  ASSIGN_OR_RETURN(const ObjectGraph graph, ObjectGraph::ReadFrom(reader));
  absl::StatusOr<std::string> key = FindByPath(graph, variable);
  if (!key.ok()) key = FindByName(reader, graph, variable);
  if (!key.ok() || reader.Find(*key) != nullptr) return key;
  return absl::DataLossError(
      absl::StrCat(reader.prefix(), ": its object graph names a tensor \"",
                   *key, "\" that it does not hold"));
}

absl::StatusOr<VariableState> ReadVariableState(
    const TensorBundleReader& reader, const VariableRows& rows,
    bool values_only) {
  ASSIGN_OR_RETURN(const TensorSlice slice, SliceOf(rows));
  ASSIGN_OR_RETURN(const StoredTensor* const stored,
                   FindStored(reader, rows.variable));
  if (stored == nullptr) return Misfit(reader, {rows.variable}, {});
  RETURN_IF_ERROR(CheckType(reader, rows, *stored));
  VariableState state;
  ASSIGN_OR_RETURN(state.value, reader.ReadSlice(stored->name, slice));
  if (values_only) return state;

  for (const StoredTensor& tensor : SlotsOf(reader, rows.variable)) {
    const std::optional<std::string> name =
        SlotNameOf(rows.variable, tensor.name);
    if (!name.has_value()) continue;
    const bool has_own_shape = slice.IsWhole(rows.full_type.shape) &&
                               tensor.dtype == rows.full_type.dtype &&
                               tensor.shape != rows.full_type.shape;
    if (!has_own_shape) RETURN_IF_ERROR(CheckType(reader, rows, tensor));
    ASSIGN_OR_RETURN(Tensor value, has_own_shape
                                       ? reader.Read(tensor.name)
                                       : reader.ReadSlice(tensor.name, slice));
    state.slots.push_back({*name, std::move(value)});
  }
  const std::string count_key = UpdateCountKey(rows.variable);
  const StoredTensor* const count = reader.Find(count_key);
  if (count == nullptr) return state;
  if (count->dtype != DType::kInt64 || count->shape.rank() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(reader.prefix(), ": \"", count_key, "\" is ",
                     TensorType{count->dtype, count->shape}.ToString(),
                     " there; expected int64[]"));
  }
  ASSIGN_OR_RETURN(const Tensor value, reader.Read(count_key));
  state.update_count = value.scalar<int64_t>();
  return state;
}

bool IsRestored(const TensorBundleReader& reader,
                const proto::VariableSpec& spec, bool values_only) {
  if (!spec.is_optimizer_state()) return true;
  return !values_only && reader.Find(VariableValueKey(spec.name())) != nullptr;
}

absl::Status CheckVariables(const TensorBundleReader& reader,
                            absl::Span<const VariableRows> variables) {
  std::vector<std::string> missing;
  std::vector<std::string> retyped;
  for (const VariableRows& variable : variables) {
    ASSIGN_OR_RETURN(const StoredTensor* const stored,
                     FindStored(reader, variable.variable));
    if (stored == nullptr) {
      missing.push_back(variable.variable);
      continue;
    }
    const TensorType type{stored->dtype, stored->shape};
    if (type == variable.full_type) continue;
    retyped.push_back(absl::StrCat("\"", variable.variable, "\" is ",
                                   type.ToString(), " there and ",
                                   variable.full_type.ToString(), " here"));
  }
  if (missing.empty() && retyped.empty()) return absl::OkStatus();
  return Misfit(reader, missing, retyped);
}

}  // namespace muster
