#include "net/testing/tls_front.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "net/testing/server.h"

namespace muster::net {
namespace {

template <typename T, typename Read, typename Use>
void UsePem(const std::string& pem, const Read& read, const Use& use) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  T* parsed = read(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  if (parsed == nullptr) std::abort();
  use(parsed);
}

}  // namespace

TlsFront::TlsFront(const std::string& backend, const TestCertificate& own,
                   const std::string& authority)
    : context_(SSL_CTX_new(TLS_server_method())) {
  ::signal(SIGPIPE, SIG_IGN);
  if (!absl::SimpleAtoi(backend.substr(backend.rfind(':') + 1), &backend_port_)) std::abort();
  UsePem<X509>(own.certificate, PEM_read_bio_X509, [this](X509* certificate) {
    SSL_CTX_use_certificate(context_, certificate);
    X509_free(certificate);
  });
  UsePem<EVP_PKEY>(own.key, PEM_read_bio_PrivateKey, [this](EVP_PKEY* key) {
    SSL_CTX_use_PrivateKey(context_, key);
    EVP_PKEY_free(key);
  });
  UsePem<X509>(authority, PEM_read_bio_X509, [this](X509* certificate) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context_), certificate);
    X509_free(certificate);
  });
  SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);
  listener_ = ListenOnLoopback(port_);
  acceptor_ = std::jthread([this] { Accept(); });
}

TlsFront::~TlsFront() {
  ::shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  {
    absl::MutexLock lock(&mutex_);
    for (const base::UniqueFd& fd : open_) ::shutdown(fd.get(), SHUT_RDWR);
  }
  threads_.clear();  // joins
  SSL_CTX_free(context_);
}

std::string TlsFront::address() const { return absl::StrCat("https://127.0.0.1:", port_); }

std::string TlsFront::client_name() const {
  absl::MutexLock lock(&mutex_);
  return client_name_;
}

std::string TlsFront::server_name() const {
  absl::MutexLock lock(&mutex_);
  return server_name_;
}

void TlsFront::Accept() {
  for (;;) {
    base::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd.valid()) return;
    const int number = fd.get();
    {
      absl::MutexLock lock(&mutex_);
      open_.push_back(std::move(fd));
    }
    threads_.emplace_back([this, number] { Serve(number); });
  }
}

void TlsFront::RecordNames(ssl_st* ssl) {
  std::array<char, 256> name{};
  if (X509* client = SSL_get1_peer_certificate(ssl)) {
    X509_NAME_get_text_by_NID(X509_get_subject_name(client), NID_commonName, name.data(),
                              static_cast<int>(name.size()));
    X509_free(client);
  }
  const char* asked = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  absl::MutexLock lock(&mutex_);
  client_name_ = name.data();
  server_name_ = asked == nullptr ? "" : asked;
}

void TlsFront::Serve(int fd) {
  SSL* ssl = SSL_new(context_);
  SSL_set_fd(ssl, fd);
  const base::UniqueFd backend(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address{.sin_family = AF_INET,
                            .sin_port = htons(static_cast<uint16_t>(backend_port_)),
                            .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  if (SSL_accept(ssl) == 1 &&
      ::connect(backend.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    RecordNames(ssl);
    Pump(ssl, fd, backend.get());
  }
  SSL_free(ssl);
  ::shutdown(fd, SHUT_RDWR);
}

void TlsFront::Pump(ssl_st* ssl, int client, int backend) const {
  std::array<char, 16384> buffer{};
  for (;;) {
    std::array<pollfd, 2> waits = {pollfd{client, POLLIN, 0}, pollfd{backend, POLLIN, 0}};
    // Bytes that OpenSSL has already decrypted do not make the socket readable.
    if (SSL_pending(ssl) == 0) ::poll(waits.data(), waits.size(), -1);
    if (SSL_pending(ssl) > 0 || waits[0].revents != 0) {
      const int n = SSL_read(ssl, buffer.data(), static_cast<int>(buffer.size()));
      if (n <= 0) return;
      if (::send(backend, buffer.data(), static_cast<size_t>(n), MSG_NOSIGNAL) != n) return;
    }
    if (waits[1].revents != 0) {
      const ssize_t n = ::recv(backend, buffer.data(), buffer.size(), 0);
      if (n <= 0) return;
      if (SSL_write(ssl, buffer.data(), static_cast<int>(n)) <= 0) return;
    }
  }
}

}  // namespace muster::net
