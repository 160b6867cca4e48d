#include "train/wire/testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "cluster/address.h"
#include "gtest/gtest.h"

namespace muster::train::wire {

base::UniqueFd BindAnywhere(std::string& address) {
  base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in bound = {.sin_family = AF_INET, .sin_addr = {::htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(bound);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&bound), size), 0);
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size), 0);
  address = absl::StrCat("127.0.0.1:", ::ntohs(bound.sin_port));
  return socket;
}

std::string FreeAddress() {
  std::string address;
  BindAnywhere(address);
  return address;
}

base::UniqueFd ConnectTo(const std::string& address) {
  base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in peer = {.sin_family = AF_INET,
                            .sin_port = ::htons(static_cast<uint16_t>(cluster::PortOf(address))),
                            .sin_addr = {::htonl(INADDR_LOOPBACK)}};
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)), 0);
  return socket;
}

bool SendAll(int socket, absl::string_view bytes) {
  return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

}  // namespace muster::train::wire
