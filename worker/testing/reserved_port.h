#ifndef WORKER_TESTING_RESERVED_PORT_H_
#define WORKER_TESTING_RESERVED_PORT_H_

#include <string>

namespace muster {

// A loopback port that no other process is assigned during the lifetime of this
// object. Servers of this process can listen on it repeatedly.
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
