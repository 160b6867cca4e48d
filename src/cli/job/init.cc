// muster init: prints a commented starter file.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/suggest.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/templates.h"

namespace muster::cli {

void AddInitCommand(Command& program, Context& context) {
  Command& command = program.AddCommand("init", "Print a commented starter file");
  auto kind = std::make_shared<std::string>("custom");
  std::vector<std::string> names;
  for (const base::EmbeddedFile& item : kTemplates) names.emplace_back(item.name);
  command.Argument("KIND", kind.get(), "mnist, pytorch, tensorflow or custom (the default)");
  command.OnCall([&context, kind, names]() -> absl::StatusOr<int> {
    for (const base::EmbeddedFile& item : kTemplates) {
      if (*kind != item.name) continue;
      context.out().PrintData(item.text);
      return kSuccess;
    }
    return absl::InvalidArgumentError(absl::StrCat("unknown starter file '", *kind, "'",
                                                   base::DidYouMean(*kind, names),
                                                   "; available: ", absl::StrJoin(names, ", ")));
  });
}

}  // namespace muster::cli
