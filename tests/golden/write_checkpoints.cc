// Writes the checkpoints that read_checkpoints.py reads with TensorFlow into
// the given folder.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/checkpoint_manager.h"
#include "common/io/checkpoint/object_graph.h"
#include "common/io/checkpoint/publish_tensor_bundle.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"
#include "common/io/checkpoint/tensor_slice.h"
#include "common/io/storage/disk.h"

namespace muster {
namespace {

template <typename T>
Tensor Counting(const Shape& shape, T step) {
  Tensor tensor(DTypeOf<T>(), shape);
  T value = T();
  for (T& element : tensor.mutable_flat<T>()) {
    element = value;
    value = static_cast<T>(value + step);
  }
  return tensor;
}

absl::Status WriteDTypes(const std::string& prefix) {
  ASSIGN_OR_RETURN(const auto writer,
                   TensorBundleWriter::Create(Disk::Real(), prefix));
  const Shape shape = {2, 3};
  RETURN_IF_ERROR(writer->Add("float32", Counting<float>(shape, 0.25f)));
  RETURN_IF_ERROR(writer->Add("float64", Counting<double>(shape, 0.125)));
  RETURN_IF_ERROR(
      writer->Add("bfloat16", Tensor::Full(DType::kBfloat16, shape, 1.5)));
  RETURN_IF_ERROR(
      writer->Add("float16", Tensor::Full(DType::kFloat16, shape, 2.5)));
  RETURN_IF_ERROR(writer->Add("int32", Counting<int32_t>(shape, -7)));
  RETURN_IF_ERROR(
      writer->Add("int64", Counting<int64_t>(shape, int64_t{1} << 40)));
  RETURN_IF_ERROR(writer->Add("uint8", Counting<uint8_t>(shape, 50)));
  RETURN_IF_ERROR(
      writer->Add("bool", Tensor::FromValues<bool>({2}, {true, false})));
  RETURN_IF_ERROR(writer->Add(
      "string", Tensor::FromValues<std::string>(
                    {2, 2}, {"", "a", std::string("zero \0 within", 13),
                             std::string(300, 'x')})));
  RETURN_IF_ERROR(writer->Add("scalar", Tensor::Scalar<float>(-2.5f)));
  RETURN_IF_ERROR(writer->Add("empty", Tensor(DType::kFloat32, {0, 3})));
  // Enough variables for several blocks of the index.
  for (int i = 0; i < 20000; ++i) {
    RETURN_IF_ERROR(writer->Add(absl::StrCat("many/variable_", i),
                                Tensor::Scalar<int32_t>(i)));
  }
  RETURN_IF_ERROR(writer->Finish());
  return PublishTensorBundle(Disk::Real(), prefix, 1);
}

absl::Status WritePartitioned(const std::string& prefix) {
  const Shape full = {7, 4};
  const Tensor table = Counting<float>(full, 1);
  constexpr int kBounds[] = {0, 3, 6, 7};
  for (int shard = 0; shard < 3; ++shard) {
    const int begin = kBounds[shard];
    const int end = kBounds[shard + 1];
    ASSIGN_OR_RETURN(const auto writer,
                     TensorBundleWriter::Create(Disk::Real(), prefix,
                                                {.index = shard, .count = 3}));
    RETURN_IF_ERROR(writer->AddSlice("table", full,
                                     TensorSlice::Rows(full, begin, end),
                                     table.SliceRows(begin, end)));
    RETURN_IF_ERROR(writer->Add(absl::StrCat("own_", shard),
                                Tensor::Scalar<int64_t>(shard)));
    RETURN_IF_ERROR(writer->Finish());
  }
  return PublishTensorBundle(Disk::Real(), prefix, 3);
}

absl::Status WriteObjects(int64_t save_counter, TensorBundleWriter* writer) {
  ObjectGraphBuilder graph;
  const ObjectPath kernel = {"model", "dense", "kernel"};
  const auto add = [&](const ObjectPath& path, absl::string_view name,
                       const Tensor& value) -> absl::Status {
    ASSIGN_OR_RETURN(const std::string key, graph.AddVariable(path, name));
    return writer->Add(key, value);
  };
  RETURN_IF_ERROR(add(kernel, "dense/kernel", Counting<float>({2, 2}, 1)));
  RETURN_IF_ERROR(add({"model", "dense", "bias"}, "dense/bias",
                      Tensor::FromValues<float>({2}, {0.5f, -0.5f})));
  RETURN_IF_ERROR(add({"a.b/c"}, "odd", Tensor::Scalar<float>(3)));
  RETURN_IF_ERROR(add({"step"}, "step", Tensor::Scalar<int64_t>(7)));
  RETURN_IF_ERROR(add({"save_counter"}, "save_counter",
                      Tensor::Scalar<int64_t>(save_counter)));
  ASSIGN_OR_RETURN(const std::string slot,
                   graph.AddSlot(kernel, {"optimizer"}, "momentum",
                                 "dense/kernel/Momentum"));
  RETURN_IF_ERROR(writer->Add(slot, Tensor::Full(DType::kFloat32, {2, 2}, 9)));
  return graph.WriteTo(writer);
}

// Writes variables by name, without an object graph.
absl::Status WriteNames(TensorBundleWriter* writer) {
  RETURN_IF_ERROR(writer->Add("dense/kernel", Counting<float>({2, 2}, 1)));
  return writer->Add("dense/bias",
                     Tensor::FromValues<float>({2}, {0.5f, -0.5f}));
}

absl::Status WriteManaged(const std::string& folder, bool has_objects) {
  ASSIGN_OR_RETURN(
      const auto manager,
      CheckpointManager::Create({.folder = folder, .checkpoint_count_max = 2}));
  for (int number = 1; number <= 3; ++number) {
    RETURN_IF_ERROR(manager
                        ->Save([&](TensorBundleWriter* writer) {
                          return has_objects ? WriteObjects(number, writer)
                                             : WriteNames(writer);
                        })
                        .status());
  }
  return absl::OkStatus();
}

// Reads the checkpoint that read_checkpoints.py has written with TensorFlow.
absl::Status ReadBack(const std::string& folder) {
  ASSIGN_OR_RETURN(const auto manager,
                   CheckpointManager::Create({.folder = folder}));
  ASSIGN_OR_RETURN(const auto reader, manager->OpenLatest());
  std::printf("%s: %zu tensors\n", reader->prefix().c_str(),
              reader->tensors().size());
  return absl::OkStatus();
}

absl::Status Run(const std::string& folder) {
  RETURN_IF_ERROR(WriteDTypes(folder + "/dtypes"));
  RETURN_IF_ERROR(WritePartitioned(folder + "/partitioned"));
  RETURN_IF_ERROR(WriteManaged(folder + "/objects", true));
  return WriteManaged(folder + "/names", false);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  const bool is_reading = argc == 3 && absl::string_view(argv[1]) == "--read";
  if (argc != 2 && !is_reading) {
    std::fprintf(stderr, "usage: %s [--read] FOLDER\n", argv[0]);
    return 2;
  }
  const absl::Status status =
      is_reading ? muster::ReadBack(argv[2]) : muster::Run(argv[1]);
  if (status.ok()) return 0;
  LOG(ERROR) << status.message();
  return 1;
}
