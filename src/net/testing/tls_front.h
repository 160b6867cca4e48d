// A TLS-terminating proxy for tests.
#pragma once

#include <list>
#include <string>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "base/files/unique_fd.h"
#include "net/testing/certificates.h"

struct ssl_ctx_st;
struct ssl_st;

namespace muster::net {

// Listens on loopback and forwards decrypted traffic to `backend` ("http://127.0.0.1:PORT") and
// back. Requests client certificates issued by `authority`, but also accepts clients without one.
class TlsFront {
 public:
  TlsFront(const std::string& backend, const TestCertificate& own, const std::string& authority);
  ~TlsFront();
  TlsFront(const TlsFront&) = delete;
  TlsFront& operator=(const TlsFront&) = delete;

  std::string address() const;      // "https://127.0.0.1:PORT"
  std::string client_name() const;  // CN of the last client; "": no certificate
  std::string server_name() const;  // SNI of the last client

 private:
  void Accept();
  void Serve(int fd);
  void RecordNames(ssl_st* ssl);
  void Pump(ssl_st* ssl, int client, int backend) const;

  int backend_port_ = 0;
  int port_ = 0;
  ssl_ctx_st* context_ = nullptr;
  base::UniqueFd listener_;
  mutable absl::Mutex mutex_;
  std::string client_name_ ABSL_GUARDED_BY(mutex_);
  std::string server_name_ ABSL_GUARDED_BY(mutex_);
  std::list<base::UniqueFd> open_ ABSL_GUARDED_BY(mutex_);
  std::list<std::jthread> threads_;  // used only by Accept()
  std::jthread acceptor_;
};

}  // namespace muster::net
