#include "hdf5.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/io/keras/hdf5_reader.h"
#include "common/io/keras/hdf5_writer.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Tensor& Kernel() {
  static const auto& kKernel = *new Tensor(
      Tensor::FromValues<float>({2, 3}, {1, -2, 3.5, 4, 5, 1e-30f}));
  return kKernel;
}

std::string SmallFile() {
  const auto writer = Hdf5Writer::Create().value();
  EXPECT_OK(writer->Add("layers/dense/vars/0", Kernel()));
  EXPECT_OK(writer->AddAttribute("layers/dense/vars", "name", "dense"));
  EXPECT_OK(
      writer->Add("optimizer/vars/0", Tensor::Scalar<int64_t>(int64_t{7})));
  EXPECT_OK(writer->AddGroup("layers/dropout/vars"));
  return writer->Finish().value();
}

TEST(Hdf5Test, ReadsFilesThatItWrites) {
  ASSERT_OK_AND_ASSIGN(const auto reader,
                       Hdf5Reader::Open("x.h5", SmallFile()));
  ASSERT_OK_AND_ASSIGN(const Tensor kernel,
                       reader->Read("layers/dense/vars/0"));
  EXPECT_TRUE(BitwiseEqual(kernel, Kernel()));
  ASSERT_OK_AND_ASSIGN(const Tensor count, reader->Read("optimizer/vars/0"));
  EXPECT_EQ(count.scalar<int64_t>(), 7);
  EXPECT_EQ(count.shape(), Shape());
  EXPECT_THAT(reader->List("layers"),
              IsOkAndHolds(ElementsAre("dense", "dropout")));
  EXPECT_TRUE(reader->Contains("layers/dropout"));
  EXPECT_FALSE(reader->Contains("layers/lstm"));
}

TEST(Hdf5Test, SeveralFilesAreOpenAtTheSameTime) {
  ASSERT_OK_AND_ASSIGN(const auto first, Hdf5Reader::Open("x.h5", SmallFile()));
  ASSERT_OK_AND_ASSIGN(const auto writer, Hdf5Writer::Create());
  ASSERT_OK(writer->Add("count", Tensor::Scalar<int64_t>(int64_t{8})));
  ASSERT_OK_AND_ASSIGN(const std::string bytes, writer->Finish());
  ASSERT_OK_AND_ASSIGN(const auto second, Hdf5Reader::Open("y.h5", bytes));
  EXPECT_TRUE(first->Contains("optimizer/vars/0"));
  EXPECT_FALSE(second->Contains("optimizer/vars/0"));
  ASSERT_OK_AND_ASSIGN(const Tensor count, second->Read("count"));
  EXPECT_EQ(count.scalar<int64_t>(), 8);
}

TEST(Hdf5Test, KeepsEveryTypeAndEmptyArrays) {
  const std::vector<Tensor> tensors = {
      Tensor::FromValues<double>({2}, {0.1, -1e300}),
      Tensor::FromValues<float16>({2}, {float16(0.5f), float16(-3.0f)}),
      Tensor::FromValues<int32_t>({2}, {1, -2}),
      Tensor::FromValues<int64_t>({1}, {int64_t{1} << 40}),
      Tensor::FromValues<uint8_t>({2}, {0, 255}),
      Tensor(DType::kFloat32, {0, 4})};
  ASSERT_OK_AND_ASSIGN(const auto writer, Hdf5Writer::Create());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_OK(writer->Add("v/" + std::to_string(i), tensors[i]));
  }
  ASSERT_OK_AND_ASSIGN(const std::string bytes, writer->Finish());
  ASSERT_OK_AND_ASSIGN(const auto reader, Hdf5Reader::Open("x.h5", bytes));
  for (size_t i = 0; i < tensors.size(); ++i) {
    ASSERT_OK_AND_ASSIGN(const Tensor read,
                         reader->Read("v/" + std::to_string(i)));
    EXPECT_TRUE(BitwiseEqual(read, tensors[i])) << i;
  }
}

TEST(Hdf5Test, TheSameCallsGiveTheSameBytes) {
  EXPECT_EQ(SmallFile(), SmallFile());
}

TEST(Hdf5Test, RefusesWhatHdf5HasNoFormFor) {
  ASSERT_OK_AND_ASSIGN(const auto writer, Hdf5Writer::Create());
  EXPECT_THAT(writer->Add("a", Tensor::Scalar<bool>(true)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bool")));
  ASSERT_OK(writer->Add("a", Kernel()));
  EXPECT_THAT(writer->Add("a", Kernel()),
              StatusIs(absl::StatusCode::kAlreadyExists));
}

TEST(Hdf5Test, NamesFileAndPathOfWhatIsMissing) {
  ASSERT_OK_AND_ASSIGN(const auto reader,
                       Hdf5Reader::Open("x.h5", SmallFile()));
  EXPECT_THAT(reader->Read("layers/gru/vars/0"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("x.h5 has no layers/gru/vars/0; it ends at "
                                 "layers/gru")));
  EXPECT_THAT(
      reader->Read("layers/dense"),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("is not an array")));
  EXPECT_THAT(reader->List("optimizer/vars/0"),
              StatusIs(absl::StatusCode::kNotFound));
}

// Returns a file that `fill` writes with the library itself.
std::string FileWith(const std::function<void(hid_t file)>& fill) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_core(access, 1 << 16, 0);
  const hid_t file = H5Fcreate("memory", H5F_ACC_TRUNC, H5P_DEFAULT, access);
  fill(file);
  H5Fflush(file, H5F_SCOPE_LOCAL);
  std::string bytes(H5Fget_file_image(file, nullptr, 0), '\0');
  H5Fget_file_image(file, bytes.data(), bytes.size());
  H5Fclose(file);
  H5Pclose(access);
  return bytes;
}

absl::StatusOr<Tensor> ReadFrom(const std::string& bytes) {
  absl::StatusOr<std::unique_ptr<Hdf5Reader>> reader =
      Hdf5Reader::Open("x.h5", bytes);
  if (!reader.ok()) return reader.status();
  return (*reader)->Read("a");
}

TEST(Hdf5Test, DoesNotFollowLinks) {
  EXPECT_THAT(ReadFrom(FileWith([](hid_t file) {
                H5Lcreate_external("/etc/passwd", "/", file, "a", H5P_DEFAULT,
                                   H5P_DEFAULT);
              })),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("link")));
  EXPECT_THAT(ReadFrom(FileWith([](hid_t file) {
                H5Lcreate_soft("/a", file, "a", H5P_DEFAULT, H5P_DEFAULT);
              })),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("link")));
}

// Adds an attribute with `count` elements of `type` to the root; a count of -1
// makes it a single value.
void AddAttribute(hid_t file, const char* name, hid_t type, int count,
                  const void* values) {
  const hsize_t extent = count;
  const hid_t space =
      count < 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &extent, nullptr);
  const hid_t attribute =
      H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  if (values != nullptr) H5Awrite(attribute, type, values);
  H5Aclose(attribute);
  H5Sclose(space);
}

TEST(Hdf5Test, ReadsTextsOfBothKinds) {
  const std::string bytes = FileWith([](hid_t file) {
    const hid_t fixed = H5Tcopy(H5T_C_S1);
    H5Tset_size(fixed, 5);
    H5Tset_strpad(fixed, H5T_STR_NULLPAD);
    AddAttribute(file, "names", fixed, 2, "denselstm\0");
    const hid_t variable = H5Tcopy(H5T_C_S1);
    H5Tset_size(variable, H5T_VARIABLE);
    const char* const text = "{\"a\": 1}";
    AddAttribute(file, "config", variable, -1, &text);
    AddAttribute(file, "none", H5T_NATIVE_DOUBLE, 0, nullptr);
    const double number = 1;
    AddAttribute(file, "number", H5T_NATIVE_DOUBLE, -1, &number);
    H5Tclose(variable);
    H5Tclose(fixed);
  });
  ASSERT_OK_AND_ASSIGN(const auto reader, Hdf5Reader::Open("x.h5", bytes));
  EXPECT_TRUE(reader->HasAttribute("", "names"));
  EXPECT_FALSE(reader->HasAttribute("", "name"));
  EXPECT_FALSE(reader->HasAttribute("layers", "names"));
  EXPECT_THAT(reader->ReadTexts("", "names"),
              IsOkAndHolds(ElementsAre("dense", "lstm")));
  EXPECT_THAT(reader->ReadTexts("", "config"),
              IsOkAndHolds(ElementsAre("{\"a\": 1}")));
  EXPECT_THAT(reader->ReadTexts("", "none"), IsOkAndHolds(ElementsAre()));
  EXPECT_THAT(reader->ReadTexts("", "number").status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("is not a list of at most")));
  EXPECT_THAT(reader->ReadTexts("", "other").status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("other")));
}

std::string FileWithArray(hid_t type, hsize_t extent, bool is_external) {
  return FileWith([=](hid_t file) {
    const hid_t space = H5Screate_simple(1, &extent, nullptr);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    if (is_external) {
      H5Pset_external(creation, "/etc/passwd", 0, H5F_UNLIMITED);
    }
    const hid_t dataset =
        H5Dcreate2(file, "a", type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Dclose(dataset);
    H5Pclose(creation);
    H5Sclose(space);
  });
}

TEST(Hdf5Test, RefusesArraysOfOtherFiles) {
  EXPECT_THAT(ReadFrom(FileWithArray(H5T_NATIVE_UINT8, 16, true)),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("stored in another file")));
}

TEST(Hdf5Test, RefusesArraysThatDeclareMoreThanTheFileHolds) {
  EXPECT_THAT(
      ReadFrom(FileWithArray(H5T_NATIVE_FLOAT, hsize_t{1} << 34, false)),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the file holds 0")));
  EXPECT_THAT(
      ReadFrom(FileWithArray(H5T_NATIVE_FLOAT, hsize_t{1} << 50, false)),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("elements")));
}

TEST(Hdf5Test, RefusesOtherTypes) {
  EXPECT_THAT(ReadFrom(FileWithArray(H5T_C_S1, 4, false)),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("x.h5: a")));
}

TEST(Hdf5Test, ReadsOtherByteOrders) {
  ASSERT_OK_AND_ASSIGN(const Tensor read, ReadFrom(FileWith([](hid_t file) {
                         const hid_t space = H5Screate(H5S_SCALAR);
                         const hid_t dataset =
                             H5Dcreate2(file, "a", H5T_IEEE_F32BE, space,
                                        H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
                         const float value = 1.5f;
                         H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL,
                                  H5P_DEFAULT, &value);
                         H5Dclose(dataset);
                         H5Sclose(space);
                       })));
  EXPECT_EQ(read.scalar<float>(), 1.5f);
}

// Reads names and arrays of the file, and ignores errors.
void ReadAll(const std::string& bytes) {
  const auto reader = Hdf5Reader::Open("x.h5", bytes);
  if (!reader.ok()) return;
  (*reader)->List("layers").status().IgnoreError();
  (*reader)->Read("layers/dense/vars/0").status().IgnoreError();
  (*reader)->Read("optimizer/vars/0").status().IgnoreError();
}

TEST(Hdf5Test, SurvivesDamage) {
  const std::string whole = SmallFile();
  const ssize_t open_before = H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL);
  for (size_t size = 0; size < whole.size(); size += 37) {
    EXPECT_FALSE(Hdf5Reader::Open("x.h5", whole.substr(0, size)).ok()) << size;
  }
  for (size_t i = 0; i < whole.size(); i += 7) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0xff);
    ReadAll(damaged);
  }
  // LeakSanitizer does not see memory that the library allocates. Only this
  // check detects a file or an array that is not closed.
  EXPECT_EQ(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), open_before);
}

}  // namespace
}  // namespace muster
