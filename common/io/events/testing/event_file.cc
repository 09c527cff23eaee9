#include "common/io/events/testing/event_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

#include "common/core/base/check.h"
#include "common/core/base/hashes.h"
#include "common/io/records/record_format.h"
#include "proto/event.pb.h"

namespace muster {
namespace {

template <typename T>
T ReadNumber(absl::string_view bytes) {
  T number;
  MUSTER_CHECK(bytes.size() >= sizeof(number));
  std::memcpy(&number, bytes.data(), sizeof(number));
  return number;
}

}  // namespace

std::vector<proto::Event> ReadEventFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  MUSTER_CHECK(file.good());
  std::ostringstream read;
  read << file.rdbuf();
  const std::string content = read.str();

  std::vector<proto::Event> events;
  absl::string_view rest = content;
  while (!rest.empty()) {
    const uint64_t length = ReadNumber<uint64_t>(rest);
    MUSTER_CHECK(ReadNumber<uint32_t>(rest.substr(8)) ==
                 MaskCrc32c(Crc32c(rest.substr(0, 8))));
    rest.remove_prefix(kRecordHeaderBytes);
    MUSTER_CHECK(rest.size() >= length + kRecordFooterBytes);
    const absl::string_view record = rest.substr(0, length);
    MUSTER_CHECK(ReadNumber<uint32_t>(rest.substr(length)) ==
                 MaskCrc32c(Crc32c(record)));
    MUSTER_CHECK(events.emplace_back().ParseFromArray(
        record.data(), static_cast<int>(record.size())));
    rest.remove_prefix(length + kRecordFooterBytes);
  }
  return events;
}

std::vector<proto::Event> ReadEventFolder(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (name.find("tfevents") != std::string::npos) {
      paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<proto::Event> all;
  for (const std::string& path : paths) {
    for (proto::Event& event : ReadEventFile(path)) {
      all.push_back(std::move(event));
    }
  }
  return all;
}

Scalars ScalarsOf(const std::vector<proto::Event>& events,
                  absl::string_view tag) {
  Scalars scalars;
  for (const proto::Event& event : events) {
    for (const proto::Summary::Value& value : event.summary().value()) {
      if (value.tag() != tag) continue;
      scalars.emplace_back(event.step(),
                           ReadNumber<float>(value.tensor().tensor_content()));
    }
  }
  return scalars;
}

std::vector<std::string> TagsOf(const std::vector<proto::Event>& events) {
  std::set<std::string> tags;
  for (const proto::Event& event : events) {
    for (const proto::Summary::Value& value : event.summary().value()) {
      tags.insert(value.tag());
    }
  }
  return {tags.begin(), tags.end()};
}

}  // namespace muster
