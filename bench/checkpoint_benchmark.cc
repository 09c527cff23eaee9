// Time to write a checkpoint durably and to read it, compared with one plain
// file of the same size, which is the limit of the disk and the system.
//
//   checkpoint_benchmark [--mebibytes=1024] [--rounds=5] [FOLDER]
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "bench/measure.h"
#include "common/core/base/check.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/bundle_files.h"
#include "common/io/checkpoint/checkpoint_manager.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"
#include "common/io/storage/disk.h"

namespace muster {
namespace {

constexpr int64_t kVariableMebibytes = 16;
constexpr size_t kPieceBytes = 1 << 20;

std::vector<Tensor> MakeVariables(int64_t mebibytes) {
  std::vector<Tensor> variables;
  uint32_t state = 1;
  for (int64_t i = 0; i < mebibytes / kVariableMebibytes; ++i) {
    Tensor variable(DType::kFloat32, {4096, 1024});
    for (float& value : variable.mutable_flat<float>()) {
      state = state * 1664525u + 1013904223u;
      value = static_cast<float>(state >> 8) * 0x1p-24f;
    }
    variables.push_back(std::move(variable));
  }
  return variables;
}

void WritePlain(const std::string& path, const std::vector<Tensor>& variables) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  MUSTER_CHECK(file >= 0);
  for (const Tensor& variable : variables) {
    for (size_t at = 0; at < variable.size_bytes(); at += kPieceBytes) {
      MUSTER_CHECK(write(file, variable.raw_data() + at, kPieceBytes) ==
                   static_cast<ssize_t>(kPieceBytes));
    }
  }
  MUSTER_CHECK(fsync(file) == 0);
  close(file);
}

// Reads the file into newly allocated memory, as a restore does.
void ReadPlain(const std::string& path, size_t variable_count) {
  const int file = open(path.c_str(), O_RDONLY);
  MUSTER_CHECK(file >= 0);
  std::vector<Tensor> variables;
  for (size_t i = 0; i < variable_count; ++i) {
    Tensor variable(DType::kFloat32, {4096, 1024});
    for (size_t at = 0; at < variable.size_bytes(); at += kPieceBytes) {
      MUSTER_CHECK(read(file, variable.mutable_raw_data() + at, kPieceBytes) ==
                   static_cast<ssize_t>(kPieceBytes));
    }
    variables.push_back(std::move(variable));
  }
  close(file);
}

std::string WriteCheckpoint(CheckpointManager* manager,
                            const std::vector<Tensor>& variables) {
  const auto prefix = manager->Save([&](TensorBundleWriter* writer) {
    for (size_t i = 0; i < variables.size(); ++i) {
      const absl::Status status =
          writer->Add(absl::StrCat("variable_", i), variables[i]);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  });
  MUSTER_CHECK(prefix.ok());
  return *prefix;
}

void ReadCheckpoint(const std::string& prefix) {
  const auto reader = TensorBundleReader::Open(Disk::Real(), prefix);
  MUSTER_CHECK(reader.ok());
  std::vector<Tensor> variables;
  for (const StoredTensor& stored : (*reader)->tensors()) {
    auto variable = (*reader)->Read(stored.name);
    MUSTER_CHECK(variable.ok());
    variables.push_back(*std::move(variable));
  }
}

void DropFromMemory(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY);
  MUSTER_CHECK(file >= 0);
  MUSTER_CHECK(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0);
  close(file);
}

struct Seconds {
  std::vector<double> plain;
  std::vector<double> checkpoint;

  // Prints the minimum as well as the median, because a disk that is throttled
  // after a burst favours the first of the two.
  void Print(const char* what, int64_t mebibytes) const {
    const double plain_best = *std::min_element(plain.begin(), plain.end());
    const double checkpoint_best =
        *std::min_element(checkpoint.begin(), checkpoint.end());
    std::printf(
        "%-17s plain %6.3f s, best %6.3f (%5.0f MiB/s); checkpoint %6.3f s, "
        "best %6.3f (%5.0f MiB/s); ratio of times %.2f, of best %.2f\n",
        what, Median(plain), plain_best, mebibytes / plain_best,
        Median(checkpoint), checkpoint_best, mebibytes / checkpoint_best,
        Median(checkpoint) / Median(plain), checkpoint_best / plain_best);
  }
};

template <typename Body>
double SecondsOf(Body&& body) {
  return MicrosecondsOf(body) / 1e6;
}

void Run(const std::string& folder, int64_t mebibytes, int round_count) {
  const std::vector<Tensor> variables = MakeVariables(mebibytes);
  const std::string plain_path = folder + "/plain";
  auto manager =
      CheckpointManager::Create({.folder = folder, .checkpoint_count_max = 1});
  MUSTER_CHECK(manager.ok());
  Seconds writes, cold_reads, warm_reads;
  for (int round = 0; round < round_count; ++round) {
    std::string prefix;
    // Both variants write the new file before they remove the old one.
    const auto write_plain = [&] {
      WritePlain(plain_path + ".new", variables);
      MUSTER_CHECK(
          std::rename((plain_path + ".new").c_str(), plain_path.c_str()) == 0);
    };
    const auto write_checkpoint = [&] {
      prefix = WriteCheckpoint(manager->get(), variables);
    };
    if (round % 2 == 0) writes.plain.push_back(SecondsOf(write_plain));
    writes.checkpoint.push_back(SecondsOf(write_checkpoint));
    if (round % 2 == 1) writes.plain.push_back(SecondsOf(write_plain));
    const std::string data_path = BundleDataPath(prefix, 0, 1);
    DropFromMemory(plain_path);
    DropFromMemory(data_path);
    const auto read_plain = [&] { ReadPlain(plain_path, variables.size()); };
    const auto read_checkpoint = [&] { ReadCheckpoint(prefix); };
    for (Seconds* reads : {&cold_reads, &warm_reads}) {
      if (round % 2 == 0) reads->plain.push_back(SecondsOf(read_plain));
      reads->checkpoint.push_back(SecondsOf(read_checkpoint));
      if (round % 2 == 1) reads->plain.push_back(SecondsOf(read_plain));
    }
  }
  unlink(plain_path.c_str());
  std::printf("%lld MiB in %zu variables, %d rounds in %s\n",
              static_cast<long long>(mebibytes), variables.size(), round_count,
              folder.c_str());
  writes.Print("write and sync", mebibytes);
  cold_reads.Print("read from disk", mebibytes);
  warm_reads.Print("read from memory", mebibytes);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  int64_t mebibytes = 1024;
  int round_count = 5;
  std::string folder = "/tmp/checkpoint_benchmark";
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    const bool is_read =
        absl::ConsumePrefix(&argument, "--mebibytes=")
            ? absl::SimpleAtoi(argument, &mebibytes) && mebibytes >= 16
        : absl::ConsumePrefix(&argument, "--rounds=")
            ? absl::SimpleAtoi(argument, &round_count) && round_count >= 1
            : !absl::StartsWith(argument, "-");
    if (!is_read) {
      std::fprintf(stderr, "unknown argument: %s\n", argv[i]);
      return 2;
    }
    if (argument == argv[i]) folder = argv[i];
  }
  MUSTER_CHECK(muster::Disk::Real()->MakeFolder(folder).ok());
  muster::Run(folder, mebibytes, round_count);
  return 0;
}
