// c-ares, which gRPC resolves names with, keeps a few strings for the life of
// the process without holding on to them.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libcares.so\n";
}
