#include "common/learn/train/callbacks/testing/callback_process.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "common/io/storage/disk.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr int64_t kEventBytesMax = int64_t{1} << 20;

}  // namespace

CallbackProcess::CallbackProcess(std::string folder, Answer answer)
    : folder_(std::move(folder)), answer_(std::move(answer)) {
  std::filesystem::create_directories(folder_);
  thread_ = std::thread([this] { Run(); });
}

CallbackProcess::~CallbackProcess() { Events(); }

std::vector<Json> CallbackProcess::Events() {
  ends_ = true;
  if (thread_.joinable()) thread_.join();
  return events_;
}

void CallbackProcess::Run() {
  const std::string path = JoinPath(folder_, "event.json");
  while (!ends_) {
    const auto text = ReadFile(Disk::Real(), path, kEventBytesMax);
    if (!text.ok()) {
      std::this_thread::yield();
      continue;
    }
    std::filesystem::remove(path);
    const Json event = Json::parse(*text);
    events_.push_back(event);
    Json answer = answer_(event);
    answer["incarnation"] = event["incarnation"];
    answer["sequence"] = event["sequence"];
    if (!ReplaceFileUnsynced(Disk::Real(), JoinPath(folder_, "answer.json"),
                             answer.dump())
             .ok()) {
      std::abort();
    }
  }
}

}  // namespace muster
