#include "coordinator/worker_lane.h"

#include "coordinator/closure_arguments.h"

namespace muster {

void WorkerLane::BeginAnew() {
  state = State::kClosed;
  session = 0;
  functions_told = 0;
  iterators_told = 0;
  mark_told = 0;
  fingerprints_there.clear();
  released.clear();
  trouble.clear();
  trouble_count = 0;
  paused_until = absl::InfinitePast();
}

void AddDefinitions(absl::Span<const FunctionRecord> functions,
                    absl::Span<const IteratorRecord> iterators,
                    WorkerLane* lane, proto::WorkerCommand* command) {
  for (; lane->functions_told < functions.size(); ++lane->functions_told) {
    const FunctionRecord& function = functions[lane->functions_told];
    proto::FunctionDefinition* const definition = command->add_functions();
    definition->set_function_id(static_cast<uint32_t>(lane->functions_told));
    definition->set_fingerprint(function.fingerprint);
    if (lane->fingerprints_there.insert(function.fingerprint).second) {
      definition->set_graph(function.serialized_graph);
    }
  }
  for (; lane->iterators_told < iterators.size(); ++lane->iterators_told) {
    const IteratorRecord& iterator = iterators[lane->iterators_told];
    proto::IteratorDefinition* const definition = command->add_iterators();
    *definition = iterator.contexts[lane->worker];
    // A worker that comes back starts where a next pass would, not with the
    // same elements again.
    definition->set_epoch(definition->epoch() + lane->sessions_open_count - 1);
    definition->set_iterator_id(static_cast<uint32_t>(lane->iterators_told));
    definition->set_dataset(iterator.serialized_datasets.size() == 1
                                ? iterator.serialized_datasets[0]
                                : iterator.serialized_datasets[lane->worker]);
  }
}

void AddClosures(absl::Span<const ClosureQueue::Taken> closures, int worker,
                 proto::WorkerCommand* command, std::vector<Tensor>* tensors) {
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
        encoded->set_tensor(static_cast<uint32_t>(tensors->size()));
        tensors->push_back(argument.TensorFor(worker));
      }
    }
  }
}

}  // namespace muster
