#include <iostream>
#include <string>

#include "muster.h"

// Learns to read the handwritten digits of examples/data/digits.
absl::Status Train(muster::Task& task) {
  using namespace muster;
  Model model = Sequential({
      Dense(64, {.activation = Activation::kRelu}),
      Dense(10),
  });
  RETURN_IF_ERROR(model.Compile({
      .optimizer = Adam(),
      .loss = SparseCategoricalCrossentropy({.from_logits = true}),
      .metrics = {SparseCategoricalAccuracy()},
  }));
  const CsvOptions csv = {.label_column = "label", .scale = 1.0 / 16};
  ASSIGN_OR_RETURN(const std::string data_dir, task.flag("data_dir"));
  const Dataset train = Csv(data_dir + "/train.csv", csv);
  const Dataset test = Csv(data_dir + "/test.csv", csv);
  ASSIGN_OR_RETURN(
      const History history,
      model.Fit(train.Shuffle(1437).Batch(32),
                {.epochs = 20, .validation_data = test.Batch(32)}));
  std::cout << model.Summary() << history.history.at("val_loss").back() << "\n";
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  return muster::RunTask(argc, argv, Train,
                         {{"data_dir", ".", "Has train.csv and test.csv."}});
}
