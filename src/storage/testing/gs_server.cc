#include "storage/testing/gs_server.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text/json.h"
#include "gtest/gtest.h"

namespace muster::storage {

std::unique_ptr<GsServer> GsServer::Start(const nlohmann::json& options) {
  auto node = NodeServer::Start({absl::StrCat(MUSTER_TESTS, "/gs_server.mjs"), options.dump()});
  auto http = net::HttpClient::Create({});
  if (node == nullptr || !http.ok()) return nullptr;
  return std::unique_ptr<GsServer>(new GsServer(std::move(node), *std::move(http)));
}

nlohmann::json GsServer::Test(const std::string& path, const nlohmann::json& body) {
  const std::string text = body.is_null() ? "" : body.dump();
  const auto response = http_->Do({.method = body.is_null() ? "GET" : "POST",
                                   .url = absl::StrCat(address(), "/test/", path),
                                   .body = text});
  EXPECT_TRUE(response.ok() && response->ok()) << path;
  return base::ParseJson(response.ok() ? response->body : "");
}

int GsServer::CountOf(const std::string& text) {
  const nlohmann::json requests = Test("state")["requests"];
  return static_cast<int>(
      std::count_if(requests.begin(), requests.end(), [&](const nlohmann::json& request) {
        return absl::StrContains(request.get<std::string>(), text);
      }));
}

}  // namespace muster::storage
