#ifndef COMMON_NET_COLLECTIVES_PEERS_JOB_DIGEST_H_
#define COMMON_NET_COLLECTIVES_PEERS_JOB_DIGEST_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace muster {
namespace proto {
class PeerHello;
}  // namespace proto

// The job of a task, in named sections that must be equal on all tasks:
// the job file's text, the version, the strategy, the batch size. Tasks that
// differ would train together incorrectly, or wait for each other forever.
//
// A value.
class JobDigest {
 public:
  struct Section {
    std::string name;
    std::string text;
    // For each line of `text`, the line of the file that it comes from, from 1.
    // Not compared. Empty if `text` is the whole file.
    std::vector<int> lines = {};
  };

  // Sections are compared in the order in which they were added. Each name is
  // added once.
  void Add(Section section) { sections_.push_back(std::move(section)); }
  void Add(absl::string_view name, std::string text) {
    Add({.name = std::string(name), .text = std::move(text)});
  }

  // Replaces the digest of `hello` by this one.
  void EncodeTo(proto::PeerHello* hello) const;

  // Compares this digest with that of `hello_there`. Returns an empty string if
  // they are equal, and otherwise one line that names the section and the first
  // line that differs, with its number here:
  //
  //   job file, line 12, is "epochs: 3" there and "epochs: 4" here
  //   the batch size is "32" there and "64" here
  //   there is a section "seed" there and none here
  std::string DescribeDifference(const proto::PeerHello& hello_there) const;

 private:
  std::vector<Section> sections_;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_JOB_DIGEST_H_
