#ifndef COMMON_NET_RPC_OPENSSL_OBJECTS_H_
#define COMMON_NET_RPC_OPENSSL_OBJECTS_H_

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>

// Owning pointers to OpenSSL objects.
namespace muster::openssl {

template <typename T, void (*Free)(T*)>
struct Freer {
  void operator()(T* object) const { Free(object); }
};
template <typename T, void (*Free)(T*)>
using Owned = std::unique_ptr<T, Freer<T, Free>>;

using Certificate = Owned<X509, X509_free>;
using Key = Owned<EVP_PKEY, EVP_PKEY_free>;
using Bio = Owned<BIO, BIO_free_all>;

}  // namespace muster::openssl

#endif  // COMMON_NET_RPC_OPENSSL_OBJECTS_H_
