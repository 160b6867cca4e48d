// Reads the command of a role in a native job file and checks its {placeholders}.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "codec/diagnostics.h"
#include "codec/map_reader.h"

namespace muster::job {

// Reports a word in braces that is similar to one of CommandPlaceholders() but not equal, and
// {model_dir} if the job has none. Other words in braces, such as shell variables, JSON and {a,b},
// belong to the user's command and are not reported.
void CheckPlaceholders(absl::string_view text, bool has_model_dir, codec::Mark mark,
                       codec::Diagnostics& diagnostics);
// As above, for the value of `model_dir`, in which {job_id} is the only placeholder.
void CheckModelDirPlaceholders(absl::string_view text, codec::Mark mark,
                               codec::Diagnostics& diagnostics);

// Returns the key 'command', a line for a shell or a list of words, as an argv. Returns an empty
// list if the key is absent, or invalid, which is reported.
std::vector<std::string> ReadCommand(codec::MapReader& reader, bool has_model_dir,
                                     codec::Diagnostics& diagnostics);

}  // namespace muster::job
