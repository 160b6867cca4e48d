// Changes that a user makes to a job file without editing it: the options --set, --env and --name
// of `muster run` and of the commands that read a job file, and the arguments after `--`.
#pragma once

#include <string>
#include <vector>

#include "codec/diagnostics.h"
#include "codec/node.h"

namespace muster::job {

struct Overrides {
  std::vector<std::string> set;        // PATH=VALUE; see override_path.h; VALUE is YAML
  std::vector<std::string> env;        // KEY=VALUE, for every task
  std::string name;                    // of the job; "" = that of the file
  std::vector<std::string> arguments;  // appended to the commands of the job

  bool empty() const { return set.empty() && env.empty() && name.empty() && arguments.empty(); }
  // Returns what is overridden, without values, which may be secret: "--set train.steps".
  std::vector<std::string> Names() const;
};

enum class FileFormat { kNative, kManifest, kRenderedCluster };

// Applies the overrides to `document`, which describes a job. Mistakes in them, and mistakes that
// the reader of the job finds in them later, are located by the option: "--set train.steps: …".
void ApplyOverrides(const Overrides& overrides, FileFormat format, codec::Node& document,
                    codec::Diagnostics& diagnostics);

}  // namespace muster::job
