// A file compiled into the program.
#pragma once

namespace muster::cli {

struct EmbeddedFile {
  const char* name;  // without its extension
  const char* text;
};

}  // namespace muster::cli
