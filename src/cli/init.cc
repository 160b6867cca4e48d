// muster init: a commented starter file.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/templates.h"

namespace muster::cli {

void AddInitCommand(CLI::App& app, Context& context, int& exit_code) {
  CLI::App* command = app.add_subcommand("init", "Print a commented starter file");
  auto kind = std::make_shared<std::string>("custom");
  std::vector<std::string> names;
  for (const Template& item : kTemplates) names.push_back(item.name);
  command->add_option("KIND", *kind, "mnist, pytorch, tensorflow or custom")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  command->callback([&context, &exit_code, kind] {
    for (const Template& item : kTemplates) {
      if (*kind == item.name) context.out().Print(item.text);
    }
    exit_code = kSuccess;
  });
}

}  // namespace muster::cli
