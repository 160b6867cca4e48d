// The registration of the platform `kubernetes`.
#pragma once

#include "platform/registration.h"

namespace muster::kubernetes {

platform::Registration Registration();

}  // namespace muster::kubernetes
