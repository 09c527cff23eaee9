// c-ares, which gRPC resolves names with, keeps a few strings for the life of
// the process without holding on to them. gRPC 1.51 frees the buffer into which
// a handshake has read without the array of its slices, once per connection.
// HDF5 leaks buffers when it refuses a damaged file.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libcares.so\nleak:gpr_realloc\nleak:libhdf5_serial.so\n";
}
