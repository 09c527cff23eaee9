// c-ares, with which gRPC resolves names, neither frees a few strings nor keeps
// pointers to them. gRPC 1.51 frees the buffer of a handshake without the array
// of its slices, once per connection. HDF5 leaks buffers when it rejects a
// damaged file.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libcares.so\nleak:gpr_realloc\nleak:libhdf5_serial.so\n";
}
