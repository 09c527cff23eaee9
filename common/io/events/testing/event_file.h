#ifndef COMMON_IO_EVENTS_TESTING_EVENT_FILE_H_
#define COMMON_IO_EVENTS_TESTING_EVENT_FILE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {

namespace proto {
class Event;
}  // namespace proto

// Returns the content of an event file, for tests. Terminates the process if
// the file is not an event file or has a wrong checksum.
std::vector<proto::Event> ReadEventFile(const std::string& path);

// Returns the events of all event files in the folder, in the order of file
// names; none if there is no folder.
std::vector<proto::Event> ReadEventFolder(const std::string& folder);

// {step, value} of the scalars of a tag, in the order of writing.
using Scalars = std::vector<std::pair<int64_t, float>>;
Scalars ScalarsOf(const std::vector<proto::Event>& events,
                  absl::string_view tag);

// Returns every tag once, sorted.
std::vector<std::string> TagsOf(const std::vector<proto::Event>& events);

}  // namespace muster

#endif  // COMMON_IO_EVENTS_TESTING_EVENT_FILE_H_
