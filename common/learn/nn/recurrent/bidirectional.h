#ifndef COMMON_LEARN_NN_RECURRENT_BIDIRECTIONAL_H_
#define COMMON_LEARN_NN_RECURRENT_BIDIRECTIONAL_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/recurrent/recurrent_layer.h"
#include "common/learn/nn/wrapper.h"

namespace muster {

// How the outputs of both directions become one. kNone: they stay two outputs.
enum class BidirectionalMerge { kConcat, kSum, kMul, kAve, kNone };

struct BidirectionalOptions {
  BidirectionalMerge merge_mode = BidirectionalMerge::kConcat;
  // A recurrent layer of the other direction, with the same return_sequences,
  // return_state and stateful. Null: a layer like the forward one, with weights
  // of its own.
  LayerPtr backward_layer = nullptr;
  std::string name = "";
};

// Runs a recurrent layer over the sequence, and another one over the reversed
// sequence. With return_sequences, the outputs of the second are put in the
// order of the input's time steps.
//
//   concat: [forward, backward] along the last axis
//   sum:    forward + backward
//   mul:    forward * backward
//   ave:    (forward + backward) / 2
//   none:   forward and backward as two outputs
//
// Inputs: as of RecurrentLayer, with the initial states of the forward layer
// followed by those of the backward layer. Outputs: the merged output, or two
// of them, and with return_state the last states in the same order. With
// return_sequences, outputs at masked time steps are 0 before they are merged.
//
// Weights: those of both layers, which are named "forward_<layer>" and
// "backward_<layer>". The layer given as the forward one belongs to this layer
// from then on.
//
// Source: Schuster and Paliwal, "Bidirectional Recurrent Neural Networks",
// 1997; keras.layers.Bidirectional.
class BidirectionalLayer : public WrapperLayer {
 public:
  BidirectionalLayer(const LayerPtr& layer,
                     const BidirectionalOptions& options);

  int input_count() const override { return kAnyCount; }
  int output_count() const override;
  void VisitConfig(ConfigVisitor& visitor) override;
  std::vector<Part> parts() const override;

 protected:
  std::vector<Value> CallMany(absl::Span<const Value> inputs,
                              const CallContext& context) override;

 private:
  // Names the layers, and adds the backward one where none is given. Does
  // nothing before the forward layer is there, or when it is done.
  void Adopt();
  // Returns the mistake in the layers; empty if there is none.
  std::string Mistake() const;
  // Appends the merged outputs to `outputs`.
  void Merge(Value forward, Value backward, std::vector<Value>* outputs) const;

  LayerPtr forward_;
  LayerPtr backward_;
  BidirectionalMerge merge_mode_;
};

// Example: Bidirectional(LSTM(8, {.sequence = {.return_sequences = true}})).
//
// Equivalent to: keras.layers.Bidirectional.
LayerPtr Bidirectional(const LayerPtr& layer,
                       const BidirectionalOptions& options = {});

}  // namespace muster

#endif  // COMMON_LEARN_NN_RECURRENT_BIDIRECTIONAL_H_
