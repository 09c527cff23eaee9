#ifndef COMMON_LEARN_NN_PROGRAMS_PROGRAM_LAYER_H_
#define COMMON_LEARN_NN_PROGRAMS_PROGRAM_LAYER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/programs/program.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/weight.h"

namespace muster {

// The parts of a layer that a program computes. Encoded programs and types are
// text, as files of Keras have them; ProgramLayer's constructor reads them.
struct ProgramLayerOptions {
  // Programs in their encoded form (common/compute/programs/program.h):
  //
  //   training    inputs, weights, seeds
  //               -> outputs, added loss, differences of updated weights
  //   inference   inputs, weights -> outputs, added loss
  //
  // The gradients of a loss (Program::Gradient::is_of_loss) follow these
  // outputs.
  //
  // The program for training has a gradient for the inputs and the trainable
  // weights.
  std::string training_program;
  std::string inference_program;
  int64_t input_count = 1;
  int64_t output_count = 1;
  // Names without "/", and types such as "float32[3,4]". Trainable weights come
  // first.
  std::vector<std::string> weight_names;
  std::vector<std::string> weight_types;
  int64_t trainable_count = 0;
  // Messages proto::Constraint in text form, one for each weight; empty for
  // weights without constraint. No entries: none has one.
  std::vector<std::string> weight_constraints;
  // The indices of the weights that training updates other than by gradients:
  // the program returns what is to be added to each.
  std::vector<int64_t> updated_weights;
  // The number of seeds, int32[2]: one for each random generator of the layer.
  int64_t seed_count = 0;
  // True if the programs return a scalar that is added to the loss.
  bool adds_loss = false;
  std::string name = "";
};

// A layer whose function is a program, such as JAX exports of a layer or a
// model in Python. Random numbers differ between steps and between replicas.
//
// Weights are zeros until they are loaded. Updates of floating-point weights by
// replicas that train in sync are averaged; of other weights, those of the
// first replica are taken. A replica without examples updates nothing.
//
// Errors, which are reported when the layer is called: a program is invalid, or
// its types are not those of the inputs, weights and outputs.
class ProgramLayer : public Layer {
 public:
  explicit ProgramLayer(ProgramLayerOptions options);

  int input_count() const override {
    return static_cast<int>(options_.input_count);
  }
  int output_count() const override {
    return static_cast<int>(options_.output_count);
  }
  bool mixes_examples() const override { return true; }
  void VisitConfig(ConfigVisitor& visitor) override;

 protected:
  Precision precision() const override { return Precision::kAsTheyCome; }
  void BuildMany(absl::Span<const Shape> inputs) override;
  std::vector<Value> CallMany(absl::Span<const Value> inputs,
                              const CallContext& context) override;

 private:
  // Returns the arguments of `program` for these inputs of the layer.
  std::vector<Value> Arguments(absl::Span<const Value> inputs,
                               const Program& program,
                               const CallContext& context) const;

  ProgramLayerOptions options_;
  std::vector<Weight> weights_;
};

// Equivalent to: a layer or a subclassed model of the user's in Keras.
LayerPtr MakeProgramLayer(ProgramLayerOptions options);

}  // namespace muster

#endif  // COMMON_LEARN_NN_PROGRAMS_PROGRAM_LAYER_H_
