#include "cluster/address.h"

#include "gtest/gtest.h"

namespace muster::cluster {
namespace {

TEST(AddressTest, ReadsHostsAndPorts) {
  EXPECT_EQ(ParseAddress("instance-1:8000"), (Address{"instance-1", 8000}));
  EXPECT_EQ(ParseAddress("10.0.0.7:1"), (Address{"10.0.0.7", 1}));
  EXPECT_EQ(ParseAddress("[fe80::1]:65535"), (Address{"fe80::1", 65535}));
}

TEST(AddressTest, FormatsHostsAndPorts) {
  for (const char* text : {"instance-1:8000", "10.0.0.7:1", "[fe80::1]:65535"}) {
    const auto address = ParseAddress(text);
    EXPECT_EQ(MakeAddress(address->host, address->port), text);
  }
}

TEST(AddressTest, RejectsEverythingElse) {
  for (const char* text :
       {"", ":", "host", "host:", ":2222", "host:0", "host:65536", "host:-1", "host:+1", "host: 1",
        "host:99999999999999999999", "a b:1", "a,b:1", "a\nb:1", "::1:2222", "[]:1"}) {
    EXPECT_EQ(ParseAddress(text), std::nullopt) << text;
  }
}

TEST(AddressTest, Loopback) {
  for (const char* host : {"localhost", "127.0.0.1", "127.9.8.7", "::1"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"", "vm-a", "localhost.example.com", "10.0.0.7", "128.0.0.1", "0.0.0.0",
                           "::", "fe80::1", "127.1", "::ffff:10.0.0.7"}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

}  // namespace
}  // namespace muster::cluster
