#include "ps/state_records.h"

#include "common/core/base/status_macros.h"
#include "proto/parameter_server.pb.h"

namespace muster {
namespace {

absl::Status WriteVariable(const FrozenShard::Variable& entry,
                           RecordSink sink) {
  ShardVariable& variable = *entry.variable;
  proto::ServerLogRecord record;
  proto::ServerLogVariable* const stored = record.mutable_variable();
  *stored->mutable_spec() = variable.spec();
  stored->set_handle(variable.handle());
  stored->set_version(entry.frozen.version);
  stored->set_update_count(entry.frozen.update_count);
  stored->set_has_slots(entry.frozen.has_slots);
  stored->mutable_slot_names()->Assign(entry.frozen.slot_names.begin(),
                                       entry.frozen.slot_names.end());
  RETURN_IF_ERROR(sink(record, {}));
  for (int array = 0; array < entry.frozen.rows->array_count(); ++array) {
    int64_t offset_bytes = 0;
    RETURN_IF_ERROR(variable.ReadFrozen(
        entry.frozen, array, [&](absl::Span<const uint8_t> bytes) {
          proto::ServerLogBlock* const block = record.mutable_block();
          block->set_handle(variable.handle());
          block->set_array(array);
          block->set_offset_bytes(offset_bytes);
          offset_bytes += static_cast<int64_t>(bytes.size());
          return sink(record, {bytes});
        }));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteState(const ParameterShard::RecordedState& state,
                        const proto::ServerLogJob& job, RecordSink sink) {
  proto::ServerLogRecord record;
  *record.mutable_job() = job;
  RETURN_IF_ERROR(sink(record, {}));
  for (const proto::SetOptimizerRequest& request : state.optimizers.list()) {
    *record.mutable_set_optimizer() = request;
    RETURN_IF_ERROR(sink(record, {}));
  }
  for (const FrozenShard::Variable& entry : state.frozen->variables) {
    RETURN_IF_ERROR(WriteVariable(entry, sink));
  }
  proto::ServerLogLedger* const ledger = record.mutable_ledger();
  ledger->set_low_water_mark(state.low_water_mark);
  for (const PushId& push : state.pushes) {
    ledger->add_step_ids(push.step_id);
    ledger->add_exchange_indexes(push.exchange_index);
  }
  RETURN_IF_ERROR(sink(record, {}));
  proto::ServerLogSnapshotEnd* const end = record.mutable_snapshot_end();
  end->set_generation(state.generation);
  end->set_update_count(state.update_count);
  end->set_handle_count(state.handle_count);
  return sink(record, {});
}

}  // namespace muster
