// A file compiled into the program.
#pragma once

namespace muster::base {

struct EmbeddedFile {
  const char* name;  // without its extension
  const char* text;
};

}  // namespace muster::base
