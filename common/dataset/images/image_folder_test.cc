#include "common/dataset/images/image_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/codec/dataset_codec.h"
#include "common/dataset/corrupt_input.h"
#include "common/dataset/sharding.h"
#include "common/dataset/testing/test_elements.h"
#include "common/io/image/image.h"
#include "common/io/image/jpeg.h"
#include "common/io/image/png.h"
#include "common/io/image/testing/test_images.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/testing/s3_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

const auto kInvalid = absl::StatusCode::kInvalidArgument;
const auto kDataLoss = absl::StatusCode::kDataLoss;

void Write(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// An image with one color.
Image Plain(uint8_t value, int64_t height = 6, int64_t width = 8) {
  Image image = {.height = height, .width = width, .channels = 3};
  image.pixels.assign(static_cast<size_t>(height * width * 3), value);
  return image;
}

std::string Png(const Image& image) { return *EncodePng(image); }
std::string Jpeg(const Image& image) { return *EncodeJpeg(image); }

// cat/0.png ... and dog/0.png ..., with the gray values 0, 1, 2, ... and 100,
// 101, ....
std::string MakeFolder(const std::string& name, int count_of_each) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/", name);
  mkdir(folder.c_str(), 0777);
  for (const char* const label : {"/cat", "/dog"}) {
    const std::string directory = folder + label;
    mkdir(directory.c_str(), 0777);
    const int first = label == std::string("/dog") ? 100 : 0;
    for (int i = 0; i < count_of_each; ++i) {
      Write(absl::StrCat(directory, "/", i, ".png"),
            Png(Plain(static_cast<uint8_t>(first + i))));
    }
  }
  return folder;
}

// The gray values of the images, in the order in which they are returned.
std::vector<int> Values(const Dataset& dataset, int64_t epoch = 0) {
  std::vector<int> values;
  for (const Element& element : Elements(dataset, {}, epoch)) {
    values.push_back(static_cast<int>(element[0].flat<float>()[0]));
  }
  return values;
}

absl::Status FirstError(const Dataset& dataset) {
  auto iterator = dataset.MakeIterator();
  if (!iterator.ok()) return iterator.status();
  Element element;
  while (true) {
    const auto more = (*iterator)->Next(&element);
    if (!more.ok()) return more.status();
    if (!*more) return absl::OkStatus();
  }
}

TEST(ImageFolderTest, ClassesAreTheSortedDirectories) {
  const std::string folder = MakeFolder("sorted", 2);
  const Dataset images =
      ImageFolder(folder, {.image_size = {4, 4}, .shuffle = false});
  ASSERT_OK(images.status());
  EXPECT_EQ(images.Cardinality(), 4);
  EXPECT_EQ(images.element_types()[0].shape, Shape({4, 4, 3}));
  EXPECT_THAT(Values(images), ElementsAre(0, 1, 100, 101));
  std::vector<int64_t> labels;
  for (const Element& element : Elements(images)) {
    labels.push_back(element[1].scalar<int64_t>());
  }
  EXPECT_THAT(labels, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(ImageFolderClassNames(folder),
              IsOkAndHolds(ElementsAre("cat", "dog")));
}

TEST(ImageFolderTest, ClassNamesGiveTheOrderOfLabels) {
  const std::string folder = MakeFolder("named", 1);
  const Dataset images = ImageFolder(
      folder,
      {.image_size = {4, 4}, .class_names = {"dog", "cat"}, .shuffle = false});
  EXPECT_THAT(Values(images), ElementsAre(100, 0));
  EXPECT_THAT(ImageFolder(folder, {.class_names = {"dog", "cow"}}).status(),
              StatusIs(kInvalid, HasSubstr("directories are cat, dog; "
                                           "class_names are dog, cow")));
}

TEST(ImageFolderTest, LabelsComeInTheirModes) {
  const std::string folder = MakeFolder("modes", 1);
  const auto second = [&](LabelMode mode) {
    return Elements(ImageFolder(
        folder,
        {.image_size = {2, 2}, .label_mode = mode, .shuffle = false}))[1];
  };
  EXPECT_THAT(second(LabelMode::kCategorical)[1].flat<float>(),
              ElementsAre(0, 1));
  EXPECT_THAT(second(LabelMode::kBinary)[1].flat<float>(), ElementsAre(1));
  EXPECT_THAT(second(LabelMode::kNone), SizeIs(1));
}

TEST(ImageFolderTest, PassesAreShuffledByTheSeedWhateverTheThreads) {
  const std::string folder = MakeFolder("shuffled", 20);
  const auto values = [&](uint64_t seed, int thread_count, int64_t epoch) {
    return Values(ImageFolder(folder, {.image_size = {2, 2},
                                       .thread_count = thread_count,
                                       .seed = seed}),
                  epoch);
  };
  const std::vector<int> first = values(7, 1, 0);
  EXPECT_EQ(values(7, 4, 0), first);
  EXPECT_NE(values(7, 1, 1), first);
  EXPECT_NE(values(8, 1, 0), first);
  EXPECT_THAT(values(7, 4, 1), UnorderedElementsAreArray(first));
}

TEST(ImageFolderTest, SubsetsAreDisjointAndComplete) {
  const std::string folder = MakeFolder("split", 10);
  for (const bool shuffle : {false, true}) {
    std::vector<int> all;
    for (const Subset subset : {Subset::kTraining, Subset::kValidation}) {
      const Dataset part = ImageFolder(folder, {.image_size = {2, 2},
                                                .shuffle = shuffle,
                                                .seed = 3,
                                                .validation_split = 0.25,
                                                .subset = subset});
      EXPECT_EQ(part.Cardinality(), subset == Subset::kTraining ? 15 : 5);
      for (const int value : Values(part)) all.push_back(value);
    }
    EXPECT_EQ(std::set<int>(all.begin(), all.end()).size(), 20u);
    EXPECT_THAT(all, SizeIs(20));
  }
  EXPECT_THAT(ImageFolder(folder, {.validation_split = 0.25}).status(),
              StatusIs(kInvalid, HasSubstr("0.25 without a subset")));
  EXPECT_THAT(ImageFolder(folder, {.validation_split = 0.01,
                                   .subset = Subset::kValidation})
                  .status(),
              StatusIs(kInvalid, HasSubstr("leaves nothing of 20 images")));
}

TEST(ImageFolderTest, EmptyAndMissingFoldersAreNamed) {
  const std::string folder = MakeFolder("empty", 1);
  mkdir((folder + "/eel").c_str(), 0777);
  Write(folder + "/eel/notes.txt", "none yet");
  EXPECT_THAT(ImageFolder(folder).status(),
              StatusIs(kInvalid, AllOf(HasSubstr(folder + "/eel: this class "
                                                          "has no images"),
                                       HasSubstr("it has eel/notes.txt"))));
  EXPECT_THAT(ImageFolder(folder + "/cat").status(),
              StatusIs(kInvalid, HasSubstr("has no directories, and 1 files")));
  EXPECT_THAT(
      ImageFolder(folder + "/none").status(),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr(folder + "/none")));
}

TEST(ImageFolderTest, CorruptFilesAreNamedOrSkippedAndCounted) {
  const std::string folder = MakeFolder("corrupt", 3);
  Write(folder + "/cat/x.jpg", "this is a text file");
  const ImageFolderOptions fail = {.image_size = {2, 2}, .shuffle = false};
  EXPECT_THAT(FirstError(ImageFolder(folder, fail)),
              StatusIs(kInvalid,
                       AllOf(HasSubstr(folder + "/cat/x.jpg: is not an image"),
                             HasSubstr("begins with \"this is \""))));
  const std::string jpeg = Jpeg(TestImage(32, 32, 3));
  Write(folder + "/cat/x.jpg", jpeg.substr(0, jpeg.size() / 2));
  EXPECT_THAT(FirstError(ImageFolder(folder, fail)),
              StatusIs(kDataLoss,
                       AllOf(HasSubstr(folder + "/cat/x.jpg: JPEG: "),
                             HasSubstr(absl::StrCat("of ", jpeg.size() / 2)))));
  Write(folder + "/dog/0.png", "");
  for (const int thread_count : {1, 3}) {
    const Dataset skipping =
        ImageFolder(folder, {.image_size = {2, 2},
                             .corrupt_input = CorruptInput::kSkip,
                             .thread_count = thread_count,
                             .shuffle = false});
    EXPECT_EQ(skipping.Cardinality(), Dataset::kUnknownCardinality);
    EXPECT_THAT(Values(skipping), ElementsAre(0, 1, 2, 101, 102));
    EXPECT_EQ(CorruptInputCount(skipping), 2);
    EXPECT_THAT(Values(skipping.Batch(2)), SizeIs(3));
    EXPECT_EQ(CorruptInputCount(skipping.Batch(2)), 4);
  }
}

TEST(ImageFolderTest, AMissingFileIsNotCorruptInput) {
  const std::string folder = MakeFolder("missing", 2);
  const Dataset images = ImageFolder(
      folder, {.image_size = {2, 2}, .corrupt_input = CorruptInput::kSkip});
  ASSERT_EQ(unlink((folder + "/dog/1.png").c_str()), 0);
  EXPECT_THAT(FirstError(images), StatusIs(absl::StatusCode::kNotFound,
                                           HasSubstr(folder + "/dog/1.png")));
}

TEST(ImageFolderTest, HiddenFilesAreSkipped) {
  const std::string folder = MakeFolder("dots", 1);
  Write(folder + "/cat/._0.jpg", "a resource fork");
  mkdir((folder + "/.cache").c_str(), 0777);
  mkdir((folder + "/cat/more").c_str(), 0777);
  Write(folder + "/cat/more/9.JPG", Jpeg(Plain(9)));
  EXPECT_THAT(
      Values(ImageFolder(folder, {.image_size = {2, 2}, .shuffle = false})),
      ElementsAre(0, 9, 100));
}

TEST(ImageFolderTest, ImagesThatCannotBeReadAreCountedAndLeftOut) {
  const std::string folder = MakeFolder("unreadable", 1);
  Write(folder + "/cat/a.bmp", "BM");
  Write(folder + "/cat/b.GIF", "GIF89a");
  Write(folder + "/dog/c.gif", "GIF89a");
  testing::internal::CaptureStderr();
  EXPECT_THAT(
      Values(ImageFolder(folder, {.image_size = {2, 2}, .shuffle = false})),
      ElementsAre(0, 100));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr(folder + ": 3 images are left out, because only JPEG "
                                 "and PNG can be read; the first is "
                                 "cat/a.bmp\n"));
}

TEST(ImageFolderTest, ScalesAndConvertsAndCrops) {
  const std::string folder = MakeFolder("options", 1);
  Image halves = Plain(10, 4, 8);
  for (size_t i = 0; i < halves.pixels.size(); ++i) {
    if (i / 3 % 8 < 2 || i / 3 % 8 >= 6) halves.pixels[i] = 200;
  }
  Write(folder + "/cat/0.png", Png(halves));
  const Element element =
      Elements(ImageFolder(folder, {.image_size = {2, 2},
                                    .color_mode = ColorMode::kGrayscale,
                                    .crop_to_aspect_ratio = true,
                                    .scale = 0.1,
                                    .shuffle = false}))[0];
  EXPECT_EQ(element[0].shape(), Shape({2, 2, 1}));
  EXPECT_THAT(element[0].flat<float>(), ElementsAre(1, 1, 1, 1));
}

TEST(ImageFolderTest, OptionsOutOfRangeAreRefused) {
  const std::string folder = MakeFolder("range", 1);
  EXPECT_THAT(ImageFolder(folder, {.image_size = {0, 4}}).status(),
              StatusIs(kInvalid, HasSubstr("image_size 0x4")));
  EXPECT_THAT(ImageFolder(folder, {.thread_count = 0}).status(),
              StatusIs(kInvalid, HasSubstr("thread_count is 0")));
  mkdir((folder + "/eel").c_str(), 0777);
  Write(folder + "/eel/0.png", Png(Plain(1)));
  EXPECT_THAT(ImageFolder(folder, {.label_mode = LabelMode::kBinary}).status(),
              StatusIs(kInvalid, HasSubstr("binary labels of 3 classes")));
}

TEST(ImageFolderTest, TravelsAndIsShardedByFiles) {
  const std::string folder = MakeFolder("wire", 4);
  const Dataset images =
      ImageFolder(folder, {.image_size = {2, 2},
                           .scale = 0.5,
                           .corrupt_input = CorruptInput::kSkip,
                           .seed = 5});
  ASSERT_OK_AND_ASSIGN(const proto::Dataset encoded, EncodeDataset(images));
  ASSERT_OK_AND_ASSIGN(const Dataset decoded, DecodeDataset(encoded));
  EXPECT_EQ(Values(decoded), Values(images));
  EXPECT_THAT(FileCountOf(decoded), IsOkAndHolds(8));
  std::vector<int> all;
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK_AND_ASSIGN(const Dataset shard, ShardFiles(decoded, 3, i));
    for (const int value : Values(shard)) all.push_back(value);
  }
  EXPECT_THAT(all, UnorderedElementsAreArray(Values(images)));
}

TEST(ImageFolderTest, HostileMessagesAreRejected) {
  const std::string folder = MakeFolder("hostile", 1);
  ASSERT_OK_AND_ASSIGN(proto::Dataset encoded,
                       EncodeDataset(ImageFolder(folder)));
  proto::Dataset bad = encoded;
  bad.mutable_stages(0)->mutable_image_files()->set_label(0, 7);
  EXPECT_THAT(DecodeDataset(bad), StatusIs(kInvalid, HasSubstr("label 7")));
  bad = encoded;
  bad.mutable_stages(0)->mutable_image_files()->clear_label();
  EXPECT_THAT(DecodeDataset(bad), StatusIs(kInvalid, HasSubstr("0 labels")));
  bad = encoded;
  bad.mutable_stages(1)->mutable_map()->mutable_image()->set_component(9);
  EXPECT_THAT(DecodeDataset(bad), StatusIs(kInvalid, HasSubstr("component 9")));
  bad = encoded;
  bad.mutable_stages(1)->mutable_map()->mutable_image()->set_channels(2);
  EXPECT_THAT(DecodeDataset(bad), StatusIs(kInvalid, HasSubstr("2 channels")));
  bad = encoded;
  bad.mutable_stages(1)->mutable_map()->mutable_image()->set_height(1 << 20);
  EXPECT_THAT(DecodeDataset(bad), StatusIs(kInvalid));
}

TEST(ImageFolderTest, DecodesAComponentOfOtherElements) {
  const Dataset contents = Dataset::FromTensorSlices(
      {Tensor::FromValues<int64_t>({2}, {1, 2}),
       Tensor::FromValues<std::string>({2}, {Png(Plain(3)), "no image"})});
  const Dataset images = DecodeImages(
      contents, 1,
      {.image_size = {2, 2}, .corrupt_input = CorruptInput::kSkip});
  const std::vector<Element> elements = Elements(images);
  ASSERT_THAT(elements, SizeIs(1));
  EXPECT_EQ(elements[0][0].scalar<int64_t>(), 1);
  EXPECT_EQ(elements[0][1].flat<float>()[0], 3);
  EXPECT_THAT(DecodeImages(contents, 0).status(),
              StatusIs(kInvalid, HasSubstr("component 0 of 2 is int64[]")));
}

// One server for the process, which reads its environment once.
class ObjectFolderTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = *S3Server::Start({.page_keys_max = 3});
    for (const auto& [name, value] : server_->Environment()) {
      setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
    }
  }
  static void TearDownTestSuite() { server_.reset(); }

  static std::unique_ptr<S3Server> server_;
};

std::unique_ptr<S3Server> ObjectFolderTest::server_;

TEST_F(ObjectFolderTest, IsReadAsAFolderWithTheSameFiles) {
  const std::string folder = testing::TempDir() + "/objects";
  const std::vector<std::string> directories = {"",        "/a",        "/a-b",
                                                "/a/more", "/a/.cache", "/b c"};
  for (const std::string& directory : directories) {
    mkdir((folder + directory).c_str(), 0777);
  }
  int value = 0;
  for (const std::string path :
       {"a/0.png", "a/more/1.png", "a/2.png", "a-b/0.png", "b c/0 +&.png",
        "b c/.hidden.png", "a/.cache/0.png", "b c/read.me"}) {
    const std::string content = Png(Plain(static_cast<uint8_t>(++value)));
    Write(absl::StrCat(folder, "/", path), content);
    server_->Set(absl::StrCat("same/", path), content);
  }
  server_->Set("same/", "");
  server_->Set("same/a/", "");
  server_->Set("samething/else/0.png", Png(Plain(99)));

  const ImageFolderOptions options = {.image_size = {2, 2}, .shuffle = false};
  const Dataset files = ImageFolder(folder, options);
  ASSERT_THAT(Values(files), ElementsAre(1, 3, 2, 4, 5));
  const size_t request_count = server_->request_count();
  for (const std::string url : {"s3://bucket/same", "s3://bucket/same/"}) {
    const Dataset objects = ImageFolder(url, options);
    ASSERT_OK(objects.status());
    EXPECT_EQ(Values(objects), Values(files)) << url;
    EXPECT_EQ(Elements(objects)[3][1].scalar<int64_t>(), 1);
    EXPECT_THAT(ImageFolderClassNames(url),
                IsOkAndHolds(ElementsAre("a", "a-b", "b c")));
  }
  // 10 objects have 4 pages, which are listed twice; 5 are read, twice.
  EXPECT_EQ(server_->request_count() - request_count, 2 * (4 + 4 + 5 + 5));

  ASSERT_OK_AND_ASSIGN(const proto::Dataset encoded,
                       EncodeDataset(ImageFolder("s3://bucket/same", options)));
  ASSERT_OK_AND_ASSIGN(const Dataset decoded, DecodeDataset(encoded));
  EXPECT_EQ(Values(decoded), Values(files));
}

TEST_F(ObjectFolderTest, ErrorsNameTheObject) {
  server_->Set("bad/cat/0.png", Png(Plain(0)));
  server_->Set("bad/cat/1.png", "no image");
  const Dataset images =
      ImageFolder("s3://bucket/bad", {.image_size = {2, 2},
                                      .corrupt_input = CorruptInput::kSkip,
                                      .thread_count = 1,
                                      .shuffle = false});
  EXPECT_THAT(Values(images), ElementsAre(0));
  EXPECT_THAT(FirstError(ImageFolder("s3://bucket/bad",
                                     {.image_size = {2, 2}, .shuffle = false})),
              StatusIs(kInvalid, HasSubstr("s3://bucket/bad/cat/1.png: is not "
                                           "an image")));
  server_->Set("bad/eel/", "");
  EXPECT_THAT(ImageFolder("s3://bucket/bad").status(),
              StatusIs(kInvalid, HasSubstr("s3://bucket/bad/eel: this class "
                                           "has no images")));
  server_->Set("bad/eel//0.png", Png(Plain(0)));
  EXPECT_THAT(ImageFolder("s3://bucket/bad").status(),
              StatusIs(kInvalid, AllOf(HasSubstr("s3://bucket/bad/eel//0.png"),
                                       HasSubstr("empty component"))));
  EXPECT_THAT(ImageFolder("s3://bucket/none").status(),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("s3://bucket/none: there is no object")));
}

TEST_F(ObjectFolderTest, AnObjectThatIsGoneIsNotCorruptInput) {
  server_->Set("gone/cat/0.png", Png(Plain(0)));
  const Dataset images =
      ImageFolder("s3://bucket/gone",
                  {.image_size = {2, 2}, .corrupt_input = CorruptInput::kSkip});
  ASSERT_OK(images.status());
  ASSERT_OK(Disk::Real()->Remove("s3://bucket/gone/cat/0.png"));
  EXPECT_THAT(FirstError(images),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("s3://bucket/gone/cat/0.png")));
}

TEST(ImageFolderTest, ThousandsOfRealFilesAreRead) {
  const char* const data = std::getenv("MUSTER_TEST_DATA");
  const std::string archive =
      absl::StrCat(data == nullptr ? "" : data, "/cats_vs_dogs_32px.tar.gz");
  if (data == nullptr || access(archive.c_str(), R_OK) != 0) {
    GTEST_SKIP() << "MUSTER_TEST_DATA is not set, or has no "
                    "cats_vs_dogs_32px.tar.gz";
  }
  const std::string folder = testing::TempDir() + "/real";
  mkdir(folder.c_str(), 0777);
  ASSERT_EQ(std::system(
                absl::StrCat("tar -xzf '", archive, "' -C '", folder, "' test")
                    .c_str()),
            0);
  const Dataset images = ImageFolder(
      folder + "/test",
      {.image_size = {32, 32}, .scale = 1.0 / 255, .thread_count = 2});
  EXPECT_EQ(images.Cardinality(), 2000);
  int64_t dog_count = 0;
  double sum = 0;
  const std::vector<Element> elements = Elements(images);
  for (const Element& element : elements) {
    dog_count += element[1].scalar<int64_t>();
    for (const float pixel : element[0].flat<float>()) sum += pixel;
  }
  EXPECT_THAT(elements, SizeIs(2000));
  EXPECT_EQ(dog_count, 1000);
  EXPECT_NEAR(sum / (2000 * 32 * 32 * 3), 0.48, 0.05);
}

TEST(ImageFolderTest, AnIteratorMayBeDestroyedAtAnyTime) {
  const std::string folder = MakeFolder("given_up", 30);
  for (int taken = 0; taken < 12; ++taken) {
    const Dataset images =
        ImageFolder(folder, {.image_size = {8, 8}, .thread_count = 4});
    ASSERT_OK_AND_ASSIGN(const auto iterator, images.MakeIterator());
    Element element;
    for (int i = 0; i < taken; ++i) {
      ASSERT_THAT(iterator->Next(&element), IsOkAndHolds(true));
    }
  }
}

}  // namespace
}  // namespace muster
