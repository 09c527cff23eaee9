#ifndef HDF5_HDF5_H_
#define HDF5_HDF5_H_

// The name that the header has everywhere but on Debian.
#include <hdf5/serial/hdf5.h>

#endif  // HDF5_HDF5_H_
