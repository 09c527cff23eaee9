#include "common/net/collectives/peers/job_digest.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/peer_group.pb.h"

namespace muster {
namespace {

JobDigest OneSection(const std::string& name, const std::string& text) {
  JobDigest digest;
  digest.Add(name, text);
  return digest;
}

std::string Difference(const JobDigest& there, const JobDigest& here) {
  proto::PeerHello hello;
  there.EncodeTo(&hello);
  return here.DescribeDifference(hello);
}

TEST(JobDigestTest, EqualDigestsDoNotDiffer) {
  JobDigest digest;
  digest.Add("version", "0.1.0");
  digest.Add("job file", "epochs: 3\nbatch: 4\n");
  EXPECT_EQ(Difference(digest, digest), "");
}

TEST(JobDigestTest, TheFirstLineThatDiffersIsNamed) {
  EXPECT_EQ(
      Difference(OneSection("job file", "model {\n  units: 3\n}\nx: 1\n"),
                 OneSection("job file", "model {\n  units: 4\n}\nx: 2\n")),
      "job file, line 2, is \"  units: 3\" there and \"  units: 4\" here");
}

TEST(JobDigestTest, ALineMoreIsALineThatDiffers) {
  EXPECT_EQ(Difference(OneSection("job file", "epochs: 3\n"),
                       OneSection("job file", "epochs: 3\nbatch: 4\n")),
            "job file, line 2, is no line there and \"batch: 4\" here");
}

TEST(JobDigestTest, ALineIsCountedAsInTheFileItComesFrom) {
  JobDigest there;
  there.Add(
      {.name = "job file", .text = "epochs: 3\nseed: 1\n", .lines = {4, 9}});
  JobDigest here;
  here.Add(
      {.name = "job file", .text = "epochs: 3\nseed: 2\n", .lines = {1, 7}});
  EXPECT_EQ(Difference(there, here),
            "job file, line 7, is \"seed: 1\" there and \"seed: 2\" here");
  EXPECT_EQ(Difference(here, there),
            "job file, line 9, is \"seed: 2\" there and \"seed: 1\" here");
  here = JobDigest();
  here.Add({.name = "job file", .text = "epochs: 3\n", .lines = {1}});
  EXPECT_EQ(Difference(there, here),
            "job file is \"seed: 1\" there and no line here");
}

TEST(JobDigestTest, SectionsOfOneLineAreToldWhole) {
  EXPECT_EQ(Difference(OneSection("batch size", "32"),
                       OneSection("batch size", "64")),
            "batch size is \"32\" there and \"64\" here");
}

TEST(JobDigestTest, TheFirstSectionThatDiffersIsNamed) {
  JobDigest there;
  there.Add("version", "1");
  there.Add("strategy", "mirrored");
  there.Add("batch size", "1");
  JobDigest here;
  here.Add("version", "1");
  here.Add("strategy", "one device");
  here.Add("batch size", "2");
  EXPECT_EQ(Difference(there, here),
            "strategy is \"mirrored\" there and \"one device\" here");
}

TEST(JobDigestTest, ASectionThatOneSideLacksIsNamedOnBoth) {
  JobDigest more = OneSection("version", "1");
  more.Add("seed", "7");
  const JobDigest fewer = OneSection("version", "1");
  EXPECT_EQ(Difference(more, fewer),
            "there is a section \"seed\" there, and none here");
  EXPECT_EQ(Difference(fewer, more),
            "there is no section \"seed\" there, and one here");
}

TEST(JobDigestTest, ADifferenceFarBackIsStillSeen) {
  const std::string text(1 << 20, 'x');
  EXPECT_EQ(Difference(OneSection("job file", text + "a"),
                       OneSection("job file", text + "b")),
            "job file differs after its first 65536 bytes");
}

TEST(JobDigestTest, ControlCharactersFromAPeerAreEscaped) {
  EXPECT_EQ(Difference(OneSection("batch size", "3\x01\r"),
                       OneSection("batch size", "4")),
            "batch size is \"3\\001\\r\" there and \"4\" here");
}

}  // namespace
}  // namespace muster
