// The registration of the platform `ssh`.
#pragma once

#include "platform/registration.h"

namespace muster::ssh {

platform::Registration Registration();

}  // namespace muster::ssh
