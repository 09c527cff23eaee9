#include "coordinator/worker_record.h"

#include <optional>

#include "coordinator/closure_arguments.h"
#include "proto/worker.pb.h"

namespace muster {
namespace {

// Returns the position of `tensor` in the command.
uint32_t AddTensor(const Tensor& tensor, const SharedBatches* batches,
                   uint64_t segment_id, proto::WorkerCommand* command,
                   std::vector<Tensor>* tensors) {
  const auto position =
      static_cast<uint32_t>(tensors->size() + command->shared_tensors_size());
  std::optional<uint64_t> offset;
  if (segment_id != 0) offset = batches->OffsetOf(tensor);
  if (!offset.has_value()) {
    tensors->push_back(tensor);
    return position;
  }
  command->set_segment_id(segment_id);
  proto::SharedTensor* const shared = command->add_shared_tensors();
  shared->set_position(position);
  shared->set_offset(*offset);
  shared->set_dtype(static_cast<int>(tensor.dtype()));
  for (int64_t dim : tensor.shape().dims()) shared->add_dims(dim);
  return position;
}

}  // namespace

void WorkerRecord::ResetSession() {
  state = State::kClosed;
  session = 0;
  sent_function_count = 0;
  sent_iterator_count = 0;
  sent_low_water_mark = 0;
  known_fingerprints.clear();
  released.clear();
  trouble.clear();
  trouble_count = 0;
  paused_until = absl::InfinitePast();
}

void AddClosures(absl::Span<const ClosureQueue::Taken> closures, int worker,
                 const SharedBatches* batches, proto::WorkerCommand* command,
                 std::vector<Tensor>* tensors) {
  const uint64_t segment_id =
      batches == nullptr ? 0 : batches->segment_id(worker);
  const ClosureQueue::Taken* previous = nullptr;
  for (const ClosureQueue::Taken& closure : closures) {
    if (previous != nullptr && closure.id == previous->id + 1 &&
        closure.work.function_id == previous->work.function_id &&
        closure.work.step_count == previous->work.step_count &&
        closure.work.results_come_along == previous->work.results_come_along &&
        closure.result_wanted == previous->result_wanted &&
        ClosureArguments::SameIterators(closure.work.arguments.get(),
                                        previous->work.arguments.get())) {
      proto::ClosureRun* const run =
          command->mutable_runs(command->runs_size() - 1);
      run->set_count(run->count() + 1);
      previous = &closure;
      continue;
    }
    previous = &closure;
    proto::ClosureRun* const run = command->add_runs();
    run->set_first_id(closure.id);
    run->set_count(1);
    run->set_function_id(closure.work.function_id);
    run->set_results_unwanted(!closure.result_wanted);
    run->set_results_come_along(closure.work.results_come_along);
    if (closure.work.step_count > 1) {
      run->set_steps_per_closure(
          static_cast<uint32_t>(closure.work.step_count));
    }
    if (closure.work.arguments == nullptr) continue;
    for (const ClosureArgument& argument : closure.work.arguments->arguments) {
      proto::ClosureArgument* const encoded = run->add_arguments();
      if (argument.iterator_id >= 0) {
        encoded->set_iterator_id(static_cast<uint32_t>(argument.iterator_id));
      } else {
        encoded->set_tensor(AddTensor(argument.TensorFor(worker), batches,
                                      segment_id, command, tensors));
      }
    }
  }
}

}  // namespace muster
