// A file compiled into the program.
#pragma once

namespace muster::base {

struct EmbeddedFile {
  const char* name;  // see cmake/MusterEmbed.cmake
  const char* text;
};

}  // namespace muster::base
