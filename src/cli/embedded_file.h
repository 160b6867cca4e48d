// A file that is part of the program.
#pragma once

namespace muster::cli {

struct EmbeddedFile {
  const char* name;  // without its ending
  const char* text;
};

}  // namespace muster::cli
