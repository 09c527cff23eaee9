#ifndef COMMON_LEARN_TRAIN_CALLBACKS_TESTING_CALLBACK_PROCESS_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_TESTING_CALLBACK_PROCESS_H_

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "nlohmann/json.hpp"

namespace muster {

// A thread that answers the events of ExternalCallbacks in a folder.
class CallbackProcess {
 public:
  // Returns the fields of the answer to an event, without its numbers.
  using Answer = std::function<nlohmann::json(const nlohmann::json& event)>;

  // Creates the folder. `answer` is called on the thread of this object.
  CallbackProcess(std::string folder, Answer answer);
  ~CallbackProcess();  // Ends the thread.

  // Ends the thread, and returns all events that were answered.
  std::vector<nlohmann::json> Events();

 private:
  void Run();

  const std::string folder_;
  const Answer answer_;
  std::atomic<bool> ends_ = false;
  std::vector<nlohmann::json> events_;  // Of the thread, until it has ended.
  std::thread thread_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_TESTING_CALLBACK_PROCESS_H_
