#include "common/dataset/order_stages.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

// The common part of the stages. `Stage` defines:
//   template <typename T>
//   absl::StatusOr<std::unique_ptr<ItemStream<T>>> Order(
//       StreamFactory<T> input, const PassContext& context) const;
//   void EncodeStage(proto::DatasetStage* stage) const;
//   absl::StatusOr<NodePointer> MakeOn(NodePointer input) const;
//   static constexpr StageKind kKind;
template <typename Stage>
class OrderNode final : public DatasetNode {
 public:
  OrderNode(NodePointer input, int64_t cardinality, Stage stage)
      : DatasetNode(input->element_types(), cardinality,
                    input->component_names()),
        input_(std::move(input)),
        stage_(std::move(stage)) {}

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const override {
    ASSIGN_OR_RETURN(RowSelection selection, MakeRows(context));
    if (selection.table != nullptr) return ElementsOf(std::move(selection));
    return stage_.template Order<Element>(
        [input = input_](const PassContext& pass) {
          return input->MakeElements(pass);
        },
        context);
  }

  absl::StatusOr<RowSelection> MakeRows(
      const PassContext& context) const override {
    ASSIGN_OR_RETURN(RowSelection first, input_->MakeRows(context));
    if (first.table == nullptr) return first;
    RowSelection selection{.table = first.table};
    // Every pass of an input selects from the same table.
    ASSIGN_OR_RETURN(selection.rows,
                     stage_.template Order<int64_t>(
                         [input = input_](const PassContext& pass)
                             -> absl::StatusOr<std::unique_ptr<RowStream>> {
                           ASSIGN_OR_RETURN(RowSelection rows,
                                            input->MakeRows(pass));
                           return std::move(rows.rows);
                         },
                         context));
    return selection;
  }

  StageKind kind() const override { return Stage::kKind; }
  std::vector<NodePointer> inputs() const override { return {input_}; }
  absl::StatusOr<NodePointer> WithInputs(
      std::vector<NodePointer> inputs) const override {
    return stage_.MakeOn(std::move(inputs[0]));
  }

  absl::Status Encode(proto::Dataset* encoded) const override {
    RETURN_IF_ERROR(input_->Encode(encoded));
    stage_.EncodeStage(encoded->add_stages());
    return absl::OkStatus();
  }

 private:
  const NodePointer input_;
  const Stage stage_;
};

template <typename Stage>
absl::StatusOr<NodePointer> MakeNode(NodePointer input, int64_t cardinality,
                                     Stage stage) {
  return std::make_shared<OrderNode<Stage>>(std::move(input), cardinality,
                                            std::move(stage));
}

template <typename T>
class ShuffleStream final : public ItemStream<T> {
 public:
  ShuffleStream(std::unique_ptr<ItemStream<T>> input, int64_t buffer_size,
                uint64_t key)
      : input_(std::move(input)),
        buffer_size_(static_cast<size_t>(buffer_size)),
        random_(key) {}

  absl::StatusOr<bool> Next(T* item) override {
    while (!input_ended_ && buffer_.size() < buffer_size_) {
      T next{};
      ASSIGN_OR_RETURN(const bool more, input_->Next(&next));
      if (more) {
        buffer_.push_back(std::move(next));
      } else {
        input_ended_ = true;
      }
    }
    if (buffer_.empty()) return false;
    T& drawn = buffer_[random_.Below(buffer_.size())];
    std::swap(*item, drawn);
    if (!input_ended_) {
      ASSIGN_OR_RETURN(const bool more, input_->Next(&drawn));
      input_ended_ = !more;
      if (more) return true;
    }
    drawn = std::move(buffer_.back());
    buffer_.pop_back();
    return true;
  }

 private:
  const std::unique_ptr<ItemStream<T>> input_;
  const size_t buffer_size_;
  RandomStream random_;
  std::vector<T> buffer_;
  bool input_ended_ = false;
};

struct ShuffleStage {
  int64_t buffer_size;
  ShuffleOptions options;

  static constexpr StageKind kKind = StageKind::kShuffle;

  template <typename T>
  absl::StatusOr<std::unique_ptr<ItemStream<T>>> Order(
      const StreamFactory<T>& input, const PassContext& context) const {
    uint64_t key = options.seed;
    if (options.decorrelate) {
      key = FoldIn(key, static_cast<uint64_t>(context.input.input_pipeline_id));
    }
    key = FoldIn(key, options.reshuffle_each_iteration
                          ? static_cast<uint64_t>(context.epoch)
                          : 0);
    ASSIGN_OR_RETURN(std::unique_ptr<ItemStream<T>> stream, input(context));
    return std::make_unique<ShuffleStream<T>>(std::move(stream), buffer_size,
                                              key);
  }
  absl::StatusOr<NodePointer> MakeOn(NodePointer input) const {
    return MakeShuffle(std::move(input), buffer_size, options);
  }
  void EncodeStage(proto::DatasetStage* stage) const {
    proto::DatasetStage::Shuffle* const shuffle = stage->mutable_shuffle();
    shuffle->set_buffer_size(buffer_size);
    shuffle->set_seed(options.seed);
    shuffle->set_same_order_each_iteration(!options.reshuffle_each_iteration);
    shuffle->set_decorrelate(options.decorrelate);
  }
};

template <typename T>
class RepeatStream final : public ItemStream<T> {
 public:
  RepeatStream(StreamFactory<T> input, int64_t count, PassContext context)
      : input_(std::move(input)), count_(count), context_(context) {}

  absl::StatusOr<bool> Next(T* item) override {
    while (count_ == Dataset::kInfinite || pass_ < count_) {
      if (stream_ == nullptr) {
        PassContext context = context_;
        context.epoch = EpochOf(pass_);
        ASSIGN_OR_RETURN(stream_, input_(context));
        pass_is_empty_ = true;
      }
      ASSIGN_OR_RETURN(const bool more, stream_->Next(item));
      if (more) {
        pass_is_empty_ = false;
        return true;
      }
      stream_.reset();
      ++pass_;
      // The passes after an empty one are empty too.
      if (pass_is_empty_) break;
    }
    return false;
  }

 private:
  // A second pass over Repeat(n) continues to count epochs. An infinite
  // Repeat() has no second pass, unless the consumer stopped early.
  int64_t EpochOf(int64_t pass) const {
    if (context_.epoch == 0) return pass;
    const uint64_t epoch = static_cast<uint64_t>(context_.epoch);
    const uint64_t number = static_cast<uint64_t>(pass);
    return static_cast<int64_t>(count_ == Dataset::kInfinite
                                    ? FoldIn(epoch, number)
                                    : epoch * static_cast<uint64_t>(count_) +
                                          number);
  }

  const StreamFactory<T> input_;
  const int64_t count_;
  const PassContext context_;
  std::unique_ptr<ItemStream<T>> stream_;  // Null between passes.
  int64_t pass_ = 0;
  bool pass_is_empty_ = true;
};

struct RepeatStage {
  int64_t count;

  static constexpr StageKind kKind = StageKind::kElements;

  template <typename T>
  absl::StatusOr<std::unique_ptr<ItemStream<T>>> Order(
      StreamFactory<T> input, const PassContext& context) const {
    return std::make_unique<RepeatStream<T>>(std::move(input), count, context);
  }
  absl::StatusOr<NodePointer> MakeOn(NodePointer input) const {
    return MakeRepeat(std::move(input), count);
  }
  void EncodeStage(proto::DatasetStage* stage) const {
    stage->mutable_repeat()->set_count(count);
  }
};

// Skips `begin` items, then returns every `stride`-th until `count` are
// returned.
template <typename T>
class StridedStream final : public ItemStream<T> {
 public:
  StridedStream(std::unique_ptr<ItemStream<T>> input, int64_t begin,
                int64_t stride, int64_t count)
      : input_(std::move(input)),
        stride_(stride),
        left_(count),
        to_skip_(begin) {}

  absl::StatusOr<bool> Next(T* item) override {
    if (left_ == 0) return false;
    for (; to_skip_ > 0; --to_skip_) {
      ASSIGN_OR_RETURN(const bool more, input_->Next(item));
      if (!more) return false;
    }
    ASSIGN_OR_RETURN(const bool more, input_->Next(item));
    to_skip_ = stride_ - 1;
    if (more && left_ > 0) --left_;
    return more;
  }

 private:
  const std::unique_ptr<ItemStream<T>> input_;
  const int64_t stride_;
  int64_t left_;  // Dataset::kInfinite: all.
  int64_t to_skip_;
};

template <typename T>
absl::StatusOr<std::unique_ptr<ItemStream<T>>> MakeStrided(
    const StreamFactory<T>& input, const PassContext& context, int64_t begin,
    int64_t stride, int64_t count) {
  ASSIGN_OR_RETURN(std::unique_ptr<ItemStream<T>> stream, input(context));
  return std::make_unique<StridedStream<T>>(std::move(stream), begin, stride,
                                            count);
}

struct TakeStage {
  int64_t count;

  static constexpr StageKind kKind = StageKind::kCount;

  template <typename T>
  absl::StatusOr<std::unique_ptr<ItemStream<T>>> Order(
      const StreamFactory<T>& input, const PassContext& context) const {
    return MakeStrided(input, context, 0, 1, count);
  }
  absl::StatusOr<NodePointer> MakeOn(NodePointer input) const {
    return MakeTake(std::move(input), count);
  }
  void EncodeStage(proto::DatasetStage* stage) const {
    stage->mutable_take()->set_count(count);
  }
};

struct SkipStage {
  int64_t count;

  static constexpr StageKind kKind = StageKind::kCount;

  template <typename T>
  absl::StatusOr<std::unique_ptr<ItemStream<T>>> Order(
      const StreamFactory<T>& input, const PassContext& context) const {
    return MakeStrided(input, context, count, 1, Dataset::kInfinite);
  }
  absl::StatusOr<NodePointer> MakeOn(NodePointer input) const {
    return MakeSkip(std::move(input), count);
  }
  void EncodeStage(proto::DatasetStage* stage) const {
    stage->mutable_skip()->set_count(count);
  }
};

struct ShardStage {
  int64_t shard_count;
  int64_t index;

  static constexpr StageKind kKind = StageKind::kCount;

  template <typename T>
  absl::StatusOr<std::unique_ptr<ItemStream<T>>> Order(
      const StreamFactory<T>& input, const PassContext& context) const {
    return MakeStrided(input, context, index, shard_count, Dataset::kInfinite);
  }
  absl::StatusOr<NodePointer> MakeOn(NodePointer input) const {
    return MakeShard(std::move(input), shard_count, index);
  }
  void EncodeStage(proto::DatasetStage* stage) const {
    stage->mutable_shard()->set_shard_count(shard_count);
    stage->mutable_shard()->set_index(index);
  }
};

struct ShardByPipelineStage {
  static constexpr StageKind kKind = StageKind::kShardByPipeline;

  template <typename T>
  absl::StatusOr<std::unique_ptr<ItemStream<T>>> Order(
      const StreamFactory<T>& input, const PassContext& context) const {
    return MakeStrided(input, context, context.input.input_pipeline_id,
                       context.input.num_input_pipelines, Dataset::kInfinite);
  }
  absl::StatusOr<NodePointer> MakeOn(NodePointer input) const {
    return MakeShardByPipeline(std::move(input));
  }
  void EncodeStage(proto::DatasetStage* stage) const {
    stage->mutable_shard_by_pipeline();
  }
};

absl::Status NotNegative(const char* stage, int64_t count) {
  if (count >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(stage, ": count is ", count, "; expected 0 or more"));
}

int64_t RepeatedCardinality(int64_t cardinality, int64_t count) {
  if (cardinality == 0 || count == 0) return 0;
  // Data of unknown length that turns out to be empty still ends. Reporting an
  // unknown number of elements would be correct but useless.
  if (cardinality == Dataset::kInfinite || count == Dataset::kInfinite) {
    return Dataset::kInfinite;
  }
  if (cardinality == Dataset::kUnknownCardinality) return cardinality;
  int64_t product;
  return __builtin_mul_overflow(cardinality, count, &product)
             ? Dataset::kInfinite
             : product;
}

}  // namespace

absl::StatusOr<NodePointer> MakeShuffle(NodePointer input, int64_t buffer_size,
                                        const ShuffleOptions& options) {
  if (buffer_size < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Shuffle: buffer_size is ", buffer_size, "; expected at least 1"));
  }
  const int64_t cardinality = input->cardinality();
  return MakeNode(std::move(input), cardinality,
                  ShuffleStage{buffer_size, options});
}

absl::StatusOr<NodePointer> MakeRepeat(NodePointer input, int64_t count) {
  if (count != Dataset::kInfinite) {
    RETURN_IF_ERROR(NotNegative("Repeat", count));
  }
  const int64_t cardinality = RepeatedCardinality(input->cardinality(), count);
  return MakeNode(std::move(input), cardinality, RepeatStage{count});
}

absl::StatusOr<NodePointer> MakeTake(NodePointer input, int64_t count) {
  if (count != Dataset::kInfinite) RETURN_IF_ERROR(NotNegative("Take", count));
  int64_t cardinality = input->cardinality();
  if (count == 0 || (count > 0 && cardinality == Dataset::kInfinite)) {
    cardinality = count;
  } else if (count > 0 && cardinality >= 0) {
    cardinality = std::min(cardinality, count);
  }
  return MakeNode(std::move(input), cardinality, TakeStage{count});
}

absl::StatusOr<NodePointer> MakeSkip(NodePointer input, int64_t count) {
  RETURN_IF_ERROR(NotNegative("Skip", count));
  int64_t cardinality = input->cardinality();
  if (cardinality >= 0) cardinality = std::max<int64_t>(0, cardinality - count);
  return MakeNode(std::move(input), cardinality, SkipStage{count});
}

absl::StatusOr<NodePointer> MakeShard(NodePointer input, int64_t shard_count,
                                      int64_t index) {
  if (shard_count < 1 || index < 0 || index >= shard_count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Shard: index is ", index, " and shard_count ", shard_count,
        "; expected an index from 0 to below shard_count"));
  }
  int64_t cardinality = input->cardinality();
  if (cardinality >= 0) {
    cardinality =
        cardinality > index ? (cardinality - index - 1) / shard_count + 1 : 0;
  }
  return MakeNode(std::move(input), cardinality,
                  ShardStage{shard_count, index});
}

absl::StatusOr<NodePointer> MakeShardByPipeline(NodePointer input) {
  // The number of elements of a pipeline depends on its index.
  const int64_t cardinality = input->cardinality() > 0
                                  ? Dataset::kUnknownCardinality
                                  : input->cardinality();
  return MakeNode(std::move(input), cardinality, ShardByPipelineStage{});
}

}  // namespace muster
