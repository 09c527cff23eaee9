#include "common/io/storage/object_url.h"

#include <string>

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

TEST(ObjectUrlTest, HasSchemeBucketAndKey) {
  ASSERT_OK_AND_ASSIGN(const ObjectUrl url,
                       ParseObjectUrl("s3://my-bucket/runs/7/ckpt-1.index"));
  EXPECT_EQ(url.scheme, "s3");
  EXPECT_EQ(url.bucket, "my-bucket");
  EXPECT_EQ(url.key, "runs/7/ckpt-1.index");
  EXPECT_EQ(url.ToString(), "s3://my-bucket/runs/7/ckpt-1.index");
}

TEST(ObjectUrlTest, TheKeyOfABucketIsEmpty) {
  for (const std::string text : {"gs://bucket", "gs://bucket/"}) {
    ASSERT_OK_AND_ASSIGN(const ObjectUrl url, ParseObjectUrl(text));
    EXPECT_EQ(url.key, "");
    EXPECT_EQ(url.ToString(), "gs://bucket");
  }
}

TEST(ObjectUrlTest, PathsAreNotUrls) {
  for (const std::string path :
       {"", "/s3://bucket", "s3:/bucket", "S3://bucket", "http://bucket"}) {
    EXPECT_FALSE(IsObjectUrl(path)) << path;
    EXPECT_THAT(ParseObjectUrl(path),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(ObjectUrlTest, OnlyOneSpellingIsValid) {
  for (const std::string url :
       {"s3://", "s3:///key", "s3://ab", "s3://Bucket/key", "s3://bucket//key",
        "s3://bucket/a//b", "s3://bucket/a/../b", "s3://bucket/./b",
        "s3://bucket/..", "s3://bucket/a\nb", "s3://user@bucket/key"}) {
    EXPECT_THAT(ParseObjectUrl(url),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("is not the URL of an object")))
        << url;
  }
}

TEST(ObjectUrlTest, RootsCoverWholeComponentsOnly) {
  EXPECT_TRUE(IsBelowUrl("s3://bucket/a/b", "s3://bucket/a"));
  EXPECT_TRUE(IsBelowUrl("s3://bucket/a/b", "s3://bucket/a/"));
  EXPECT_TRUE(IsBelowUrl("s3://bucket/a", "s3://bucket"));
  EXPECT_TRUE(IsBelowUrl("s3://bucket/a", "s3://bucket/a"));
  EXPECT_FALSE(IsBelowUrl("s3://bucket/ab", "s3://bucket/a"));
  EXPECT_FALSE(IsBelowUrl("s3://bucket2/a", "s3://bucket"));
  EXPECT_FALSE(IsBelowUrl("gs://bucket/a", "s3://bucket"));
  EXPECT_FALSE(IsBelowUrl("s3://bucket/a/../c", "s3://bucket/a"));
  EXPECT_FALSE(IsBelowUrl("s3://bucket/a", "/"));
  EXPECT_FALSE(IsBelowUrl("/data", "s3://bucket"));
}

}  // namespace
}  // namespace muster
