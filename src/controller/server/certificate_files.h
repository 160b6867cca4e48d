// The certificate of a server, read from files that another program renews.
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
  // Uses tls.crt and tls.key in `folder`. `log` is called when they change.
  CertificateFiles(const std::string& folder, std::function<void(const std::string&)> log);

  // Reads the files. Returns InvalidArgument if they are not a certificate and its key.
  absl::Status Read();
  // Makes each new connection of `server` use the current files, or the last valid ones while the
  // files are being replaced. This outlives `server`.
  void Attach(ssl_ctx_st* server);

 private:
  static int OnClientHello(ssl_st* connection, int* alert, void* files);
  std::shared_ptr<ssl_ctx_st> Current();
  // Identifies the versions of the files: inode, size and modification time.
  std::string Stamp() const;

  const std::string certificate_;
  const std::string key_;
  const std::function<void(const std::string&)> log_;
  absl::Mutex mutex_;
  std::string stamp_ ABSL_GUARDED_BY(mutex_);  // of the files last read, valid or not
  std::shared_ptr<ssl_ctx_st> last_valid_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::controller
