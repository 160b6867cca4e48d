#include "dashboard/pages.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "dashboard/page_files.h"

namespace muster::dashboard {
namespace {

constexpr char kHtml[] = "text/html; charset=utf-8";

std::string TypeOf(absl::string_view path) {
  if (absl::EndsWith(path, ".js")) return "application/javascript; charset=utf-8";
  if (absl::EndsWith(path, ".css")) return "text/css; charset=utf-8";
  if (absl::EndsWith(path, ".svg")) return "image/svg+xml; charset=utf-8";
  return kHtml;
}

std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(text,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string Document(absl::string_view head, absl::string_view body) {
  return absl::StrCat("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">",
                      "<meta name=\"viewport\" content=\"width=device-width\">",
                      "<title>Muster</title>", head, "</head><body><main>", body,
                      "</main></body></html>\n");
}

// Accepts only characters of ids, so that a link cannot lead to another site.
bool IsJobPath(absl::string_view path) {
  return absl::ConsumePrefix(&path, "/jobs/") && !path.empty() &&
         std::all_of(path.begin(), path.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
         });
}

}  // namespace

std::optional<Response> PageAt(const std::string& path) {
  const bool asset = absl::StartsWith(path, "/assets/");
  const std::string wanted = asset ? path.substr(1) : "index.html";
  for (const auto& file : kPageFiles) {
    if (file.name != wanted) continue;
    return Response{
        .type = TypeOf(wanted),
        .body = std::string(file.text),
        .headers = {{"Cache-Control", asset ? "public, max-age=31536000, immutable" : "no-cache"}}};
  }
  return std::nullopt;
}

Response SessionStarted(const std::string& cookie, absl::string_view next) {
  const std::string to(IsJobPath(next) ? next : "/");
  return {.type = kHtml,
          .body = Document(absl::StrCat("<meta http-equiv=\"refresh\" content=\"0;url=", to, "\">"),
                           absl::StrCat("<p><a href=\"", to, "\">Open the dashboard</a></p>")),
          .headers = {{"Set-Cookie", cookie}, {"Cache-Control", "no-store"}}};
}

Response LoginPage(int status, absl::string_view message, bool asks_password) {
  std::string body = absl::StrCat("<h1>Muster</h1><p>", Escaped(message), "</p>");
  if (asks_password) {
    body +=
        "<form method=\"post\" action=\"/login\"><label>Password <input type=\"password\" "
        "name=\"password\" autocomplete=\"current-password\" autofocus></label> "
        "<button>Log in</button></form>";
  }
  return {.status = status,
          .type = kHtml,
          .body = Document("", body),
          .headers = {{"Cache-Control", "no-store"}}};
}

}  // namespace muster::dashboard
