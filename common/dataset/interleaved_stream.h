#ifndef COMMON_DATASET_INTERLEAVED_STREAM_H_
#define COMMON_DATASET_INTERLEAVED_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/core/base/status_macros.h"
#include "common/dataset/dataset.h"
#include "common/dataset/dataset_node.h"

namespace muster {

inline constexpr int64_t kCycleLengthMax = 1024;

//   kInvalidArgument  an option is out of range; begins with `stage`
absl::Status CheckInterleave(const char* stage,
                             const InterleaveOptions& options);

// Draws from several streams alternately, in tf.data's order: a slot of the
// cycle whose stream ended loses its turn, and gets the next stream at its next
// turn.
template <typename T>
class InterleavedStream final : public ItemStream<T> {
 public:
  // Returns the streams to interleave; null when there are no more.
  using NextStream =
      std::function<absl::StatusOr<std::unique_ptr<ItemStream<T>>>()>;

  InterleavedStream(NextStream next_stream, const InterleaveOptions& options)
      : next_stream_(std::move(next_stream)),
        block_length_(options.block_length),
        cycle_(static_cast<size_t>(options.cycle_length)) {}

  absl::StatusOr<bool> Next(T* item) override {
    while (!inputs_ended_ || open_count_ > 0) {
      std::unique_ptr<ItemStream<T>>& stream = cycle_[turn_];
      if (stream == nullptr) {
        if (!inputs_ended_) {
          ASSIGN_OR_RETURN(stream, next_stream_());
          inputs_ended_ = stream == nullptr;
        }
        if (stream == nullptr) {
          NextTurn();
          continue;
        }
        ++open_count_;
      }
      ASSIGN_OR_RETURN(const bool more, stream->Next(item));
      if (more) {
        if (++drawn_ == block_length_) NextTurn();
        return true;
      }
      stream.reset();
      --open_count_;
      NextTurn();
    }
    return false;
  }

 private:
  void NextTurn() {
    turn_ = (turn_ + 1) % cycle_.size();
    drawn_ = 0;
  }

  const NextStream next_stream_;
  const int64_t block_length_;
  std::vector<std::unique_ptr<ItemStream<T>>> cycle_;  // Null: free.
  size_t turn_ = 0;
  int64_t drawn_ = 0;  // In the current turn.
  int64_t open_count_ = 0;
  bool inputs_ended_ = false;
};

}  // namespace muster

#endif  // COMMON_DATASET_INTERLEAVED_STREAM_H_
