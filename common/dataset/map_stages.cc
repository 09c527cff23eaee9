#include "common/dataset/map_stages.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/compute/graph/graph_codec.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/available_cpus.h"
#include "common/core/tensor/dtype.h"
#include "common/dataset/autotune.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

using FunctionPointer = std::shared_ptr<const ElementFunctionFactory>;

absl::Status HostFunctionError(const char* stage) {
  return absl::FailedPreconditionError(absl::StrCat(
      stage,
      ": a dataset with a C++ function cannot be sent; trace the function (",
      stage, "() in place of ", stage, "Elements()), ",
      "register it (MapRegistered()), or make the dataset in each process"));
}

// Prefixes the errors of a function with the stage and the element.
absl::Status FunctionError(const char* stage, uint64_t number,
                           const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(stage, " of element ", number,
                                                  ": ", status.message()));
}

// The function of a stage, and how its errors are handled.
struct MappedStage {
  const char* name = nullptr;
  uint64_t key = 0;
  CorruptInput corrupt_input = CorruptInput::kFail;
  std::atomic<int64_t>* corrupt_input_count = nullptr;  // The node's.

  bool Skips(const absl::Status& error) const {
    return corrupt_input == CorruptInput::kSkip && IsCorruptInput(error);
  }
};

class MappedElements final : public ElementStream {
 public:
  MappedElements(std::unique_ptr<ElementStream> input,
                 std::unique_ptr<ElementFunction> function,
                 const MappedStage& stage)
      : input_(std::move(input)),
        function_(std::move(function)),
        stage_(stage),
        skipped_(stage.corrupt_input_count) {}

  absl::StatusOr<bool> Next(Element* element) override {
    while (true) {
      ASSIGN_OR_RETURN(const bool more, input_->Next(&argument_));
      if (!more) {
        skipped_.Report(stage_.name);
        return false;
      }
      const uint64_t number = number_++;
      absl::Status status =
          function_->Run(FoldIn(stage_.key, number), &argument_, element);
      if (status.ok()) return true;
      status = FunctionError(stage_.name, number, status);
      if (!stage_.Skips(status)) return status;
      skipped_.Add(status);
    }
  }

 private:
  const std::unique_ptr<ElementStream> input_;
  const std::unique_ptr<ElementFunction> function_;
  const MappedStage stage_;
  SkippedInput skipped_;
  Element argument_;  // Kept for its memory.
  uint64_t number_ = 0;
};

// Threads draw elements alternately, process them concurrently, and put the
// results into the slots of a ring, from which they are returned in order.
class ParallelMappedElements final : public ElementStream {
 public:
  ParallelMappedElements(
      std::unique_ptr<ElementStream> input,
      std::vector<std::unique_ptr<ElementFunction>> functions,
      const MappedStage& stage)
      : input_(std::move(input)),
        functions_(std::move(functions)),
        stage_(stage),
        skipped_(stage.corrupt_input_count),
        places_(2 * functions_.size()) {
    for (const auto& function : functions_) {
      threads_.emplace_back([this, worker = function.get()] { Work(worker); });
    }
  }

  ~ParallelMappedElements() override {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    for (std::thread& thread : threads_) thread.join();
  }

  absl::StatusOr<bool> Next(Element* element) override {
    while (true) {
      absl::Status skipped;
      absl::StatusOr<bool> more = TakeNext(element, &skipped);
      if (!skipped.ok()) {
        skipped_.Add(skipped);
        continue;
      }
      if (more.ok() && !*more) skipped_.Report(stage_.name);
      return more;
    }
  }

 private:
  struct Place {
    bool is_ready = false;
    absl::StatusOr<bool> more = false;  // Unless true, this is the last one.
    absl::Status skipped;               // Unless OK, replaces the result.
    Element result;
  };

  absl::StatusOr<bool> TakeNext(Element* element, absl::Status* skipped)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &ParallelMappedElements::NextIsReady));
    Place& place = places_[consumed_ % places_.size()];
    if (!place.more.ok() || !*place.more) return place.more;
    *skipped = std::exchange(place.skipped, absl::OkStatus());
    if (skipped->ok()) std::swap(*element, place.result);
    place.is_ready = false;
    ++consumed_;
    return true;
  }

  bool NextIsReady() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return places_[consumed_ % places_.size()].is_ready;
  }
  bool StoppingOrRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || drawn_ < consumed_ + places_.size();
  }

  // Draws the next element when its slot is free. Returns false if there is
  // none for this thread.
  bool Draw(uint64_t* number, Element* argument)
      ABSL_LOCKS_EXCLUDED(input_mutex_, mutex_) {
    absl::MutexLock input_lock(&input_mutex_);
    if (input_ended_) return false;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(
          absl::Condition(this, &ParallelMappedElements::StoppingOrRoom));
      if (stopping_) return false;
      *number = drawn_++;
    }
    absl::StatusOr<bool> more = input_->Next(argument);
    if (more.ok() && *more) return true;
    input_ended_ = true;
    Publish(*number, std::move(more), nullptr);
    return false;
  }

  void Publish(uint64_t number, absl::StatusOr<bool> more, Element* result,
               absl::Status skipped = absl::OkStatus())
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    Place& place = places_[number % places_.size()];
    place.more = std::move(more);
    place.skipped = std::move(skipped);
    if (result != nullptr) std::swap(place.result, *result);
    place.is_ready = true;
  }

  void Work(ElementFunction* function)
      ABSL_LOCKS_EXCLUDED(input_mutex_, mutex_) {
    uint64_t number = 0;
    Element argument;
    Element result;
    while (Draw(&number, &argument)) {
      absl::Status status =
          function->Run(FoldIn(stage_.key, number), &argument, &result);
      if (status.ok()) {
        Publish(number, true, &result);
        continue;
      }
      status = FunctionError(stage_.name, number, status);
      if (stage_.Skips(status)) {
        Publish(number, true, nullptr, std::move(status));
      } else {
        Publish(number, std::move(status), nullptr);
      }
    }
  }

  absl::Mutex input_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  const std::unique_ptr<ElementStream> input_ ABSL_PT_GUARDED_BY(input_mutex_);
  bool input_ended_ ABSL_GUARDED_BY(input_mutex_) = false;

  const std::vector<std::unique_ptr<ElementFunction>> functions_;
  const MappedStage stage_;
  SkippedInput skipped_;  // The consumer's.

  absl::Mutex mutex_;
  std::vector<Place> places_ ABSL_GUARDED_BY(mutex_);
  uint64_t drawn_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t consumed_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::vector<std::thread> threads_;  // Constant after construction.
};

int64_t MappedCardinality(int64_t cardinality, CorruptInput corrupt_input) {
  return corrupt_input == CorruptInput::kSkip && cardinality > 0
             ? Dataset::kUnknownCardinality
             : cardinality;
}

class MapNode final : public DatasetNode {
 public:
  MapNode(NodePointer input, FunctionPointer function,
          const MapOptions& options, CorruptInput corrupt_input,
          std::shared_ptr<std::atomic<int64_t>> corrupt_input_count)
      : DatasetNode(function->result_types(),
                    MappedCardinality(input->cardinality(), corrupt_input),
                    function->ResultNames(input->component_names())),
        input_(std::move(input)),
        function_(std::move(function)),
        options_(options),
        corrupt_input_(corrupt_input),
        corrupt_input_count_(std::move(corrupt_input_count)) {}

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<ElementStream> elements,
                     input_->MakeElements(context));
    const MappedStage stage = {
        .name = function_->name(),
        .key = FoldIn(options_.seed, static_cast<uint64_t>(context.epoch)),
        .corrupt_input = corrupt_input_,
        .corrupt_input_count = corrupt_input_count_.get()};
    std::vector<std::unique_ptr<ElementFunction>> functions;
    const int thread_count = options_.thread_count == kAutotune
                                 ? std::min(AvailableCpus(), kMapThreadCountMax)
                                 : options_.thread_count;
    for (int i = 0; i < thread_count; ++i) {
      ASSIGN_OR_RETURN(functions.emplace_back(), function_->Create());
    }
    if (functions.size() == 1) {
      return std::make_unique<MappedElements>(std::move(elements),
                                              std::move(functions[0]), stage);
    }
    return std::make_unique<ParallelMappedElements>(
        std::move(elements), std::move(functions), stage);
  }

  StageKind kind() const override { return StageKind::kElements; }
  std::vector<NodePointer> inputs() const override { return {input_}; }
  absl::StatusOr<NodePointer> WithInputs(
      std::vector<NodePointer> inputs) const override {
    return std::make_shared<MapNode>(std::move(inputs[0]), function_, options_,
                                     corrupt_input_, corrupt_input_count_);
  }
  int64_t corrupt_input_count() const override { return *corrupt_input_count_; }

  absl::Status Encode(proto::Dataset* encoded) const override {
    proto::DatasetStage stage;
    if (!function_->Encode(stage.mutable_map())) {
      return HostFunctionError("Map");
    }
    RETURN_IF_ERROR(input_->Encode(encoded));
    stage.mutable_map()->set_thread_count(options_.thread_count);
    stage.mutable_map()->set_seed(options_.seed);
    stage.mutable_map()->set_skip_corrupt_input(corrupt_input_ ==
                                                CorruptInput::kSkip);
    *encoded->add_stages() = std::move(stage);
    return absl::OkStatus();
  }

 private:
  const NodePointer input_;
  const FunctionPointer function_;
  const MapOptions options_;
  const CorruptInput corrupt_input_;
  // Shared with the same stage on other inputs.
  const std::shared_ptr<std::atomic<int64_t>> corrupt_input_count_;
};

class FilteredElements final : public ElementStream {
 public:
  FilteredElements(std::unique_ptr<ElementStream> input,
                   Dataset::ElementPredicate predicate)
      : input_(std::move(input)), predicate_(std::move(predicate)) {}

  absl::StatusOr<bool> Next(Element* element) override {
    while (true) {
      ASSIGN_OR_RETURN(const bool more, input_->Next(element));
      if (!more) return false;
      const uint64_t number = number_++;
      const absl::StatusOr<bool> keep = predicate_(*element);
      if (!keep.ok()) return FunctionError("Filter", number, keep.status());
      if (*keep) return true;
    }
  }

 private:
  const std::unique_ptr<ElementStream> input_;
  const Dataset::ElementPredicate predicate_;
  uint64_t number_ = 0;
};

int64_t FilteredCardinality(int64_t cardinality) {
  return cardinality == 0 ? 0 : Dataset::kUnknownCardinality;
}

class FilterNode final : public DatasetNode {
 public:
  FilterNode(NodePointer input, Dataset::ElementPredicate predicate)
      : DatasetNode(input->element_types(),
                    FilteredCardinality(input->cardinality()),
                    input->component_names()),
        input_(std::move(input)),
        predicate_(std::move(predicate)) {}

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<ElementStream> elements,
                     input_->MakeElements(context));
    return std::make_unique<FilteredElements>(std::move(elements), predicate_);
  }

  StageKind kind() const override { return StageKind::kElements; }
  std::vector<NodePointer> inputs() const override { return {input_}; }
  absl::StatusOr<NodePointer> WithInputs(
      std::vector<NodePointer> inputs) const override {
    return MakeFilter(std::move(inputs[0]), predicate_);
  }

  absl::Status Encode(proto::Dataset*) const override {
    return HostFunctionError("Filter");
  }

 private:
  const NodePointer input_;
  const Dataset::ElementPredicate predicate_;
};

class GraphFilterNode final : public DatasetNode {
 public:
  GraphFilterNode(NodePointer input, FunctionPointer predicate)
      : DatasetNode(input->element_types(),
                    FilteredCardinality(input->cardinality()),
                    input->component_names()),
        input_(std::move(input)),
        predicate_(std::move(predicate)) {}

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<ElementStream> elements,
                     input_->MakeElements(context));
    ASSIGN_OR_RETURN(std::shared_ptr<ElementFunction> function,
                     predicate_->Create());
    const uint64_t key = FoldIn(0, static_cast<uint64_t>(context.epoch));
    return std::make_unique<FilteredElements>(
        std::move(elements),
        [function, key, number = uint64_t{0}, argument = Element(),
         result = Element()](
            const Element& element) mutable -> absl::StatusOr<bool> {
          argument = element;
          RETURN_IF_ERROR(
              function->Run(FoldIn(key, number++), &argument, &result));
          argument.clear();
          return result[0].scalar<bool>();
        });
  }

  StageKind kind() const override { return StageKind::kElements; }
  std::vector<NodePointer> inputs() const override { return {input_}; }
  absl::StatusOr<NodePointer> WithInputs(
      std::vector<NodePointer> inputs) const override {
    return MakeFilter(std::move(inputs[0]), predicate_);
  }

  absl::Status Encode(proto::Dataset* encoded) const override {
    RETURN_IF_ERROR(input_->Encode(encoded));
    *encoded->add_stages()->mutable_filter()->mutable_predicate() =
        EncodeGraph(*predicate_->graph());
    return absl::OkStatus();
  }

 private:
  const NodePointer input_;
  const FunctionPointer predicate_;
};

}  // namespace

absl::StatusOr<NodePointer> MakeMap(
    NodePointer input, std::shared_ptr<const ElementFunctionFactory> function,
    const MapOptions& options, CorruptInput corrupt_input) {
  if (options.thread_count != kAutotune &&
      (options.thread_count < 1 || options.thread_count > kMapThreadCountMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("Map: thread_count is ", options.thread_count,
                     "; expected 1 to ", kMapThreadCountMax, " or kAutotune"));
  }
  if (function->result_types().empty()) {
    return absl::InvalidArgumentError("Map: the function returns nothing");
  }
  return std::make_shared<MapNode>(std::move(input), std::move(function),
                                   options, corrupt_input,
                                   std::make_shared<std::atomic<int64_t>>(0));
}

absl::StatusOr<NodePointer> MakeFilter(
    NodePointer input,
    std::shared_ptr<const ElementFunctionFactory> predicate) {
  const std::vector<TensorType>& types = predicate->result_types();
  if (types.size() != 1 || types[0].dtype != DType::kBool ||
      types[0].shape.rank() != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Filter: the predicate returns ", types.size(), " values",
        types.empty() ? "" : absl::StrCat(", first ", types[0].ToString()),
        "; expected one bool[]"));
  }
  return std::make_shared<GraphFilterNode>(std::move(input),
                                           std::move(predicate));
}

absl::StatusOr<NodePointer> MakeFilter(NodePointer input,
                                       Dataset::ElementPredicate predicate) {
  if (predicate == nullptr) {
    return absl::InvalidArgumentError("Filter: the predicate is null");
  }
  return std::make_shared<FilterNode>(std::move(input), std::move(predicate));
}

}  // namespace muster
