#include "k8s/testing/api_server.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace muster::k8s {
namespace {

int64_t Number(const std::string& text) {
  int64_t value = 0;
  return absl::SimpleAtoi(text, &value) ? value : 0;
}

}  // namespace

void Refuse(net::Exchange& exchange, int code, const std::string& reason,
            const std::string& message, const Json& details, const net::Headers& headers) {
  const Json status = {{"kind", "Status"},   {"apiVersion", "v1"}, {"status", "Failure"},
                       {"message", message}, {"reason", reason},   {"details", details},
                       {"code", code}};
  exchange.Reply(code, status.dump(), headers);
}

void BeginStream(net::Exchange& exchange) {
  exchange.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
}

void SendChunk(net::Exchange& exchange, absl::string_view bytes) {
  exchange.Send(absl::StrFormat("%x\r\n%s\r\n", bytes.size(), bytes));
}

Json MakePod(const std::string& name, const std::string& ns) {
  return {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", {{"name", name}, {"namespace", ns}}}};
}

ApiServer::ApiServer()
    : server_(
          std::make_unique<net::TestServer>([this](net::Exchange& exchange) { Serve(exchange); })) {
  for (const char* name : {"http_proxy", "all_proxy", "ALL_PROXY", "https_proxy", "HTTPS_PROXY"}) {
    ::unsetenv(name);
  }
}

ApiServer::~ApiServer() {
  {
    absl::MutexLock lock(&mutex_);
    ends_ = true;
  }
  server_.reset();
}

ClusterConfig ApiServer::config() const {
  return {.origin = "context 'test' of /test/config", .server = address(), .user = {.name = "ada"}};
}

std::unique_ptr<Client> ApiServer::NewClient(ClientOptions options) const {
  options.http.sleep = [](absl::Duration) {};
  return *Client::Create(config(), std::move(options));
}

ApiServer::Path ApiServer::Parse(const std::string& target) {
  const std::pair<std::string, std::string> halves =
      absl::StrSplit(target, absl::MaxSplits('?', 1));
  std::vector<std::string> parts = absl::StrSplit(halves.first, '/', absl::SkipEmpty());
  parts.erase(parts.begin(), parts.begin() + (parts[0] == "api" ? 2 : 3));
  Path path;
  if (parts.size() > 2 && parts[0] == "namespaces") {
    path.key.ns = parts[1];
    parts.erase(parts.begin(), parts.begin() + 2);
  }
  path.plural = parts[0];
  if (parts.size() > 1) path.key.name = parts[1];
  for (const absl::string_view word : absl::StrSplit(halves.second, '&', absl::SkipEmpty())) {
    path.query.insert(
        std::pair<std::string, std::string>(absl::StrSplit(word, absl::MaxSplits('=', 1))));
  }
  return path;
}

Json ApiServer::Store(const std::string& plural, Json object) {
  const ObjectKey key = KeyOf(object);
  auto& objects = objects_[plural];
  const auto found = objects.find(key);
  ++version_;
  Json& metadata = object["metadata"];
  metadata["uid"] = found == objects.end() ? absl::StrCat("uid-", version_) : UidOf(found->second);
  metadata["resourceVersion"] = absl::StrCat(version_);
  events_.push_back({version_, plural, found == objects.end() ? "ADDED" : "MODIFIED", object});
  objects[key] = object;
  return object;
}

void ApiServer::Drop(const std::string& plural, const ObjectKey& key) {
  const auto found = objects_[plural].find(key);
  if (found == objects_[plural].end()) return;
  Json object = std::move(found->second);
  objects_[plural].erase(found);
  object["metadata"]["resourceVersion"] = absl::StrCat(++version_);
  events_.push_back({version_, plural, "DELETED", std::move(object)});
}

Json ApiServer::Put(const ResourceKind& kind, Json object) {
  absl::MutexLock lock(&mutex_);
  return Store(std::string(kind.plural), std::move(object));
}

void ApiServer::Remove(const ResourceKind& kind, const ObjectKey& key) {
  absl::MutexLock lock(&mutex_);
  Drop(std::string(kind.plural), key);
}

Json ApiServer::Get(const ResourceKind& kind, const ObjectKey& key) const {
  absl::MutexLock lock(&mutex_);
  const auto objects = objects_.find(std::string(kind.plural));
  if (objects == objects_.end()) return nullptr;
  const auto found = objects->second.find(key);
  return found == objects->second.end() ? Json() : found->second;
}

void ApiServer::CutWatches() {
  absl::MutexLock lock(&mutex_);
  ++cuts_;
}

void ApiServer::Forget() {
  absl::MutexLock lock(&mutex_);
  forgotten_ = ++version_;
}

void ApiServer::SendBookmarks() {
  absl::MutexLock lock(&mutex_);
  ++version_;
  ++bookmarks_;
}

void ApiServer::Intercept(std::function<bool(net::Exchange&)> intercept) {
  absl::MutexLock lock(&mutex_);
  intercept_ = std::move(intercept);
}

std::vector<std::string> ApiServer::requests() const {
  absl::MutexLock lock(&mutex_);
  return requests_;
}

int ApiServer::Count(absl::string_view part) const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(std::count_if(requests_.begin(), requests_.end(), [&](const auto& text) {
    return absl::StrContains(text, part);
  }));
}

bool ApiServer::WaitForWatches(int count) const {
  absl::MutexLock lock(&mutex_);
  const auto open = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return watches_ == count; };
  return mutex_.AwaitWithTimeout(absl::Condition(&open), absl::Seconds(30));
}

void ApiServer::Serve(net::Exchange& exchange) {
  std::function<bool(net::Exchange&)> intercept;
  {
    absl::MutexLock lock(&mutex_);
    requests_.push_back(absl::StrCat(exchange.method(), " ", exchange.target()));
    intercept = intercept_;
  }
  if (intercept && intercept(exchange)) return;
  const Path path = Parse(exchange.target());
  if (exchange.method() == "POST" || exchange.method() == "PUT") return Write(exchange, path);
  if (exchange.method() == "DELETE") return Delete(exchange, path);
  if (path.query.count("watch") > 0) return Watch(exchange, path);
  if (path.key.name.empty()) return List(exchange, path);
  const Json object = Get({.plural = path.plural}, path.key);
  if (!object.is_null()) return exchange.Reply(200, object.dump());
  Refuse(exchange, 404, "NotFound", absl::StrCat(path.plural, " \"", path.key.name, "\" not found"),
         {{"name", path.key.name}, {"kind", path.plural}});
}

void ApiServer::List(net::Exchange& exchange, const Path& path) {
  Json list = {{"kind", "List"}, {"items", Json::array()}};
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [key, object] : objects_[path.plural]) {
      if (path.key.ns.empty() || path.key.ns == key.ns) {
        list["items"].push_back(object);
        list["items"].back().erase("kind");
        list["items"].back().erase("apiVersion");
      }
    }
    list["metadata"] = {{"resourceVersion", absl::StrCat(version_)}};
  }
  exchange.Reply(200, list.dump());
}

void ApiServer::Write(net::Exchange& exchange, const Path& path) {
  Json object = Json::parse(exchange.Body());
  absl::MutexLock lock(&mutex_);
  const ObjectKey key{path.key.ns, NameOf(object)};
  object["metadata"]["namespace"] = key.ns;
  const auto found = objects_[path.plural].find(key);
  const bool exists = found != objects_[path.plural].end();
  const Json details = {{"name", key.name}, {"kind", path.plural}};
  if (exchange.method() == "POST" && exists) {
    return Refuse(exchange, 409, "AlreadyExists", "it exists", details);
  }
  if (exchange.method() == "PUT" && !exists) {
    return Refuse(exchange, 404, "NotFound", "it does not exist", details);
  }
  const std::string version = ResourceVersionOf(object);
  if (exists && !version.empty() && version != ResourceVersionOf(found->second)) {
    return Refuse(exchange, 409, "Conflict", "the object has been modified", details);
  }
  exchange.Reply(exists ? 200 : 201, Store(path.plural, std::move(object)).dump());
}

void ApiServer::Delete(net::Exchange& exchange, const Path& path) {
  absl::MutexLock lock(&mutex_);
  Drop(path.plural, path.key);
  exchange.Reply(200, R"({"kind":"Status","status":"Success"})");
}

std::string ApiServer::NextLines(const Path& path, int64_t& version) {
  std::string lines;
  for (const Event& event : events_) {
    if (event.version <= version || event.plural != path.plural) continue;
    const Json line = {{"type", event.type}, {"object", event.object}};
    absl::StrAppend(&lines, line.dump(), "\n");
  }
  version = version_;
  return lines;
}

void ApiServer::Watch(net::Exchange& exchange, const Path& path) {
  const auto from = path.query.find("resourceVersion");
  int64_t version = from == path.query.end() ? 0 : Number(from->second);
  absl::MutexLock lock(&mutex_);
  if (version < forgotten_) {
    return Refuse(exchange, 410, "Expired", "too old resource version");
  }
  const int cuts = cuts_;
  int bookmarks = bookmarks_;
  ++watches_;
  BeginStream(exchange);
  while (!ends_ && cuts == cuts_) {
    const std::string lines = NextLines(path, version);
    if (!lines.empty()) SendChunk(exchange, lines);
    if (bookmarks != bookmarks_) {
      bookmarks = bookmarks_;
      SendChunk(exchange,
                absl::StrCat(R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":")",
                             version_, "\"}}}\n"));
    }
    const auto news = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return ends_ || cuts != cuts_ || bookmarks != bookmarks_ || version != version_;
    };
    mutex_.Await(absl::Condition(&news));
  }
  --watches_;
  exchange.Cut();
}

}  // namespace muster::k8s
