#include "controller/server/certificate_files.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files/files.h"

namespace muster::controller {
namespace {

// Returns null if the files are not a certificate chain and its key.
std::shared_ptr<SSL_CTX> Load(const std::string& certificate, const std::string& key) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  const bool good =
      context != nullptr &&
      SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) == 1 &&
      SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) == 1 &&
      SSL_CTX_check_private_key(context.get()) == 1;
  ERR_clear_error();
  return good ? context : nullptr;
}

}  // namespace

CertificateFiles::CertificateFiles(const std::string& folder,
                                   std::function<void(const std::string&)> log)
    : certificate_(base::JoinPath(folder, "tls.crt")),
      key_(base::JoinPath(folder, "tls.key")),
      log_(std::move(log)) {}

std::string CertificateFiles::Stamp() const {
  std::string stamp;
  for (const std::string& path : {certificate_, key_}) {
    struct stat file = {};
    if (::stat(path.c_str(), &file) != 0) continue;
    absl::StrAppend(&stamp, file.st_ino, " ", file.st_size, " ", file.st_mtim.tv_sec, ".",
                    file.st_mtim.tv_nsec, ";");
  }
  return stamp;
}

absl::Status CertificateFiles::Read() {
  absl::MutexLock lock(&mutex_);
  stamp_ = Stamp();
  std::shared_ptr<SSL_CTX> read = Load(certificate_, key_);
  if (read == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(certificate_, ", ", key_, ": not a certificate and its key"));
  }
  last_valid_ = std::move(read);
  return absl::OkStatus();
}

std::shared_ptr<SSL_CTX> CertificateFiles::Current() {
  absl::ReleasableMutexLock lock(&mutex_);
  if (stamp_ == Stamp()) return last_valid_;
  lock.Release();  // Read() takes it
  const absl::Status read = Read();
  log_(read.ok() ? absl::StrCat(certificate_, ": loaded a new certificate")
                 : absl::StrCat(read.message(), "; keeping the last valid certificate"));
  absl::MutexLock again(&mutex_);
  return last_valid_;
}

int CertificateFiles::OnClientHello(SSL* connection, int* /*alert*/, void* files) {
  // The connection takes a reference to the context, so a later renewal does not affect it.
  const auto current = static_cast<CertificateFiles*>(files)->Current();
  return SSL_set_SSL_CTX(connection, current.get()) == nullptr ? SSL_CLIENT_HELLO_ERROR
                                                               : SSL_CLIENT_HELLO_SUCCESS;
}

void CertificateFiles::Attach(SSL_CTX* server) {
  SSL_CTX_set_min_proto_version(server, TLS1_2_VERSION);
  SSL_CTX_set_client_hello_cb(server, OnClientHello, this);
}

}  // namespace muster::controller
