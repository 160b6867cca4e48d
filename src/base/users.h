// The user database of this machine. A statically linked program has none: it links nothing of
// glibc's name services, which must have the version of the machine that it runs on.
#pragma once

#include <string>

namespace muster::base {

// Returns the name of the effective user of this process; "" if it has none.
std::string NameOfThisUser();
// Returns the home folder of the user of this process; "" if there is no such entry.
std::string HomeOfThisUser();
// Returns the home folder of `user`; "" if there is no such user.
std::string HomeOfUser(const std::string& user);

}  // namespace muster::base
