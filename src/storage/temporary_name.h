// What a file is called, beside its place, while it is written.
#pragma once

#include <string>

namespace muster::storage {

// How all of them begin; no listing shows them.
inline constexpr char kTemporaryPrefix[] = ".muster-tmp-";

// Another one with every call.
std::string TemporaryName();

}  // namespace muster::storage
