#include "train/core/values.h"

#include "base/status_macros.h"

namespace muster::train {

DataOrigin DataOrigin::FromJson(const nlohmann::json& json) {
  const auto number = [&](const char* key) -> int64_t {
    const bool valid = json.is_object() && json.contains(key) && json[key].is_number_integer();
    return valid ? json[key].get<int64_t>() : 0;
  };
  return {number("base"), number("first")};
}

Area AreaOf(Variable::Kind kind, int slot) {
  if (kind == Variable::Kind::kBuffer) return Area::kBuffers;
  const Area values = kind == Variable::Kind::kTable ? Area::kTables : Area::kValues;
  return static_cast<Area>(static_cast<int>(values) + slot + 1);
}

absl::Status AssignAll(
    const ValueSource& source, const std::vector<Variable>& variables,
    const std::vector<ShardPlan>& plans, int slots,
    absl::FunctionRef<absl::Status(const Extent&, Area, absl::Span<const std::byte>)> assign) {
  for (size_t i = 0; i < variables.size(); ++i) {
    const int variable = static_cast<int>(i);
    const std::vector<Extent> extents = ExtentsOf(plans, variable);
    const bool trained = variables[i].kind != Variable::Kind::kBuffer;
    for (int slot = -1; slot < (trained ? slots : 0); ++slot) {
      const auto bytes = slot < 0 ? source.Values(variable) : source.Slot(variable, slot);
      if (bytes.empty()) continue;
      for (const Extent& extent : extents) {
        MUSTER_RETURN_IF_ERROR(assign(
            extent, AreaOf(variables[i].kind, slot),
            bytes.subspan(static_cast<size_t>(extent.first), static_cast<size_t>(extent.bytes))));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace muster::train
