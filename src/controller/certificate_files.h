// The certificate of a server, as the files have it that somebody else renews.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

struct ssl_ctx_st;
struct ssl_st;

namespace muster::controller {

// Thread-safe.
class CertificateFiles {
 public:
  // tls.crt and tls.key in `folder`. `log` is told when they change.
  CertificateFiles(const std::string& folder, std::function<void(const std::string&)> log);

  // Reads them. InvalidArgument when they are no certificate and its key.
  absl::Status Read();
  // Each connection of `server` gets the certificate that the files hold when it begins; the last
  // good one while they are being replaced. This outlives `server`.
  void Serve(ssl_ctx_st* server);

 private:
  static int Greet(ssl_st* connection, int* alert, void* files);
  std::shared_ptr<ssl_ctx_st> Current();
  // Which files they are: another text when they have been replaced.
  std::string Stamp() const;

  const std::string certificate_;
  const std::string key_;
  const std::function<void(const std::string&)> log_;
  absl::Mutex mutex_;
  std::string stamp_ ABSL_GUARDED_BY(mutex_);  // of what was last read, good or not
  std::shared_ptr<ssl_ctx_st> last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::controller
