#include "k8s/client.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "k8s/error.h"
#include "k8s/testing/api_server.h"
#include "net/testing/tls_front.h"

namespace muster::k8s {
namespace {

using net::Exchange;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class ClientTest : public testing::Test {
 protected:
  // Sends this response to every request.
  void Answer(std::function<void(Exchange&)> answer) {
    server_.Intercept([answer = std::move(answer)](Exchange& exchange) {
      answer(exchange);
      return true;
    });
  }
  absl::Status Refusal(int code, const std::string& reason, const std::string& message,
                       const Json& details = Json::object()) {
    Answer([=](Exchange& exchange) { Refuse(exchange, code, reason, message, details); });
    return client_->Get(kPods, {"b", "a"}).status();
  }

  ApiServer server_;
  std::unique_ptr<Client> client_ = server_.NewClient();
};

TEST_F(ClientTest, CreatesReadsUpdatesAndDeletes) {
  const auto created = client_->Create(kPods, MakePod("a", ""));
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(KeyOf(*created), (ObjectKey{"default", "a"}));
  EXPECT_TRUE(IsExistingObject(client_->Create(kPods, MakePod("a")).status()));
  Json changed = *created;
  changed["metadata"]["labels"] = {{"x", "y"}};
  ASSERT_TRUE(client_->Update(kPods, changed).ok());
  const absl::Status stale = client_->Update(kPods, *created).status();
  EXPECT_TRUE(IsConflict(stale)) << stale;
  EXPECT_FALSE(IsExistingObject(stale));
  EXPECT_EQ(LabelOf(*client_->Get(kPods, {"", "a"}), "x"), "y");
  EXPECT_THAT(client_->List(kPods)->items, SizeIs(1));
  EXPECT_EQ(TextAt(client_->List(kPods)->items[0], "/kind"), "Pod");
  EXPECT_THAT(client_->List(kPods, {.selection = {.ns = "other"}})->items, SizeIs(0));
  EXPECT_TRUE(client_->Delete(kPods, {"", "a"}).ok());
  const absl::Status gone = client_->Get(kPods, {"", "a"}).status();
  EXPECT_TRUE(IsNoSuchObject(gone)) << gone;
  EXPECT_THAT(gone.message(), HasSubstr("cannot get pods 'a' in namespace 'default'"));
}

TEST_F(ClientTest, SendsTheRequestOfTheApi) {
  std::vector<std::string> sent;
  Answer([&](Exchange& exchange) {
    const std::string body = exchange.Body();
    sent.push_back(absl::StrCat(exchange.method(), " ", exchange.target(), " ",
                                exchange.header("content-type"), " ", body));
    exchange.Reply(200, "{}");
  });
  const Json pod = MakePod("a", "b");
  (void)client_->Patch(kPods, {"b", "a"}, {{"x", nullptr}}, {.subresource = "status"});
  (void)client_->Patch(kPods, {"b", "a"}, {{"x", 1}}, {.strategic_patch = true});
  (void)client_->Apply(kPods, pod, true, {.dry_run = true});
  (void)client_->Delete(
      kPods, {"b", "a"},
      {.propagation = DeleteOptions::Propagation::kForeground, .uid = "u", .grace_seconds = 0});
  (void)client_->List(kPods, {.selection = {.labels = "app=a,x in (y)", .fields = "f=g"}});
  (void)client_->GetPath("/version");
  EXPECT_THAT(
      sent,
      ElementsAre(
          R"(PATCH /api/v1/namespaces/b/pods/a/status application/merge-patch+json {"x":null})",
          R"(PATCH /api/v1/namespaces/b/pods/a application/strategic-merge-patch+json {"x":1})",
          absl::StrCat(
              "PATCH /api/v1/namespaces/b/pods/a?fieldManager=muster&force=true&dryRun=All "
              "application/apply-patch+yaml ",
              pod.dump()),
          AllOf(HasSubstr("DELETE /api/v1/namespaces/b/pods/a application/json"),
                HasSubstr(R"("gracePeriodSeconds":0)"), HasSubstr(R"("uid":"u")"),
                HasSubstr(R"("propagationPolicy":"Foreground")")),
          HasSubstr("labelSelector=app%3Da%2Cx%20in%20%28y%29&fieldSelector=f%3Dg&limit=500"),
          HasSubstr("GET /version ")));
}

TEST_F(ClientTest, ConvertsErrors) {
  const absl::Status forbidden =
      Refusal(403, "Forbidden",
              R"(pods "a" is forbidden: User "ada" cannot get resource "pods" in API group "")");
  EXPECT_TRUE(IsForbidden(forbidden));
  EXPECT_TRUE(absl::IsPermissionDenied(forbidden));
  EXPECT_THAT(
      forbidden.message(),
      HasSubstr("{apiGroups: [\"\"], resources: [\"pods\"], verbs: [\"get\"]}, in a Role of "
                "namespace 'b'"));
  const absl::Status quota = Refusal(403, "Forbidden", "pods \"a\" is forbidden: exceeded quota");
  EXPECT_THAT(quota.message(), AllOf(HasSubstr("exceeded quota"), Not(HasSubstr("RBAC"))));
  const absl::Status invalid =
      Refusal(422, "Invalid", "Pod \"a\" is invalid",
              {{"causes", {{{"field", "spec.x"}, {"message", "Required value"}}}}});
  EXPECT_TRUE(IsInvalid(invalid));
  ASSERT_THAT(ApiErrorOf(invalid)->causes, SizeIs(1));
  EXPECT_EQ(ApiErrorOf(base::Annotate(invalid, "job"))->causes[0].field, "spec.x");
  const absl::Status unknown =
      Refusal(404, "NotFound", "the server could not find the requested resource");
  EXPECT_TRUE(IsUnknownResource(unknown));
  EXPECT_FALSE(IsNoSuchObject(unknown));
  EXPECT_THAT(unknown.message(), HasSubstr("is their CRD installed?"));
  EXPECT_TRUE(IsGone(Refusal(410, "Expired", "too old")));
  EXPECT_EQ(ApiErrorOf(absl::UnavailableError("x")), std::nullopt);
}

TEST_F(ClientTest, InvalidResponses) {
  Answer([](Exchange& exchange) { exchange.Reply(404, "404 page not found"); });
  EXPECT_TRUE(IsUnknownResource(client_->Get(kLeases, {"", "a"}).status()));
  Answer([](Exchange& exchange) { exchange.Reply(200, "<html>"); });
  EXPECT_TRUE(absl::IsDataLoss(client_->Get(kPods, {"", "a"}).status()));
  EXPECT_TRUE(absl::IsDataLoss(client_->List(kPods).status()));
  Answer([](Exchange& exchange) { exchange.Reply(200, R"({"items":[1,"x",null],"metadata":5})"); });
  EXPECT_THAT(client_->List(kPods)->items, SizeIs(0));
  Answer([](Exchange& exchange) { exchange.Reply(403, "no\x1b[2J\xff"); });
  EXPECT_THAT(client_->Get(kPods, {"", "a"}).status().message(), HasSubstr("HTTP 403"));
}

TEST_F(ClientTest, RetriesTooManyRequests) {
  std::atomic<int> count = 0;
  server_.Intercept([&](Exchange& exchange) {
    if (count++ >= 2) return false;
    Refuse(exchange, 429, "TooManyRequests", "later", Json::object(), {{"Retry-After", "1"}});
    return true;
  });
  EXPECT_TRUE(client_->Create(kPods, MakePod("a")).ok());
  EXPECT_EQ(count, 3);
  const absl::Status refused = Refusal(429, "TooManyRequests", "x", {{"retryAfterSeconds", 7}});
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(ApiErrorOf(refused)->retry_after, absl::Seconds(7));
}

TEST_F(ClientTest, ReadsRetryAfterAsADate) {
  const std::string date = absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT",
                                            absl::Now() + absl::Minutes(1), absl::UTCTimeZone());
  Answer([&date](Exchange& exchange) {
    Refuse(exchange, 403, "Forbidden", "x", Json::object(), {{"Retry-After", date}});
  });
  const auto error = ApiErrorOf(client_->Get(kPods, {"", "a"}).status());
  ASSERT_TRUE(error.has_value());
  EXPECT_GT(error->retry_after, absl::ZeroDuration());
  EXPECT_LE(error->retry_after, absl::Minutes(1));
}

TEST_F(ClientTest, RetriesOnlyWhatIsSafe) {
  std::atomic<int> count = 0;
  Answer([&](Exchange& exchange) {
    ++count;
    (void)exchange.Body();
    exchange.Cut();
  });
  const auto tries = [&](const absl::Status& status) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    return count.exchange(0);
  };
  EXPECT_EQ(tries(client_->Get(kPods, {"", "a"}).status()), 6);
  EXPECT_EQ(tries(client_->Update(kPods, MakePod("a")).status()), 6);
  EXPECT_EQ(tries(client_->Delete(kPods, {"", "a"}, {.uid = "u"})), 6);
  EXPECT_EQ(tries(client_->Delete(kPods, {"", "a"})), 1);
  const absl::Status created = client_->Create(kPods, MakePod("a")).status();
  EXPECT_EQ(tries(created), 1);
  EXPECT_THAT(created.message(), HasSubstr("may or may not have executed it"));
  Answer([&](Exchange& exchange) {
    ++count;
    exchange.Reply(500);
  });
  EXPECT_EQ(tries(client_->Create(kPods, MakePod("a")).status()), 1);
}

TEST_F(ClientTest, ReadsListsInPages) {
  Answer([](Exchange& exchange) {
    const bool second = absl::StrContains(exchange.target(), "continue=n%2F1");
    Json list = {{"metadata", {{"resourceVersion", "7"}, {"continue", second ? "" : "n/1"}}},
                 {"items", {MakePod(second ? "b" : "a")}}};
    exchange.Reply(200, list.dump());
  });
  const auto list = client_->List(kPods, {.page_size = 1, .transform = [](Json& item) {
                                            item["metadata"].erase("namespace");
                                          }});
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_THAT(list->items, SizeIs(2));
  EXPECT_EQ(NameOf(list->items[1]), "b");
  EXPECT_EQ(KeyOf(list->items[1]).ns, "");
  EXPECT_EQ(list->resource_version, "7");
  EXPECT_EQ(server_.Count("limit=1"), 2);
}

// Objects of a megabyte each, together larger than the limit of one page.
TEST_F(ClientTest, ReadsLargeObjectsInSmallerPages) {
  static constexpr int kObjects = 24;
  Answer([](Exchange& exchange) {
    const std::string target(exchange.target());
    const auto number = [&](const std::string& name, int otherwise) {
      const size_t at = target.find(name);
      return at == std::string::npos ? otherwise : std::atoi(target.c_str() + at + name.size());
    };
    const int begin = number("continue=", 0);
    const int end = std::min(kObjects, begin + number("limit=", kObjects));
    Json items = Json::array();
    for (int i = begin; i < end; ++i) {
      Json pod = MakePod(absl::StrCat("p", i));
      pod["metadata"]["annotations"] = {{"large", std::string(1 << 20, 'x')}};
      items.push_back(std::move(pod));
    }
    exchange.Reply(200, Json{{"metadata", {{"continue", end == kObjects ? "" : absl::StrCat(end)}}},
                             {"items", std::move(items)}}
                            .dump());
  });
  std::set<std::string> names;
  const auto list = client_->List(kPods, {.transform = [&](Json& item) {
                                    names.insert(NameOf(item));
                                    item["metadata"].erase("annotations");
                                  }});
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(list->items, SizeIs(kObjects));
  EXPECT_THAT(names, SizeIs(kObjects));
}

TEST_F(ClientTest, RestartsAListThatExpires) {
  std::atomic<int> expired = 0;
  Answer([&](Exchange& exchange) {
    if (absl::StrContains(exchange.target(), "continue=")) {
      ++expired;
      return Refuse(exchange, 410, "Expired", "the provided continue parameter is too old");
    }
    const bool whole = !absl::StrContains(exchange.target(), "limit=");
    Json list = {{"metadata", {{"continue", whole ? "" : "next"}, {"resourceVersion", "9"}}},
                 {"items", {MakePod("a")}}};
    if (whole) list["items"].push_back(MakePod("b"));
    exchange.Reply(200, list.dump());
  });
  const auto list = client_->List(kPods);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(list->items, SizeIs(2));
  EXPECT_EQ(expired, 2);
}

TEST_F(ClientTest, EndlessListsAreAnError) {
  Answer([](Exchange& exchange) { exchange.Reply(200, R"({"metadata":{"continue":"x"}})"); });
  EXPECT_TRUE(absl::IsDataLoss(client_->List(kPods).status()));
}

TEST_F(ClientTest, PassesWarningsOn) {
  std::vector<std::string> warnings;
  client_ =
      server_.NewClient({.on_warning = [&](const std::string& text) { warnings.push_back(text); }});
  Answer([](Exchange& exchange) {
    exchange.Reply(
        200, "{}",
        {{"Warning", "299 - \"unknown field \\\"spec.x\\\"\""}, {"warning", "299 - \"y\""}});
  });
  ASSERT_TRUE(client_->Create(kPods, MakePod("a")).ok());
  EXPECT_THAT(warnings, ElementsAre("unknown field \"spec.x\"", "y"));
}

TEST_F(ClientTest, StreamsALog) {
  absl::Notification first;
  Answer([&](Exchange& exchange) {
    BeginStream(exchange);
    SendChunk(exchange, "one\n");
    first.WaitForNotification();  // the reader has received that much
    SendChunk(exchange, "two\n");
    SendChunk(exchange, "");
  });
  std::string log;
  const absl::Status status = client_->ReadLog({"b", "a"},
                                               {.container = "c",
                                                .follow = true,
                                                .previous = true,
                                                .tail_lines = 5,
                                                .since = absl::FromUnixSeconds(1'700'000'000)},
                                               [&](absl::string_view bytes) {
                                                 absl::StrAppend(&log, bytes);
                                                 if (log == "one\n") first.Notify();
                                                 return absl::OkStatus();
                                               });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(log, "one\ntwo\n");
  EXPECT_EQ(server_.requests()[0],
            "GET /api/v1/namespaces/b/pods/a/log?container=c&follow=true&previous=true&tailLines=5&"
            "sinceTime=2023-11-14T22%3A13%3A20Z");
}

TEST_F(ClientTest, TheReaderMayEndALog) {
  Answer([](Exchange& exchange) {
    BeginStream(exchange);
    SendChunk(exchange, "one\n");
    exchange.Stall();
  });
  std::stop_source source;
  const auto stops = [&](absl::string_view) {
    source.request_stop();
    return absl::OkStatus();
  };
  EXPECT_TRUE(absl::IsCancelled(
      client_->ReadLog({"b", "a"}, {.follow = true, .stop = source.get_token()}, stops)));
  const absl::Status own = client_->ReadLog({"b", "a"}, {.follow = true}, [](absl::string_view) {
    return absl::OutOfRangeError("mine");
  });
  EXPECT_EQ(own, absl::OutOfRangeError("mine"));
  Answer([](Exchange& exchange) {
    BeginStream(exchange);
    SendChunk(exchange, "one\n");
    exchange.Cut();
  });
  const auto takes = [](absl::string_view) { return absl::OkStatus(); };
  EXPECT_TRUE(absl::IsUnavailable(client_->ReadLog({"b", "a"}, {.follow = true}, takes)));
}

TEST_F(ClientTest, ACallHasATimeout) {
  Answer([](Exchange& exchange) { exchange.Stall(); });
  const absl::Time begin = absl::Now();
  EXPECT_TRUE(absl::IsUnavailable(
      client_->Get(kPods, {"", "a"}, {.timeout = absl::Milliseconds(300)}).status()));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
}

TEST_F(ClientTest, LimitsTheRate) {
  client_ = server_.NewClient({.requests_per_second = 20, .burst = 2});
  const absl::Time begin = absl::Now();
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(client_->List(kPods).ok());
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(190));
}

class TlsClientTest : public ClientTest {
 protected:
  std::unique_ptr<Client> Connect(const net::CertificateRequest& request, ClusterConfig config) {
    front_ = std::make_unique<net::TlsFront>(server_.address(), authority_.Issue(request),
                                             authority_.certificate());
    config.server = front_->address();
    config.origin = "context 'dev' of /config";
    return *Client::Create(config);
  }

  const net::TestAuthority authority_;
  std::unique_ptr<net::TlsFront> front_;
};

TEST_F(TlsClientTest, SendsAClientCertificate) {
  const net::TestCertificate own = authority_.Issue({.name = "ada"});
  const auto client =
      Connect({.hosts = "DNS:kubernetes"},
              {.authorities = authority_.certificate(),
               .tls_server_name = "kubernetes",
               .user = {.certificate = {.data = own.certificate}, .key = {.data = own.key}}});
  const auto list = client->List(kPods);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(front_->client_name(), "ada");
}

TEST_F(TlsClientTest, RejectsAnUntrustedServer) {
  const auto stranger =
      Connect({.hosts = "IP:127.0.0.1"}, {.authorities = net::TestAuthority().certificate()});
  EXPECT_THAT(stranger->List(kPods).status().message(),
              HasSubstr("'certificate-authority' of context 'dev' of /config must be"));
  const auto expired = Connect({.hosts = "IP:127.0.0.1", .until = absl::Now() - absl::Minutes(1)},
                               {.authorities = authority_.certificate()});
  const auto list = expired->List(kPods);
  EXPECT_TRUE(absl::IsFailedPrecondition(list.status()));
  EXPECT_THAT(list.status().message(), HasSubstr("expired"));
  EXPECT_THAT(server_.requests(), SizeIs(0));
}

}  // namespace
}  // namespace muster::k8s
