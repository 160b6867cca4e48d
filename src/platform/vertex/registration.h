// The registration of the platform `vertex`.
#pragma once

#include "platform/registration.h"

namespace muster::vertex {

platform::Registration Registration();

}  // namespace muster::vertex
