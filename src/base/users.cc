#include "base/users.h"

#include <pwd.h>
#include <unistd.h>

#include <vector>

// Weak, so that a static link (muster-agent) leaves them null. Otherwise they would make the linker
// add glibc's name services, and print a warning.
#pragma weak getpwnam_r
#pragma weak getpwuid_r

namespace muster::base {
namespace {

constexpr size_t kMaxEntryBytes = 1 << 14;

// Returns `field` of the entry that `find`, getpwnam_r or getpwuid_r, returns for `key`.
template <typename Function, typename Key>
std::string FieldOf(Function* find, Key key, char* passwd::*field) {
  if (find == nullptr) return "";
  std::vector<char> room(kMaxEntryBytes);
  passwd entry{};
  passwd* found = nullptr;
  const int error = find(key, &entry, room.data(), room.size(), &found);
  return error == 0 && found != nullptr ? found->*field : "";
}

}  // namespace

std::string NameOfThisUser() { return FieldOf(&::getpwuid_r, ::geteuid(), &passwd::pw_name); }

std::string HomeOfThisUser() { return FieldOf(&::getpwuid_r, ::getuid(), &passwd::pw_dir); }

std::string HomeOfUser(const std::string& user) {
  return FieldOf(&::getpwnam_r, user.c_str(), &passwd::pw_dir);
}

}  // namespace muster::base
