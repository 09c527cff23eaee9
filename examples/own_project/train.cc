// Fits y = 3x + 1, and prints the result.
#include <iostream>
#include <vector>

#include "muster.h"

absl::Status Train(muster::Task&) {
  using namespace muster;
  std::vector<float> x(256), y(256);
  for (int i = 0; i < 256; ++i) y[i] = 3 * (x[i] = i / 256.0f) + 1;
  Model model = Sequential({Dense(1)});
  RETURN_IF_ERROR(model.Compile(
      {.optimizer = Adam({.learning_rate = 0.3}), .loss = MeanSquaredError()}));
  RETURN_IF_ERROR(model
                      .Fit({Tensor::FromSpan<float>({256, 1}, x),
                            Tensor::FromSpan<float>({256, 1}, y)},
                           {.epochs = 20})
                      .status());
  ASSIGN_OR_RETURN(const std::vector<Tensor> weights, model.GetWeights());
  std::cout << "y = " << weights[0].flat<float>()[0] << " x + "
            << weights[1].flat<float>()[0] << "\n";
  return absl::OkStatus();
}

int main(int argc, char** argv) { return muster::RunTask(argc, argv, Train); }
