// What a role of a native job runs, as the file writes it, and the {placeholders} in it.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "codec/diagnostics.h"
#include "codec/map_reader.h"

namespace muster {

// Holds the words in braces in `text` to CommandPlaceholders(). Only what is near a placeholder is
// taken for one that was misspelled: shell variables, JSON and {a,b} are the user's own.
void CheckPlaceholders(absl::string_view text, bool has_model_dir, codec::Mark mark,
                       codec::Diagnostics& diagnostics);
// The same for `model_dir`, which knows {job_id} alone.
void CheckModelDirPlaceholders(absl::string_view text, codec::Mark mark,
                               codec::Diagnostics& diagnostics);

// The key 'command': a line for a shell, or a list of words. Empty when absent or wrong.
std::vector<std::string> ReadCommand(codec::MapReader& reader, bool has_model_dir,
                                     codec::Diagnostics& diagnostics);

}  // namespace muster
