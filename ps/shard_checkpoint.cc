#include "ps/shard_checkpoint.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/compute/variables/checkpoint_names.h"
#include "common/compute/variables/variable_state.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/io/checkpoint/tensor_slice.h"
#include "proto/parameter_server.pb.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

// The position of a shard's rows in the whole variable.
struct ShardPlace {
  TensorType full;
  TensorSlice slice;
};

ShardPlace PlaceOf(const ShardVariable& variable) {
  const proto::ShardSpec& spec = variable.spec();
  ShardPlace place;
  place.full.dtype = variable.type().dtype;
  // Validated when the shard was created.
  place.full.shape =
      DecodeShape(spec.variable().shape(), /*allow_unknown=*/false).value();
  place.slice = place.full.shape.rank() == 0
                    ? TensorSlice::Whole(place.full.shape)
                    : TensorSlice::Rows(place.full.shape, spec.row_begin(),
                                        spec.row_end());
  return place;
}

absl::Status WriteVariable(const FrozenShard::Variable& entry,
                           TensorBundleWriter* writer, SavePace* pace) {
  ShardVariable& variable = *entry.variable;
  const std::string& name = variable.spec().variable().name();
  const ShardPlace place = PlaceOf(variable);
  // An empty shard has no slice; the other shards cover the variable.
  if (variable.row_count() == 0 && !place.slice.IsWhole(place.full.shape)) {
    return absl::OkStatus();
  }
  for (int array = 0; array < entry.frozen.rows->array_count(); ++array) {
    const std::string key =
        array == 0 ? VariableValueKey(name)
                   : VariableSlotKey(name, entry.frozen.slot_names[array - 1]);
    RETURN_IF_ERROR(writer->BeginTensor(key, place.full, place.slice));
    RETURN_IF_ERROR(variable.ReadFrozen(
        entry.frozen, array, [&](absl::Span<const uint8_t> bytes) {
          const absl::Status status = writer->AppendBytes(bytes);
          pace->EndPiece();
          return status;
        }));
    RETURN_IF_ERROR(writer->EndTensor());
  }
  if (variable.spec().row_begin() != 0) return absl::OkStatus();
  const int64_t per_step = entry.gradients_per_step;
  if (per_step > 1) {
    RETURN_IF_ERROR(writer->Add(
        OpenRoundKey(name),
        Tensor::FromValues<int64_t>(
            {2}, {entry.frozen.update_count % per_step, per_step})));
  }
  return writer->Add(UpdateCountKey(name),
                     Tensor::Scalar<int64_t>(entry.step_count()));
}

// Returns the names of the variable's slots in the checkpoint.
std::vector<std::string> StoredSlots(const TensorBundleReader& reader,
                                     const std::string& variable) {
  const std::string no_slot = VariableSlotKey(variable, "");
  const std::string prefix = no_slot.substr(0, no_slot.find("/.ATTRIBUTES"));
  const std::vector<StoredTensor>& all = reader.tensors();
  std::vector<std::string> names;
  for (auto it = std::lower_bound(
           all.begin(), all.end(), prefix,
           [](const StoredTensor&stored, const std::string&name) {
             return stored.name < name;
           });
       it != all.end() && absl::StartsWith(it->name, prefix); ++it) {
    std::optional<std::string> slot = SlotNameOf(variable, it->name);
    if (slot.has_value()) names.push_back(*std::move(slot));
  }
  return names;
}

absl::Status CheckType(const TensorBundleReader& reader, const std::string& key,
                       const TensorType& expected) {
  const StoredTensor* const stored = reader.Find(key);
  if (stored == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        reader.prefix(), " is not a checkpoint of this model: it has no \"",
        key, "\", ", expected.ToString()));
  }
  const TensorType type{stored->dtype, stored->shape};
  if (type == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      reader.prefix(), ": \"", key, "\" is ", type.ToString(),
      " in the checkpoint; this model expects ", expected.ToString()));
}

// Reads the data for a restore of `variable`, array by array. `sink` receives
// the pieces of array 0, the value, and then those of each of `slots`.
absl::Status ReadVariable(
    const TensorBundleReader& reader, const ShardVariable& variable,
    absl::Span<const std::string> slots,
    absl::FunctionRef<absl::Status(int array, int64_t offset_bytes,
                                   absl::Span<const uint8_t> bytes)>
        sink) {
  const std::string& name = variable.spec().variable().name();
  const ShardPlace place = PlaceOf(variable);
  for (int array = 0; array <= static_cast<int>(slots.size()); ++array) {
    std::string key;
    if (array == 0) {
      ASSIGN_OR_RETURN(key, FindVariableValue(reader, name));
    } else {
      key = VariableSlotKey(name, slots[array - 1]);
    }
    RETURN_IF_ERROR(CheckType(reader, key, place.full));
    RETURN_IF_ERROR(reader.ReadPieces(
        key, place.slice,
        [&](int64_t offset_bytes, absl::Span<const uint8_t> bytes) {
          return sink(array, offset_bytes, bytes);
        }));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ReadUpdateCount(const TensorBundleReader& reader,
                                        const std::string& variable) {
  const std::string key = UpdateCountKey(variable);
  if (reader.Find(key) == nullptr) return 0;
  RETURN_IF_ERROR(CheckType(reader, key, {DType::kInt64, Shape()}));
  ASSIGN_OR_RETURN(const Tensor count, reader.Read(key));
  return count.scalar<int64_t>();
}

// The gradients of a round of synchronous training that a checkpoint holds in
// the sum of a variable.
struct OpenRound {
  int64_t gradient_count = 0;
  int64_t gradients_per_step = 1;
};

absl::StatusOr<OpenRound> ReadOpenRound(const TensorBundleReader& reader,
                                        const std::string& variable) {
  const std::string key = OpenRoundKey(variable);
  if (reader.Find(key) == nullptr) return OpenRound();
  RETURN_IF_ERROR(CheckType(reader, key, {DType::kInt64, Shape({2})}));
  ASSIGN_OR_RETURN(const Tensor round, reader.Read(key));
  const OpenRound read = {round.flat<int64_t>()[0], round.flat<int64_t>()[1]};
  const bool is_valid =
      read.gradient_count >= 0 && read.gradient_count < read.gradients_per_step;
  if (is_valid) return read;
  return absl::DataLossError(absl::StrCat(
      reader.prefix(), ": \"", key, "\" is {", read.gradient_count, ", ",
      read.gradients_per_step, "}; expected a number from 0 and a larger one"));
}

// Returns the number of gradients that a variable has taken after a restore.
// Resets the sum of those of a round that the rule cannot continue.
absl::StatusOr<int64_t> RestoredGradientCount(
    const TensorBundleReader& reader, const UpdateRule* rule,
    absl::FunctionRef<void(absl::string_view slot)> reset,
    const std::string& variable) {
  ASSIGN_OR_RETURN(const int64_t steps, ReadUpdateCount(reader, variable));
  ASSIGN_OR_RETURN(const OpenRound round, ReadOpenRound(reader, variable));
  const int64_t per_step = rule == nullptr ? 1 : rule->gradients_per_step();
  if (per_step == round.gradients_per_step) {
    return steps * per_step + round.gradient_count;
  }
  if (rule != nullptr && rule->accumulator_slot() >= 0) {
    reset(rule->slots()[rule->accumulator_slot()].name);
  }
  return steps * per_step;
}

// Returns the stored slots that a restore reads.
std::vector<std::string> WantedSlots(const TensorBundleReader& reader,
                                     const ShardVariable& variable,
                                     const UpdateRule* rule, bool values_only) {
  if (values_only) return {};
  std::vector<std::string> slots =
      StoredSlots(reader, variable.spec().variable().name());
  if (rule == nullptr) return slots;
  std::erase_if(slots, [&](const std::string& slot) {
    return std::none_of(rule->slots().begin(), rule->slots().end(),
                        [&](const SlotSpec& s) { return s.name == slot; });
  });
  return slots;
}

absl::Status RestoreVariable(const TensorBundleReader& reader,
                             const UpdateRule* rule, bool values_only,
                             ShardVariable* variable) {
  const std::vector<std::string> stored =
      WantedSlots(reader, *variable, rule, values_only);
  if (!stored.empty()) RETURN_IF_ERROR(variable->PrepareSlots(rule, stored));
  const std::vector<std::string> slots =
      values_only ? std::vector<std::string>() : variable->slot_names();
  const auto array_of = [&](const std::string& name) {
    return 1 + static_cast<int>(std::find(slots.begin(), slots.end(), name) -
                                slots.begin());
  };
  RETURN_IF_ERROR(ReadVariable(
      reader, *variable, stored,
      [&](int array, int64_t offset_bytes, absl::Span<const uint8_t> bytes) {
        variable->Overwrite(array == 0 ? 0 : array_of(stored[array - 1]),
                            offset_bytes, bytes);
        return absl::OkStatus();
      }));
  for (const std::string& slot : slots) {
    if (std::find(stored.begin(), stored.end(), slot) == stored.end()) {
      variable->ResetSlot(array_of(slot));
    }
  }
  int64_t update_count = variable->update_count();
  if (!values_only) {
    const auto reset = [&](absl::string_view slot) {
      if (std::find(slots.begin(), slots.end(), slot) == slots.end()) return;
      variable->ResetSlot(array_of(std::string(slot)));
    };
    ASSIGN_OR_RETURN(update_count,
                     RestoredGradientCount(reader, rule, reset,
                                           variable->spec().variable().name()));
  }
  variable->FinishRestore(update_count);
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteFrozenShard(const FrozenShard& shard,
                              TensorBundleWriter* writer, SavePace* pace) {
  for (const FrozenShard::Variable& entry : shard.variables) {
    RETURN_IF_ERROR(WriteVariable(entry, writer, pace));
  }
  return absl::OkStatus();
}

absl::Status VerifyStored(const TensorBundleReader& reader,
                          absl::Span<const RestoredVariable> variables,
                          bool values_only) {
  for (const auto& [variable, rule] : variables) {
    if (!IsRestored(reader, variable->spec().variable(), values_only)) continue;
    RETURN_IF_ERROR(
        ReadVariable(reader, *variable,
                     WantedSlots(reader, *variable, rule.get(), values_only),
                     [](int, int64_t, absl::Span<const uint8_t>) {
                       return absl::OkStatus();
                     }));
    if (values_only) continue;
    RETURN_IF_ERROR(
        ReadUpdateCount(reader, variable->spec().variable().name()).status());
  }
  return absl::OkStatus();
}

absl::Status RestoreVariables(const TensorBundleReader& reader,
                              absl::Span<const RestoredVariable> variables,
                              bool values_only) {
  for (const auto& [variable, rule] : variables) {
    if (!IsRestored(reader, variable->spec().variable(), values_only)) continue;
    RETURN_IF_ERROR(
        RestoreVariable(reader, rule.get(), values_only, variable.get()));
  }
  return absl::OkStatus();
}

}  // namespace muster
