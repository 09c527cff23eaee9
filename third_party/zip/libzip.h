#ifndef ZIP_LIBZIP_H_
#define ZIP_LIBZIP_H_

// A name that no other library has for a header.
#include <zip.h>

#endif  // ZIP_LIBZIP_H_
