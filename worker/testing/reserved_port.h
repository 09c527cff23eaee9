#ifndef WORKER_TESTING_RESERVED_PORT_H_
#define WORKER_TESTING_RESERVED_PORT_H_

#include <string>

namespace muster {

// A port of this machine that nobody else is given while this lives, and that
// servers of this process can take, close and take again.
class ReservedPort {
 public:
  ReservedPort();
  ~ReservedPort();
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;

  // "127.0.0.1:43210"
  std::string address() const;

 private:
  int socket_ = -1;
  int port_ = 0;
};

}  // namespace muster

#endif  // WORKER_TESTING_RESERVED_PORT_H_
