// The registration of the platform `local`.
#pragma once

#include "platform/registration.h"

namespace muster::local {

platform::Registration Registration();

}  // namespace muster::local
