// Writes and reads one object through ObjectDisk and through the command curl,
// from and to memory files, on an S3 server in this process that verifies
// signatures and checksums. Prints the medians and their ratio.
//
//   object_store_benchmark [MEBIBYTES]
//
// curl sends the file in one request without "Expect: 100-continue". It gets
// the SHA-256 as an argument, so that it does not compute one.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bench/measure.h"
#include "bench/or_die.h"
#include "common/io/storage/object_disk.h"
#include "common/io/storage/testing/s3_server.h"

namespace muster {
namespace {

constexpr int kRepetitions = 5;
constexpr char kDigestOfNothing[] =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr char kUrl[] = "s3://bucket/object";

double MedianSeconds(const std::function<void()>& body) {
  std::vector<double> seconds;
  for (int i = 0; i < kRepetitions; ++i) {
    seconds.push_back(MicrosecondsOf(body) / 1e6);
  }
  return Median(seconds);
}

std::string OutputOf(const std::string& command) {
  std::FILE* const pipe = popen(command.c_str(), "r");
  char line[256] = {};
  if (pipe == nullptr || std::fgets(line, sizeof(line), pipe) == nullptr ||
      pclose(pipe) != 0) {
    std::fprintf(stderr, "\"%s\" failed\n", command.c_str());
    std::exit(1);
  }
  return line;
}

void RunOrDie(const std::string& command) {
  if (std::system(command.c_str()) == 0) return;
  std::fprintf(stderr, "\"%s\" failed\n", command.c_str());
  std::exit(1);
}

void Report(const char* what, double megabytes, double ours, double curl) {
  std::printf("%-8s ObjectDisk %7.0f MB/s   curl %7.0f MB/s   ratio %.2f\n",
              what, megabytes / ours, megabytes / curl, curl / ours);
}

void Run(int mebibytes) {
  const auto server = OrDie(S3Server::Start());
  const std::map<std::string, std::string> variables = server->Environment();
  ObjectDisk disk([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
  std::vector<uint8_t> bytes(size_t(mebibytes) << 20);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>((i * 2654435761u) >> 13);
  }
  const double megabytes = static_cast<double>(bytes.size()) / 1e6;
  const std::string path =
      absl::StrCat("/dev/shm/object_store_benchmark-", getpid());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  const std::string curl = absl::StrCat(
      "curl --silent --fail --header Expect: --aws-sigv4 "
      "aws:amz:",
      S3Server::kRegion, ":s3 --user ", S3Server::kAccessKeyId, ":",
      S3Server::kSecretAccessKey, " ");
  const std::string curl_url =
      absl::StrCat(server->endpoint(), "/", S3Server::kBucket, "/object");
  const std::string digest = OutputOf("sha256sum " + path).substr(0, 64);

  const double write = MedianSeconds([&] {
    const auto file = OrDie(disk.Create(kUrl));
    OkOrDie(file->Append(bytes));
    OkOrDie(file->Sync());
  });
  const double curl_write = MedianSeconds([&] {
    RunOrDie(absl::StrCat(curl, "--header 'x-amz-content-sha256: ", digest,
                          "' --upload-file ", path, " ", curl_url));
  });
  Report("upload", megabytes, write, curl_write);
  const double read = MedianSeconds([&] {
    const auto file = OrDie(disk.Open(kUrl));
    OkOrDie(file->ReadAt(0, absl::MakeSpan(bytes)));
  });
  const double curl_read = MedianSeconds([&] {
    RunOrDie(absl::StrCat(curl,
                          "--header 'x-amz-content-sha256: ", kDigestOfNothing,
                          "' --output ", path, " ", curl_url));
  });
  Report("download", megabytes, read, curl_read);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  int mebibytes = 256;
  if (argc > 2 || (argc == 2 && !absl::SimpleAtoi(argv[1], &mebibytes)) ||
      mebibytes < 1) {
    std::fprintf(stderr, "usage: object_store_benchmark [MEBIBYTES]\n");
    return 2;
  }
  muster::Run(mebibytes);
  return 0;
}
