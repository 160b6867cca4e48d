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

// Returns the home folder of the entry that `find`, getpwnam_r or getpwuid_r, returns for `key`.
template <typename Function, typename Key>
std::string HomeOf(Function* find, Key key) {
  if (find == nullptr) return "";
  std::vector<char> room(kMaxEntryBytes);
  passwd entry{};
  passwd* found = nullptr;
  const int error = find(key, &entry, room.data(), room.size(), &found);
  return error == 0 && found != nullptr ? found->pw_dir : "";
}

}  // namespace

std::string HomeOfThisUser() { return HomeOf(&::getpwuid_r, ::getuid()); }

std::string HomeOfUser(const std::string& user) { return HomeOf(&::getpwnam_r, user.c_str()); }

}  // namespace muster::base
