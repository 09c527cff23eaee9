#include "common/learn/train/keras/keras_variables.h"

#include <memory>
#include <string>

#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/io/keras/hdf5_reader.h"
#include "common/io/keras/hdf5_writer.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// The path of the group `path` in a file with one array.
std::string Found(const std::string& array, const std::string& path) {
  const std::unique_ptr<Hdf5Writer> writer = Hdf5Writer::Create().value();
  EXPECT_OK(writer->Add(array, Tensor::Scalar<float>(1)));
  const std::unique_ptr<Hdf5Reader> file =
      Hdf5Reader::Open("file", writer->Finish().value()).value();
  return GroupInFile(*file, path);
}

TEST(KerasVariablesTest, FindsTheGroupsOfEveryVersion) {
  EXPECT_EQ(Found("layers/dense_1/vars/0", "layers/dense_1"), "layers/dense_1");
  // Keras 2.13 counts each layer twice.
  EXPECT_EQ(Found("_layer_checkpoint_dependencies/a/"
                  "_layer_checkpoint_dependencies/dense_4/vars/0",
                  "layers/a/layers/dense_2"),
            "_layer_checkpoint_dependencies/a/"
            "_layer_checkpoint_dependencies/dense_4");
  EXPECT_EQ(
      Found("_layer_checkpoint_dependencies/conv2d/vars/0", "layers/conv2d"),
      "_layer_checkpoint_dependencies/conv2d");
  // Private names of parts.
  EXPECT_EQ(Found("layers/multi_head_attention/_query_dense/vars/0",
                  "layers/multi_head_attention/query_dense"),
            "layers/multi_head_attention/_query_dense");
  // Windows.
  EXPECT_EQ(Found("layers\\lstm\\cell/vars/0", "layers/lstm/cell"),
            "layers\\lstm\\cell");
  EXPECT_EQ(Found("layers/other/vars/0", "layers/dense"), "layers/dense");
}

}  // namespace
}  // namespace muster
