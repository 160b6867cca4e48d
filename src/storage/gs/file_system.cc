#include "storage/gs/file_system.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/text/json.h"
#include "storage/file_errors.h"
#include "storage/gs/reader.h"
#include "storage/gs/writer.h"
#include "storage/objects.h"

namespace muster::storage {
namespace {

using To = GsRequest::To;

absl::StatusOr<ListingPage> ParsePage(const Url& prefix, absl::string_view text) {
  const nlohmann::json json = base::ParseJson(text);
  if (!json.is_object()) {
    return absl::DataLossError(
        absl::StrCat(prefix.ToString(), ": the server's listing is not a JSON object"));
  }
  ListingPage page{.next = base::TextMember(json, "nextPageToken")};
  const nlohmann::json none = nlohmann::json::array();
  const auto elements = [&](const char* name) -> const nlohmann::json& {
    const auto found = json.find(name);
    return found != json.end() && found->is_array() ? *found : none;
  };
  for (const nlohmann::json& item : elements("items")) {
    MUSTER_ASSIGN_OR_RETURN(GsObject object,
                            ParseObject(prefix.WithName(base::TextMember(item, "name")), item));
    page.files.push_back(std::move(object.info));
  }
  for (const nlohmann::json& folder : elements("prefixes")) {
    if (folder.is_string()) page.folders.push_back(folder.get<std::string>());
  }
  return page;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GsFileSystem>> GsFileSystem::FromVariables(
    const base::Variables& variables) {
  MUSTER_ASSIGN_OR_RETURN(auto client, GsClient::FromVariables(variables));
  return std::make_unique<GsFileSystem>(std::move(client));
}

absl::StatusOr<GsObject> GsFileSystem::Lookup(const Url& url) {
  const GsRequest request{.url = url, .query = {{"fields", kObjectFields}}};
  MUSTER_ASSIGN_OR_RETURN(const net::Response response, client_->Send(request));
  MUSTER_RETURN_IF_ERROR(GsClient::ErrorOf(request, response));
  return ParseObject(url, base::ParseJson(response.body));
}

absl::StatusOr<FileInfo> GsFileSystem::Stat(const Url& url) {
  if (url.NamesFolder()) return Absent(url);
  MUSTER_ASSIGN_OR_RETURN(GsObject object, Lookup(url));
  return std::move(object.info);
}

absl::StatusOr<std::unique_ptr<Reader>> GsFileSystem::OpenForReading(const Url& url) {
  if (url.name.empty()) return NotAFileName(url);
  MUSTER_ASSIGN_OR_RETURN(const GsObject object, Lookup(url));
  return std::make_unique<GsReader>(*client_, object);
}

absl::StatusOr<std::unique_ptr<Writer>> GsFileSystem::OpenForWriting(const Url& url,
                                                                     IfExists if_exists) {
  if (url.NamesFolder()) return NotAFileName(url);
  return std::make_unique<GsWriter>(*client_, url, if_exists);
}

absl::StatusOr<std::vector<FileInfo>> GsFileSystem::List(const Url& prefix, Depth depth) {
  return ListPages(prefix, [&](const std::string& token) -> absl::StatusOr<ListingPage> {
    GsRequest request{
        .to = To::kList,
        .url = prefix,
        .query = {{"prefix", prefix.name},
                  {"fields", absl::StrCat("nextPageToken,prefixes,items(", kObjectFields, ")")}}};
    if (depth == Depth::kHere) request.query.emplace_back("delimiter", "/");
    if (!token.empty()) request.query.emplace_back("pageToken", token);
    MUSTER_ASSIGN_OR_RETURN(const net::Response response, client_->Send(request));
    MUSTER_RETURN_IF_ERROR(GsClient::ErrorOf(request, response));
    return ParsePage(prefix, response.body);
  });
}

absl::Status GsFileSystem::Delete(const Url& url) {
  if (url.name.empty()) return NotAFileName(url);
  const GsRequest request{.method = "DELETE", .url = url};
  MUSTER_ASSIGN_OR_RETURN(const net::Response response, client_->Send(request));
  const absl::Status status = GsClient::ErrorOf(request, response);
  // NotFound for a missing bucket is an error.
  const bool absent = absl::IsNotFound(status) && status == Absent(url);
  return absent ? absl::OkStatus() : status;
}

absl::Status GsFileSystem::Rename(const Url& from, const Url& /*to*/) {
  return NoRenaming(from, "Google Cloud Storage");
}

}  // namespace muster::storage
