// The files of the page, which are compiled in (web/dist), and the small pages of the login.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "dashboard/http.h"

namespace muster::dashboard {

// Returns the file at the path. Every path that names no file is a route of the page itself, so it
// returns index.html for it; nullopt for a missing file below /assets/.
std::optional<Response> PageAt(const std::string& path);

// Returns the page that a browser gets with its session. It opens the page at `next`, or the first
// page if that is not the path of a job, by itself: the navigation of a page of this site sends the
// cookie, a redirect from another site would not.
Response SessionStarted(const std::string& cookie, absl::string_view next);
// Returns a page with an explanation and, if there is a password, a form that asks for it.
Response LoginPage(int status, absl::string_view message, bool asks_password);

}  // namespace muster::dashboard
