// Files with data, checkpoints and models.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/files/record_files.h"
#include "common/dataset/files/sources.h"
#include "common/io/checkpoint/checkpoint_state.h"
#include "common/io/checkpoint/publish_tensor_bundle.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"
#include "common/io/image/decode_image.h"
#include "common/io/keras/hdf5_reader.h"
#include "common/io/keras/hdf5_writer.h"
#include "common/io/keras/keras_archive.h"
#include "common/io/records/byte_source.h"
#include "common/io/records/example.h"
#include "common/io/records/record_reader.h"
#include "common/io/storage/object_url.h"
#include "common/io/storage/s3_xml.h"
#include "common/io/storage/testing/simulated_disk.h"
#include "common/io/tar/tar_stream.h"
#include "proto/example.pb.h"
#include "tests/fuzz/fuzz_target.h"

namespace muster {
namespace {

// Maximum number of elements that are read from a dataset or a file of records.
constexpr int kFileElementsMax = 1000;
// Maximum number of elements that a mutant may create from a few bytes.
constexpr int64_t kElementCountMax = 1 << 20;

// Returns the content of a file of the source tree.
std::string ReadSource(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file),
                     std::istreambuf_iterator<char>());
}

// Returns the path of a file in memory with this content, for readers that need
// a path. Each call replaces the previous file.
std::string FileWith(absl::string_view content) {
  static const int fd = memfd_create("fuzz_input", 0);
  if (ftruncate(fd, 0) != 0 || pwrite(fd, content.data(), content.size(), 0) !=
                                   static_cast<ssize_t>(content.size())) {
    return "";
  }
  return absl::StrCat("/proc/self/fd/", fd);
}

bool Draw(const Dataset& dataset) {
  if (!dataset.status().ok()) return false;
  const auto iterator = dataset.MakeIterator();
  if (!iterator.ok()) return false;
  Element element;
  for (int i = 0; i < kFileElementsMax; ++i) {
    const auto has_element = (*iterator)->Next(&element);
    if (!has_element.ok()) return false;
    if (!*has_element) break;
  }
  return true;
}

// The input is two bytes with the size of the index, the index, and the data.
bool RunBundle(absl::string_view input) {
  if (input.size() < 2) return false;
  const size_t wanted = static_cast<uint8_t>(input[0]) |
                        size_t{static_cast<uint8_t>(input[1])} << 8;
  input.remove_prefix(2);
  const size_t index_bytes = std::min(wanted, input.size());
  SimulatedDisk disk;
  disk.Set("d/c.index", input.substr(0, index_bytes));
  disk.Set("d/c.data-00000-of-00001", input.substr(index_bytes));
  const auto reader = TensorBundleReader::Open(&disk, "d/c");
  if (!reader.ok()) return false;
  bool is_valid = (*reader)->Verify().ok();
  for (const StoredTensor& tensor : (*reader)->tensors()) {
    if (tensor.shape.element_count() > kElementCountMax) continue;
    is_valid = (*reader)->Read(tensor.name).ok() && is_valid;
  }
  return is_valid;
}

std::vector<std::string> BundleSeeds() {
  SimulatedDisk disk;
  auto writer = TensorBundleWriter::Create(&disk, "d/c");
  const bool is_written =
      writer.ok() &&
      (*writer)
          ->Add("w",
                Tensor::FromValues<float>(Shape({2, 3}), {1, 2, 3, 4, 5, 6}))
          .ok() &&
      (*writer)
          ->Add("names",
                Tensor::FromValues<std::string>(Shape({2}), {"a", "bc"}))
          .ok() &&
      (*writer)->Finish().ok() && PublishTensorBundle(&disk, "d/c", 1).ok();
  if (!is_written) return {""};
  const std::string index = disk.Get("d/c.index");
  return {absl::StrCat(std::string({static_cast<char>(index.size() & 0xff),
                                    static_cast<char>(index.size() >> 8)}),
                       index, disk.Get("d/c.data-00000-of-00001"))};
}

bool RunCheckpointState(absl::string_view input) {
  SimulatedDisk disk;
  disk.Set("d/checkpoint", input);
  return ReadCheckpointState(&disk, "d").ok();
}

std::vector<std::string> CheckpointStateSeeds() {
  return {
      "model_checkpoint_path: \"ckpt-2\"\n"
      "all_model_checkpoint_paths: \"ckpt-1\"\n"
      "all_model_checkpoint_paths: \"ckpt-2\"\n"
      "all_model_checkpoint_timestamps: 1700000000.5\n"};
}

bool RunTfRecord(absl::string_view input) {
  RecordReader reader(CreateStringSource("input", input));
  std::string record;
  bool is_valid = true;
  for (int i = 0; i < kFileElementsMax; ++i) {
    const auto has_record = reader.Next(&record);
    is_valid = is_valid && has_record.ok();
    if (has_record.ok() ? !*has_record : !reader.can_continue()) break;
  }
  return is_valid;
}

std::vector<std::string> TfRecordSeeds() {
  // The first record of an event file, as TensorFlow writes it.
  return {absl::HexStringToBytes(
      "1800000000000000a37f4b220900000040fc54d9411a0d627261696e2e4576656e743a32"
      "eced8f9d")};
}

bool RunCompressedTfRecord(absl::string_view input) {
  bool is_valid = false;
  for (const auto compression :
       {RecordCompression::kGzip, RecordCompression::kZlib}) {
    TfRecordOptions options;
    options.compression = compression;
    is_valid = Draw(TfRecordDataset({FileWith(input)}, options)) || is_valid;
  }
  return is_valid;
}

std::vector<std::string> CompressedTfRecordSeeds() {
  // Empty data, compressed with gzip.
  return {absl::HexStringToBytes("1f8b080000000000000303000000000000000000")};
}

bool RunExample(absl::string_view input) {
  const auto example = ParseExampleMessage(input);
  if (!example.ok()) return false;
  bool is_valid = true;
  for (const auto& [key, feature] : example->features().feature()) {
    bool has_kind = false;
    for (const DType dtype : {DType::kFloat32, DType::kInt64, DType::kString}) {
      Tensor fixed;
      Tensor padded;
      has_kind |= FeatureToTensor(
                      &feature,
                      {.key = key, .dtype = dtype, .shape = Shape({2})}, &fixed)
                      .ok();
      has_kind |= FeatureToTensor(&feature,
                                  {.key = key,
                                   .dtype = dtype,
                                   .shape = Shape({4, 2}),
                                   .padded = true},
                                  &padded)
                      .ok();
    }
    is_valid = is_valid && has_kind;
  }
  return is_valid;
}

std::vector<std::string> ExampleSeeds() {
  proto::Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  features["f"].mutable_float_list()->add_value(1.5F);
  features["f"].mutable_float_list()->add_value(-2);
  features["i"].mutable_int64_list()->add_value(7);
  features["i"].mutable_int64_list()->add_value(-1);
  features["b"].mutable_bytes_list()->add_value("ab");
  features["b"].mutable_bytes_list()->add_value("");
  return {SerializeExample(example)};
}

bool RunImage(absl::string_view input) {
  bool is_valid = true;
  for (const int channels : {0, 3}) {
    DecodeImageOptions options;
    options.channels = channels;
    options.pixel_count_max = kElementCountMax;
    Image image;
    is_valid = DecodeImage(input, options, &image).ok() && is_valid;
  }
  return is_valid;
}

std::vector<std::string> ImageSeeds() {
  const nlohmann::json golden = nlohmann::json::parse(
      ReadSource("tests/golden/data/images.json"), nullptr,
      /*allow_exceptions=*/false);
  std::vector<std::string> seeds;
  if (!golden.is_object()) return seeds;
  for (const auto& test_case : golden["cases"]) {
    const auto& config = test_case["config"];
    if (config.value("op", "") != "decode_image") continue;
    if (config.value("channels", 0) != 0) continue;
    seeds.push_back(
        absl::HexStringToBytes(config.value("content", std::string())));
  }
  return seeds;
}

bool RunCsv(absl::string_view input) {
  const std::string path = FileWith(input);
  CsvOptions labelled;
  labelled.label_column = "label";
  const bool is_valid = Draw(Csv(path, labelled));
  return Draw(Csv(path)) || is_valid;
}

std::vector<std::string> CsvSeeds() {
  return {"a,b,label\n1,2.5,0\n-3,\"4\",1\r\n", "x\n1e3\n\n"};
}

bool RunIdx(absl::string_view input) { return Draw(Idx(FileWith(input))); }

std::vector<std::string> IdxSeeds() {
  return {absl::HexStringToBytes("00000803000000020000000100000002"
                                 "01020304"),
          absl::HexStringToBytes("0000080100000003050607")};
}

bool RunNpy(absl::string_view input) {
  return Draw(NpyDataset({FileWith(input)}));
}

std::vector<std::string> NpySeeds() {
  std::string header =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }";
  header.resize(117, ' ');
  header.push_back('\n');
  return {absl::StrCat(std::string("\x93NUMPY\x01\x00", 8),
                       std::string({static_cast<char>(header.size()), '\0'}),
                       header, std::string(8, '\0'))};
}

bool RunTextLines(absl::string_view input) {
  return Draw(TextLineDataset({FileWith(input)}));
}

std::vector<std::string> TextLinesSeeds() { return {"one\ntwo\r\n\nthree"}; }

// Reads every array, group by group.
bool ReadGroup(const Hdf5Reader& reader, const std::string& group, int depth) {
  constexpr int kDepthMax = 16;
  if (depth > kDepthMax) return false;
  const auto names = reader.List(group);
  if (!names.ok()) return false;
  bool is_valid = true;
  for (const std::string& name : *names) {
    const std::string path = absl::StrCat(group, "/", name);
    is_valid = (reader.Read(path).ok() || ReadGroup(reader, path, depth + 1)) &&
               is_valid;
  }
  return is_valid;
}

bool RunHdf5(absl::string_view input) {
  const auto reader = Hdf5Reader::Open("input", std::string(input));
  if (!reader.ok()) return false;
  bool is_valid = false;
  for (const char* const group : {"layers", "optimizer", "vars"}) {
    if (!(*reader)->Contains(group)) continue;
    is_valid = ReadGroup(**reader, group, 0);
    if (!is_valid) return false;
  }
  return is_valid;
}

std::vector<std::string> Hdf5Seeds() {
  const auto writer = Hdf5Writer::Create();
  if (!writer.ok() ||
      !(*writer)
           ->Add("layers/dense/vars/0",
                 Tensor::FromValues<float>(Shape({2, 2}), {1, 2, 3, 4}))
           .ok()) {
    return {""};
  }
  return {(*writer)->Finish().value_or("")};
}

bool RunKerasArchive(absl::string_view input) {
  SimulatedDisk disk;
  disk.Set("d/m.keras", input);
  const auto archive = ReadKerasArchive(&disk, "d/m.keras");
  return archive.ok() && RunHdf5(archive->weights);
}

std::vector<std::string> KerasArchiveSeeds() {
  return {ReadSource("tests/golden/keras_files/mlp.keras")};
}

// The response of an object store to a listing.
bool RunObjectListing(absl::string_view input) {
  bool is_valid = false;
  for (const absl::string_view element : XmlElements(input, "Contents")) {
    const std::string key = UrlUnescape(XmlText(element, "Key"));
    is_valid |= ParseObjectUrl(absl::StrCat("s3://bucket/", key)).ok();
  }
  return is_valid && XmlText(input, "IsTruncated") == "false";
}

std::vector<std::string> ObjectListingSeeds() {
  return {
      "<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>false"
      "</IsTruncated><Contents><Key>a/b%20c&amp;d</Key><Size>3</Size>"
      "</Contents><Contents><Key>e</Key></Contents></ListBucketResult>"};
}

// An archive of tar, which `musterctl copy` reads.
bool RunTar(absl::string_view input) {
  TarReader reader([input](absl::Span<uint8_t> bytes) mutable {
    const size_t count = std::min(bytes.size(), input.size());
    std::copy_n(input.begin(), count, bytes.begin());
    input.remove_prefix(count);
    return absl::StatusOr<size_t>(count);
  });
  while (true) {
    const auto file = reader.Next();
    if (!file.ok()) return false;
    if (!file->has_value()) return true;
  }
}

std::vector<std::string> TarSeeds() {
  std::string archive;
  TarWriter writer([&](absl::Span<const uint8_t> bytes) {
    archive.append(bytes.begin(), bytes.end());
    return absl::OkStatus();
  });
  const std::string content = "content";
  for (const size_t length : {1, 150}) {
    const std::string name(length, 'n');
    if (!writer.Begin({.name = name, .size_bytes = 7}).ok() ||
        !writer
             .Append(absl::MakeSpan(
                 reinterpret_cast<const uint8_t*>(content.data()), 7))
             .ok()) {
      return {""};
    }
  }
  return {writer.Finish().ok() ? archive : ""};
}

}  // namespace

std::vector<FuzzTarget> FileFuzzTargets() {
  return {
      {"bundle", RunBundle, BundleSeeds},
      {"checkpoint_state", RunCheckpointState, CheckpointStateSeeds},
      {"tfrecord", RunTfRecord, TfRecordSeeds},
      {"compressed_tfrecord", RunCompressedTfRecord, CompressedTfRecordSeeds},
      {"example", RunExample, ExampleSeeds},
      {"image", RunImage, ImageSeeds},
      {"csv", RunCsv, CsvSeeds},
      {"idx", RunIdx, IdxSeeds},
      {"npy", RunNpy, NpySeeds},
      {"text_lines", RunTextLines, TextLinesSeeds},
      {"hdf5", RunHdf5, Hdf5Seeds},
      {"keras_archive", RunKerasArchive, KerasArchiveSeeds},
      {"object_listing", RunObjectListing, ObjectListingSeeds},
      {"tar", RunTar, TarSeeds}};
}

}  // namespace muster
