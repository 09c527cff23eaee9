// A PJRT plugin that does not start as it should. How it fails is the letter
// before ".so" in its file name, so that copies of the file are different
// plugins.

#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>
#include <string>

#include "common/core/pjrt/pjrt_api.h"

namespace {

using muster::pjrt::AnyFunction;
using muster::pjrt::ApiTable;
using muster::pjrt::Error;

struct FakeApi {
  ApiTable api;
  AnyFunction functions[4];
};

void* const kError = const_cast<char*>("an error");

void DestroyError(void*) {}

void GetMessage(void* args) {
  static constexpr char kMessage[] = "the fake plugin refuses to start";
  auto* const message = static_cast<muster::pjrt::ErrorMessageArgs*>(args);
  message->message = kMessage;
  message->message_size = sizeof(kMessage) - 1;
}

Error* GetCode(void* args) {
  static_cast<muster::pjrt::ErrorGetCodeArgs*>(args)->code = 8;
  return nullptr;
}

Error* Refuse(void*) { return static_cast<Error*>(kError); }

Error* Start(void*) { return nullptr; }

Error* Hang(void*) {
  while (true) pause();
}

char Fault() {
  Dl_info info = {};
  dladdr(reinterpret_cast<void*>(&Fault), &info);
  const std::string path = info.dli_fname;
  return path[path.size() - 4];
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const ApiTable* GetPjrtApi() {
  static FakeApi fake = {};
  const char fault = Fault();
  fake.api.struct_size = sizeof(fake);
  fake.api.version.minor_version = 81;
  const auto function = [](auto* pointer) {
    return reinterpret_cast<AnyFunction>(pointer);
  };
  fake.functions[0] = function(&DestroyError);
  fake.functions[1] = function(&GetMessage);
  fake.functions[2] = function(&GetCode);
  fake.functions[3] = function(&Start);
  switch (fault) {
    case 'n':
      return nullptr;
    case 'o':  // Old.
      fake.api.version.minor_version = 12;
      break;
    case 'm':  // Another major version.
      fake.api.version.major_version = 1;
      break;
    case 'r':
      fake.functions[3] = function(&Refuse);
      break;
    case 'h':
      fake.functions[3] = function(&Hang);
      break;
    default:
      break;
  }
  return &fake.api;
}
